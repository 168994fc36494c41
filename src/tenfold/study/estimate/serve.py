"""Estimate serving configurations: look up names, build arrays, predict."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tenfold.model.errors import InputError
from tenfold.model.estimate import LoadEstimate, NoEstimate, ServeEstimate, ServeRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.physics.serving.batching import Served, under_load
from tenfold.physics.serving.devices import ServingNetwork, serving_devices
from tenfold.physics.serving.engines import ServingProfile, catalog_of, interval
from tenfold.physics.serving.kv_cache import ReplicaLayout
from tenfold.physics.serving.serve import estimate
from tenfold.physics.serving.shapes import serving_shapes
from tenfold.study.estimate.calibrate_serve import (
    DEFAULT_MODE,
    Group,
    Resolved,
    Speed,
    load_of,
    resolved,
    speeds_of,
)

GIB = float(1 << 30)


def estimate_serve(
    rows: Sequence[ServeRow], catalogue: Catalogue, observed: Sequence[ServeRow] = ()
) -> list[ServeEstimate | NoEstimate]:
    """Return one estimate for each row, in order."""
    engines = catalog_of(catalogue.engines)
    speeds = speeds_of(observed, catalogue, engines)
    answers: list[ServeEstimate | NoEstimate | None] = [None] * len(rows)
    good: list[tuple[int, Resolved]] = []
    for place, row in enumerate(rows):
        try:
            good.append((place, resolved(row, catalogue, engines)))
        except InputError as error:
            answers[place] = NoEstimate(id=row.id, error=f"{error.message}; {error.hint}")
    if good:
        found = [one for _, one in good]
        profiles = [_as_observed(one, speeds) for one in found]
        shapes = serving_shapes([one.shape for one in found])
        networks = [one.network for one in found]
        devices = serving_devices([one.part for one in found], networks)
        served, layout = estimate(load_of([one.row for one in found]), shapes, devices, profiles)
        for at, (place, _) in enumerate(good):
            notes = across_nodes(found[at].network, layout, at)
            answers[place] = _estimate(rows[place], profiles[at], served, layout, at, notes)
    return [answer for answer in answers if answer is not None]


def _as_observed(one: Resolved, speeds: Mapping[Group, Speed]) -> ServingProfile:
    """Return the profile of a row, scaled to the observed runs of its group if any."""
    speed = speeds.get(one.group)
    if speed is None:
        return one.profile
    runs = "1 observed run" if speed.runs == 1 else f"{speed.runs} observed runs"
    note = f"{speed.factor:.2f}x the speed of the profile, from {runs}"
    return replace(speed.of(one.profile), notes=(*one.profile.notes, note))


def across_nodes(network: ServingNetwork, layout: ReplicaLayout, at: int) -> tuple[str, ...]:
    """Return a note where ranks of a replica meet over the network."""
    gpus, group = float(layout.gpus[at]), float(max(layout.tp[at], layout.attention_dp[at]))
    rate = f"{network.bytes_per_s / 1e9:g} GB/s per GPU assumed"
    nodes = f"{np.ceil(gpus / network.domain):g} nodes"
    if group > network.domain:
        kind = "tensor" if layout.tp[at] > 1 else "expert"
        return (f"{kind} parallelism over {nodes}: every layer waits for the network, {rate}",)
    if gpus > network.domain:
        return (f"pipeline stages on {nodes} send over the network, {rate}",)
    return ()


def _estimate(
    row: ServeRow,
    profile: ServingProfile,
    served: Served,
    layout: ReplicaLayout,
    at: int,
    across: tuple[str, ...],
) -> ServeEstimate:
    mode = row.mode or DEFAULT_MODE
    rate = float(served.output_tokens_per_s[at])
    low, high = interval(np.asarray(rate), profile.sigma[mode])
    notes = [*profile.notes, *across]
    if layout.attention_dp[at] > 1:
        notes.append(f"expert parallelism over {layout.gpus[at]:g} GPUs, data-parallel attention")
    load = None
    if mode == "online":
        load = _under_load(served, at)
        notes.extend(_load_notes(row, profile, served, load, at))
    if mode == "static-batch" and served.saturated[at]:
        notes.append("the batch does not fit in the KV cache at once and runs in several passes")
    if not row.output_tokens and mode != "first-token":
        notes.append("one output token per request assumed")
    ttft_s = float(served.ttft_s[at])
    return ServeEstimate(
        id=row.id,
        notes=tuple(notes),
        output_tokens_per_s=rate,
        interval_tokens_per_s=(float(low), float(high)),
        # Above saturation the wait is infinite, which JSON cannot represent.
        ttft_s=ttft_s if np.isfinite(ttft_s) else None,
        tpot_s=float(served.tpot_s[at]),
        batch=max(round(float(served.batch[at])), 1),
        gpus=int(layout.gpus[at]),
        memory_gib=float(served.memory_bytes[at]) / GIB,
        fits=bool(served.fits[at] > 0),
        under_load=load,
    )


def _under_load(served: Served, at: int) -> LoadEstimate:
    under = under_load(served)
    capacity, offered = float(under.capacity_qps[at]), float(under.offered_qps[at])
    return LoadEstimate(
        offered_qps=_finite(offered),
        served_qps=float(under.served_qps[at]),
        capacity_qps=capacity,
        utilisation=_finite(offered / capacity),
        overloaded=bool(under.overloaded[at] > 0),
        in_system=_finite(float(under.in_system[at])),
        queued=_finite(float(under.queued[at])),
        ttft_s_p50=_finite(float(under.ttft_p50_s[at])),
        ttft_s_p90=_finite(float(under.ttft_p90_s[at])),
        ttft_s_p99=_finite(float(under.ttft_p99_s[at])),
        tpot_s_p50=float(under.tpot_p50_s[at]),
        tpot_s_p90=float(under.tpot_p90_s[at]),
        tpot_s_p99=float(under.tpot_p99_s[at]),
    )


def _finite(value: float) -> float | None:
    """Return None for what grows without bound, which JSON cannot represent."""
    return value if np.isfinite(value) else None


def _load_notes(
    row: ServeRow, profile: ServingProfile, served: Served, load: LoadEstimate, at: int
) -> list[str]:
    family = profile.family
    if row.qps is None and row.batch:
        notes: list[str] = []
        waiting = row.batch - served.batch[at]
        if waiting >= 1:
            notes.append(
                f"{waiting:,.0f} of {row.batch:,} clients wait for one of "
                f"{served.batch[at]:,.0f} slots"
            )
        if family is not None and family.poll_steps:
            notes.append(
                f"new requests are looked for every {family.poll_steps:g} steps, as in the "
                f"published closed loops of {family.name}"
            )
        return notes
    if row.qps is None:
        requests = row.requests or (family.requests_online if family else np.inf)
        sent = f"{requests:,g} requests" if np.isfinite(requests) else "an endless queue"
        return [f"all requests are sent at once: {sent}"]
    if not load.overloaded:
        return []
    grows = row.qps - load.capacity_qps
    minute_s = 60.0 * grows / load.capacity_qps
    notes = [
        f"overloaded: {row.qps:g} requests/s offered, capacity {load.capacity_qps:.3g} requests/s; "
        f"the queue grows by {grows:.3g} requests/s and TTFT by {minute_s:.3g} s per minute"
    ]
    if row.requests:
        notes.append(f"latencies are those of a run of {row.requests:,} requests")
    return notes
