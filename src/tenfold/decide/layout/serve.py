"""Choose how to serve a model at the lowest cost: precision, GPUs per replica, replicas.

Every candidate is loaded until too few of its requests meet the latency targets, or until its
headroom is used up. That gives the number of replicas; spare ones are added, and the cheapest
candidate wins. Each candidate is one entry of an array.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tenfold.model.facts.shape import ModelShape
from tenfold.model.fleet.hardware import Accelerator
from tenfold.model.plan import Precision, ServiceDemand
from tenfold.model.reason import Misfit, Reason, Value
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import EngineLimits, Served, under_load
from tenfold.physics.serving.coldstart import (
    MEASURED_LOADER,
    MEASURED_SOFTWARE,
    cold_start,
)
from tenfold.physics.serving.devices import ServingNetwork, serving_devices
from tenfold.physics.serving.engines import ServingProfile, efficiency_of, limits_of
from tenfold.physics.serving.kv_cache import ReplicaLayout, weights_bytes_per_gpu
from tenfold.physics.serving.online import Stream, online
from tenfold.physics.serving.precision import precision_widths
from tenfold.physics.serving.replica import Replica
from tenfold.physics.serving.shapes import serving_shapes

GIB = float(1 << 30)
QPS_TURNS = 18
QPS_LEAST = 1e-4
QPS_MOST = 1e5
PIPELINES = (1, 2, 4, 8)
REPLICA_GPUS_MAX = 64


class ServeRequest(Struct, frozen=True, kw_only=True):
    """A service with its model looked up."""

    service: ServiceDemand
    shape: ModelShape


class ServeTarget(Struct, frozen=True, kw_only=True):
    """One pool of identical accelerators that a service may use."""

    pool: str
    part: Accelerator
    profile: ServingProfile
    engine: str
    gpus: int
    gpus_per_node: int
    scaleup_gpus: int
    network_bytes_per_s: float
    """Of each accelerator, to those beyond its node or scale-up domain."""
    usd_per_gpu_hour: float

    @property
    def network(self) -> ServingNetwork:
        """What the ranks of a replica meet over, in a node and beyond it."""
        return ServingNetwork(
            float(max(self.scaleup_gpus, self.gpus_per_node)), self.network_bytes_per_s
        )


class ServePlan(Struct, frozen=True, kw_only=True):
    """Replicas of one kind in one pool, and their latency and cost."""

    pool: str
    accelerator: str
    engine: str
    precision: Precision
    tp: int
    pp: int
    gpus_per_replica: int
    replicas: int
    spare_replicas: int
    """Of the replicas; without them, the others still meet the targets."""
    gpus: int
    qps_per_replica_max: float
    """At which the targets are met and the headroom is left free."""
    utilisation: float
    """Share of the capacity in use, with all replicas up."""
    ttft_s: float
    tpot_s: float
    ttft_s_p99: float
    tpot_s_p99: float
    ttft_s_attained: float
    """Met by the share of requests that was asked for, with all spare replicas lost."""
    tpot_s_attained: float
    output_tokens_per_s: float
    concurrent: float
    memory_gib: float
    usd_per_hour: float
    usd_per_million_tokens: float
    cold_start_s: float
    """From requesting a replica to its first token, with the image present, page cache cold."""
    enough_gpus: bool


class ServeAnswer(Struct, frozen=True, kw_only=True):
    """Candidates that meet the targets, cheapest first, and why others lost."""

    searched: int
    plans: tuple[ServePlan, ...]
    why: tuple[Reason, ...]


class _Candidates(Struct, frozen=True, kw_only=True):
    """All candidates as arrays, with the pool and precision of each."""

    targets: tuple[ServeTarget, ...]
    precision: tuple[Precision, ...]
    replica: Replica
    limits: EngineLimits

    @property
    def count(self) -> int:
        return len(self.targets)


def plan_serve(
    request: ServeRequest, targets: Sequence[ServeTarget], *, keep: int = 10
) -> ServeAnswer | Misfit:
    """Return the cheapest plans that meet a service's targets, or why there are none."""
    found = _candidates(request, targets)
    if found is None:
        return Misfit((Reason("no-accelerators"),))
    idle = _served(request, found, np.full(found.count, QPS_LEAST))
    qps_max = _qps_max(request, found)
    needed = np.maximum(np.ceil(request.service.qps / np.maximum(qps_max, QPS_LEAST) - 1e-9), 1.0)
    replicas = needed + request.service.spare_replicas
    loaded = _served(request, found, _share(request, replicas, qps_max))
    degraded = _served(request, found, _share(request, needed, qps_max))
    plans = [
        _plan(request, found, place, qps_max, replicas, (loaded, degraded))
        for place in range(found.count)
        if qps_max[place] > QPS_LEAST
    ]
    plans.sort(key=lambda plan: (not plan.enough_gpus, plan.usd_per_million_tokens, plan.gpus))
    reasons = tuple(_why(request, found, idle, qps_max, plans))
    if not plans or not plans[0].enough_gpus:
        return Misfit(reasons)
    return ServeAnswer(searched=found.count, plans=tuple(plans[:keep]), why=reasons)


