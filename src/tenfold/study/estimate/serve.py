"""Estimate serving configurations: look up names, build arrays, predict."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tenfold.model.errors import InputError
from tenfold.model.estimate import NoEstimate, ServeEstimate, ServeRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.physics.serving.batching import Served
from tenfold.physics.serving.devices import serving_devices
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
        devices = serving_devices([one.part for one in found])
        served, layout = estimate(load_of([one.row for one in found]), shapes, devices, profiles)
        for at, (place, _) in enumerate(good):
            answers[place] = _estimate(rows[place], profiles[at], served, layout, at)
    return [answer for answer in answers if answer is not None]


def _as_observed(one: Resolved, speeds: Mapping[Group, Speed]) -> ServingProfile:
    """Return the profile of a row, scaled to the observed runs of its group if any."""
    speed = speeds.get(one.group)
    if speed is None:
        return one.profile
    runs = "1 observed run" if speed.runs == 1 else f"{speed.runs} observed runs"
    note = f"{speed.factor:.2f}x the speed of the profile, from {runs}"
    return replace(speed.of(one.profile), notes=(*one.profile.notes, note))


def _estimate(
    row: ServeRow, profile: ServingProfile, served: Served, layout: ReplicaLayout, at: int
) -> ServeEstimate:
    mode = row.mode or DEFAULT_MODE
    rate = float(served.output_tokens_per_s[at])
    low, high = interval(np.asarray(rate), profile.sigma[mode])
    notes = list(profile.notes)
    if layout.attention_dp[at] > 1:
        notes.append(f"expert parallelism over {layout.gpus[at]:g} GPUs, data-parallel attention")
    if mode == "online" and served.saturated[at] and row.qps is not None:
        notes.append("overloaded: the load is above what the replica can sustain")
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
    )
