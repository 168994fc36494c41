"""How fast a workload runs on the instances that are offered: from physics, not from list prices.

One search per accelerator and instance size serves all offers of that kind.
"""

from collections.abc import Iterable, Sequence
from math import ceil

import numpy as np
from msgspec import Struct

from tenfold.decide.layout.outcome import Outcome
from tenfold.decide.layout.request import PlanningTarget, Power, TrainRequest
from tenfold.decide.layout.serve import ServePlan, ServeRequest, ServeTarget, plan_serve
from tenfold.decide.layout.train import plan_train
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.hardware import Accelerator
from tenfold.model.market.offer import Offer
from tenfold.model.market.quote import Speed
from tenfold.model.reason import Misfit
from tenfold.physics.network import server_ports
from tenfold.physics.operations.goodput import Reliability, checkpoint_bytes, checkpoint_s
from tenfold.physics.serving.engines import catalog_of, resolve
from tenfold.physics.training.catalog import resolve as resolve_stack
from tenfold.physics.training.shapes import training_part
from tenfold.report.figures import count
from tenfold.study.estimate.fill import calibrated
from tenfold.study.plan.target import DEFAULT_ENGINE, DEFAULT_STACKS

MTOK = 1e6
HOUR_S = 3600.0
CHECKPOINT_BYTES_PER_S = 1e9
"""Write rate of rented storage per node; an assumption."""
SAVE_S = 60.0
"""Time to save a checkpoint of a job whose model is not known; an assumption."""
FAR = 10**9
"""Nodes of a fabric whose size is not known: rented nodes are taken to be on one leaf."""
SERVER_GPUS = 8
ENOUGH_GPUS = 4096
EVERY_PLAN = 100_000

Kind = tuple[str, int, bool]
"""Accelerator, GPUs of an instance, and whether an instance may be of any size."""


class NoSpeed(Struct, frozen=True):
    """The rule that excludes a kind of instance."""

    rule: str


Speeds = dict[Kind, Speed | NoSpeed]


def kind_of(offer: Offer) -> Kind:
    """Return the kind of instance that decides how fast a job runs."""
    return offer.accelerator, int(offer.gpus), offer.any_size


def kinds_of(offers: Iterable[Offer]) -> tuple[Kind, ...]:
    """Return the kinds of whole instances that are offered."""
    return tuple(dict.fromkeys(kind_of(one) for one in offers if one.gpus.is_integer()))


def train_speeds(
    request: TrainRequest, gpus: int, kinds: Iterable[Kind], catalogue: Catalogue
) -> Speeds:
    """Return how fast a model trains on `gpus` accelerators of each kind of instance."""
    known: dict[tuple[str, int], Trained | NoSpeed] = {}
    found: Speeds = {}
    for kind in kinds:
        part = catalogue.accelerators.get(kind[0])
        per_node = _per_instance(kind, gpus)
        rule = _split(part, gpus, per_node) or ("" if part.trains else "inference-only")
        if rule:
            found[kind] = NoSpeed(rule)
            continue
        key = (part.name, per_node)
        if key not in known:
            known[key] = _trained(request, gpus, per_node, part, catalogue)
        best = known[key]
        found[kind] = best if isinstance(best, NoSpeed) else _train_speed(best, gpus, kind)
    return found


class Trained(Struct, frozen=True):
    """The best layout on one accelerator, whatever it costs."""

    outcome: Outcome
    save_s: float
    calibrated: bool


def _trained(
    request: TrainRequest, gpus: int, per_node: int, part: Accelerator, catalogue: Catalogue
) -> Trained | NoSpeed:
    target = _train_target(part, gpus, per_node, catalogue)
    answer = plan_train(request, target, keep=1)
    if isinstance(answer, Misfit):
        return NoSpeed("does-not-fit")
    best = answer.plans[0]
    save_s = checkpoint_s(
        checkpoint_bytes(np.asarray(float(best.plan.shape.params))),
        np.asarray(target.checkpoint_bytes_per_s),
        np.asarray(float(gpus)),
        np.asarray(target.nic_bytes_per_s),
    )
    stack = DEFAULT_STACKS.get(part.runtime)
    return Trained(best, float(save_s), not resolve_stack(catalogue, stack, part.name).notes)


def _train_speed(best: Trained, gpus: int, kind: Kind) -> Speed:
    nodes = ceil(gpus / _per_instance(kind, gpus))
    plan = best.outcome.plan
    return Speed(
        gpus=gpus,
        instances=nodes,
        units=gpus if kind[2] else nodes,
        work_per_hour=best.outcome.tokens_per_s_per_gpu * gpus * HOUR_S / MTOK,
        save_s=best.save_s,
        how=f"tp {plan.tp}, pp {plan.pp}, dp {plan.dp}; MFU {best.outcome.mfu:.0%}",
        calibrated=best.calibrated,
    )


def job_speeds(
    gpus: int, names: Iterable[str], kinds: Iterable[Kind], catalogue: Catalogue
) -> Speeds:
    """Return a job that needs some GPUs for some hours: all that it names are equally fast."""
    named = dict.fromkeys(names)
    found: Speeds = {}
    for kind in kinds:
        part = catalogue.accelerators.get(kind[0])
        per_node = _per_instance(kind, gpus)
        rule = _split(part, gpus, per_node)
        if part.name not in named or rule:
            found[kind] = NoSpeed(rule if part.name in named else "other-accelerator")
            continue
        nodes = ceil(gpus / per_node)
        found[kind] = Speed(
            gpus=gpus,
            instances=nodes,
            units=gpus if kind[2] else nodes,
            work_per_hour=float(gpus),
            save_s=SAVE_S,
            how=f"{nodes} x {per_node} GPUs",
        )
    return found