def _candidates(request: ServeRequest, targets: Sequence[ServeTarget]) -> _Candidates | None:
    rows: list[tuple[ServeTarget, Precision, int, int]] = []
    for target in targets:
        most = min(target.scaleup_gpus, target.gpus)
        tensor = [1 << bit for bit in range(10) if 1 << bit <= most]
        rows.extend(
            (target, precision, tp, pp)
            for precision in request.service.precisions
            for tp in tensor
            if request.shape.heads % tp == 0
            for pp in PIPELINES
            if tp * pp <= min(target.gpus, REPLICA_GPUS_MAX) and pp <= request.shape.layers
        )
    return _arrays(request, rows) if rows else None


def _arrays(
    request: ServeRequest, rows: Sequence[tuple[ServeTarget, Precision, int, int]]
) -> _Candidates:
    shape = serving_shapes([request.shape] * len(rows))
    profiles = [target.profile for target, *_ in rows]
    number = precision_widths([precision for _, precision, _, _ in rows], shape)
    tp = np.array([float(row[2]) for row in rows])
    # Newer engines spread experts over ranks that each attend to their own sequences.
    spread = np.array([profile.attention_dp for profile in profiles]) & (shape.experts > 0)
    layout = ReplicaLayout(
        tp=np.where(spread, 1.0, tp),
        pp=np.array([float(row[3]) for row in rows]),
        attention_dp=np.where(spread, tp, 1.0),
    )
    replica = Replica(
        shape,
        serving_devices(
            [target.part for target, *_ in rows], [target.network for target, *_ in rows]
        ),
        layout,
        number.widths,
        number.math_bits,
        number.expert_math_bits,
        efficiency_of(profiles),
    )
    return _Candidates(
        targets=tuple(row[0] for row in rows),
        precision=tuple(row[1] for row in rows),
        replica=replica,
        limits=limits_of(profiles),
    )


def _served(request: ServeRequest, found: _Candidates, qps: Floats) -> Served:
    size = found.count
    families = [target.profile.family for target in found.targets]
    stream = Stream(
        input_tokens=np.full(size, float(request.service.input_tokens)),
        output_tokens=np.full(size, float(max(1, request.service.output_tokens))),
        qps=qps,
        clients=np.full(size, np.nan),
        requests=np.full(size, np.inf),
        gateway_s=np.array([family.gateway_s if family else 0.005 for family in families]),
        goal=request.service.attainment,
    )
    return online(found.replica, found.limits, stream)


def _share(request: ServeRequest, replicas: Floats, qps_max: Floats) -> Floats:
    return np.maximum(np.minimum(request.service.qps / replicas, qps_max), QPS_LEAST)


def _meets(request: ServeRequest, served: Served) -> Floats:
    service, load = request.service, under_load(served)
    good = (load.ttft_goal_s <= service.ttft_s) & (load.tpot_goal_s <= service.tpot_s)
    # An estimate of the capacity errs by about a tenth: nothing may hang on the last of it.
    free = load.offered_qps <= (1.0 - service.headroom) * load.capacity_qps
    return (good & free & (served.fits > 0) & (load.overloaded == 0)).astype(np.float64)


def _qps_max(request: ServeRequest, found: _Candidates) -> Floats:
    """Return the highest load at which each candidate still meets both targets."""
    low = np.full(found.count, QPS_LEAST)
    high = np.full(found.count, QPS_MOST)
    alive = _meets(request, _served(request, found, low)) > 0
    for _ in range(QPS_TURNS):
        middle = np.sqrt(low * high)
        good = _meets(request, _served(request, found, middle)) > 0
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    return np.where(alive, low, 0.0)