def serve_speeds(request: ServeRequest, kinds: Iterable[Kind], catalogue: Catalogue) -> Speeds:
    """Return how many instances of each kind carry a service within its latency targets."""
    sizes = {kind: (kind[0], _per_instance(kind, SERVER_GPUS)) for kind in kinds}
    targets = [
        _serve_target(catalogue.accelerators.get(name), per_node, catalogue)
        for name, per_node in dict.fromkeys(sizes.values())
    ]
    answer = plan_serve(request, targets, keep=EVERY_PLAN) if targets else Misfit(())
    plans: dict[str, list[ServePlan]] = {}
    for plan in () if isinstance(answer, Misfit) else answer.plans:
        plans.setdefault(plan.pool, []).append(plan)
    return {
        kind: _serve_speed(request, plans.get(_pool(*size), []), kind, size[1])
        for kind, size in sizes.items()
    }


def _serve_speed(
    request: ServeRequest, plans: Sequence[ServePlan], kind: Kind, per_node: int
) -> Speed | NoSpeed:
    if not plans:
        return NoSpeed("misses-targets")
    whole = [one for one in plans if one.gpus_per_replica <= per_node]
    if not whole:
        return NoSpeed("split")
    best = min(whole, key=lambda one: (_units(one, kind), one.gpus))
    service = request.service
    return Speed(
        gpus=best.gpus,
        instances=ceil(best.gpus / per_node),
        units=_units(best, kind),
        work_per_hour=service.qps * service.output_tokens * HOUR_S / MTOK,
        cold_start_s=best.cold_start_s,
        how=f"{count(best.replicas, 'replica')} of {count(best.gpus_per_replica, 'GPU')}, "
        f"{best.precision}",
    )


def _units(plan: ServePlan, kind: Kind) -> int:
    """Return how many instances hold the replicas whole, or the GPUs where they are sold."""
    if kind[2]:
        return plan.gpus
    return ceil(plan.replicas / (kind[1] // plan.gpus_per_replica))


def _split(part: Accelerator, gpus: int, per_node: int) -> str:
    """Return the rule against a job over several instances that are not whole servers."""
    return "split" if gpus > per_node and (per_node < _server_size(part) or gpus % per_node) else ""


def _pool(accelerator: str, per_node: int) -> str:
    return f"{accelerator}/{per_node}"


def _per_instance(kind: Kind, gpus: int) -> int:
    return min(gpus, SERVER_GPUS if kind[2] else kind[1])


def _server_size(part: Accelerator) -> int:
    """Return the GPUs of a whole server: only those are known to have a network for training."""
    return SERVER_GPUS if part.scaleup_gpus <= 1 else min(SERVER_GPUS, part.scaleup_gpus)


def _train_target(
    part: Accelerator, gpus: int, per_node: int, catalogue: Catalogue
) -> PlanningTarget:
    stack = DEFAULT_STACKS.get(part.runtime)
    ports = server_ports(part, per_node, catalogue)
    preset = catalogue.failures.get("llama-3")
    energy = catalogue.energy.get("default")
    return PlanningTarget(
        accelerator=part.name,
        part=training_part(part),
        calibration=calibrated(resolve_stack(catalogue, stack, part.name), []),
        stack=stack or "",
        gpus=gpus,
        gpus_per_node=per_node,
        scaleup_gpus=min(part.scaleup_gpus, per_node) or 1,
        nic_bytes_per_s=ports.nics * ports.gbps / ports.gpus / 8 * 1e9,
        nodes_per_leaf=FAR,
        nodes_per_pod=FAR,
        leaf_oversubscription=1.0,
        pod_oversubscription=1.0,
        usd_per_gpu_hour=1.0,
        power=Power(
            tdp_w=part.tdp_w or 0.0,
            server_overhead=energy.server_overhead,
            pue=1.0,
            co2_g_per_kwh=energy.co2_g_per_kwh,
        ),
        reliability=Reliability(
            failures_per_node_day=np.array([preset.failures_per_1000_node_days / 1000]),
            gpus_per_node=np.array([float(preset.gpus_per_node)]),
            detection_s=np.array([preset.detection_s]),
            restart_s=np.array([preset.restart_s]),
            queue_s=np.array([0.0]),
        ),
        checkpoint_bytes_per_s=ceil(gpus / per_node) * CHECKPOINT_BYTES_PER_S,
    )


def _serve_target(part: Accelerator, per_node: int, catalogue: Catalogue) -> ServeTarget:
    ports = server_ports(part, per_node, catalogue)
    return ServeTarget(
        pool=_pool(part.name, per_node),
        part=part,
        profile=resolve(catalog_of(catalogue.engines), DEFAULT_ENGINE, part.name),
        engine=DEFAULT_ENGINE,
        gpus=ENOUGH_GPUS,
        gpus_per_node=per_node,
        scaleup_gpus=min(part.scaleup_gpus, per_node) or 1,
        network_bytes_per_s=ports.nics * ports.gbps / ports.gpus / 8 * 1e9,
        usd_per_gpu_hour=1.0,
    )