def _plan(
    request: ServeRequest,
    found: _Candidates,
    place: int,
    qps_max: Floats,
    replicas: Floats,
    loads: tuple[Served, Served],
) -> ServePlan:
    served, degraded = loads
    load, rest = under_load(served), under_load(degraded)
    target = found.targets[place]
    layout = found.replica.layout
    each = int(layout.gpus[place])
    count = int(replicas[place])
    hourly = count * each * target.usd_per_gpu_hour
    tokens_per_s = request.service.qps * request.service.output_tokens
    return ServePlan(
        pool=target.pool,
        accelerator=target.part.name,
        engine=target.engine,
        precision=found.precision[place],
        tp=int(layout.tp[place] * layout.attention_dp[place]),
        pp=int(layout.pp[place]),
        gpus_per_replica=each,
        replicas=count,
        spare_replicas=request.service.spare_replicas,
        gpus=count * each,
        qps_per_replica_max=float(qps_max[place]),
        utilisation=float(load.offered_qps[place] / load.capacity_qps[place]),
        ttft_s=float(served.ttft_s[place]),
        tpot_s=float(served.tpot_s[place]),
        ttft_s_p99=float(load.ttft_p99_s[place]),
        tpot_s_p99=float(load.tpot_p99_s[place]),
        ttft_s_attained=float(rest.ttft_goal_s[place]),
        tpot_s_attained=float(rest.tpot_goal_s[place]),
        output_tokens_per_s=tokens_per_s,
        concurrent=float(served.batch[place]) * count,
        memory_gib=float(served.memory_bytes[place]) / GIB,
        usd_per_hour=hourly,
        usd_per_million_tokens=hourly / 3600 / tokens_per_s * 1e6 if tokens_per_s else 0.0,
        cold_start_s=_cold_start_s(request, found, place),
        enough_gpus=count * each <= target.gpus,
    )


def _cold_start_s(request: ServeRequest, found: _Candidates, place: int) -> float:
    replica = found.replica
    weights = weights_bytes_per_gpu(replica.shape, replica.widths, replica.layout)[place]
    per_node = min(found.targets[place].gpus_per_node, int(replica.layout.gpus[place]))
    start = cold_start(
        MEASURED_LOADER,
        MEASURED_SOFTWARE,
        np.asarray(weights),
        np.asarray(float(per_node)),
        np.asarray(float(request.shape.layers)),
    )
    return float(start.total_s)


def _why(
    request: ServeRequest,
    found: _Candidates,
    idle: Served,
    qps_max: Floats,
    plans: Sequence[ServePlan],
) -> list[Reason]:
    """Return why the best won and, by kind of failure, why the others were ruled out."""
    reasons = _verdict(request, plans)
    large = int((idle.fits == 0).sum())
    if large:
        reasons.append(Reason("weights-too-large", {"candidates": large, "of": found.count}))
    reasons.extend(_too_slow("ttft", idle.ttft_s, request.service.ttft_s, idle.fits > 0))
    reasons.extend(_too_slow("tpot", idle.tpot_s, request.service.tpot_s, idle.fits > 0))
    crowded = int(((qps_max == 0) & (idle.fits > 0)).sum())
    if crowded and not plans:
        reasons.append(Reason("no-load", {"candidates": crowded}))
    return reasons


def _verdict(request: ServeRequest, plans: Sequence[ServePlan]) -> list[Reason]:
    if not plans:
        return []
    best = plans[0]
    if not best.enough_gpus:
        least = min(plans, key=lambda plan: plan.gpus)
        return [Reason("not-enough-gpus", {"least": least.gpus, "pool": least.pool})]
    fields: dict[str, Value] = {
        "replicas": best.replicas,
        "each": best.gpus_per_replica,
        "accelerator": best.accelerator,
        "precision": best.precision,
        "usd": best.usd_per_million_tokens or 0.0,
        "qps": best.qps_per_replica_max,
    }
    service = request.service
    sized: dict[str, Value] = {
        "needed": best.replicas - best.spare_replicas,
        "attainment": service.attainment,
        "ttft_s": best.ttft_s_attained,
        "tpot_s": best.tpot_s_attained,
        "free": service.headroom,
        "spare": best.spare_replicas,
        "used": best.utilisation,
    }
    return [Reason("cheapest", fields), Reason("sized-by-tail", sized)]


def _too_slow(
    name: str, values: Floats, limit: float, fitting: NDArray[np.bool_]
) -> Iterator[Reason]:
    slow = int((fitting & (values > limit)).sum())
    if slow:
        best_s = float(values[fitting].min())
        fields = {"candidates": slow, "limit_s": float(limit), "best_s": best_s}
        yield Reason(f"{name}-missed", fields)
