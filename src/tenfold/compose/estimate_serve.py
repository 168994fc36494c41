"""Answer rows of `estimate serve`: names to records, records to arrays, arrays to answers."""

from collections.abc import Sequence

import numpy as np

from tenfold.compose.estimate_models import shape_of
from tenfold.files.estimate_rows import ServeRow
from tenfold.model.catalogue import Catalogue
from tenfold.model.errors import InputError
from tenfold.model.hardware import Accelerator
from tenfold.model.shape import ModelShape
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.batching import Served
from tenfold.physics.serving.devices import serving_devices
from tenfold.physics.serving.engines import Catalog, Profile, catalog_of, interval, resolve
from tenfold.physics.serving.kv_cache import Layout
from tenfold.physics.serving.serve import Asked, estimate
from tenfold.physics.serving.shapes import serving_shapes

GIB = float(1 << 30)
USUAL_MODE = "max-throughput"
Answer = dict[str, object]


def estimate_serve(rows: Sequence[ServeRow], catalogue: Catalogue) -> list[Answer]:
    """Return one answer a row, in order; a row that cannot be says why in `error`."""
    engines = catalog_of(catalogue.engines)
    answers: list[Answer | None] = [None] * len(rows)
    good: list[tuple[int, ModelShape, Accelerator, Profile]] = []
    for place, row in enumerate(rows):
        try:
            good.append((place, *_resolved(row, catalogue, engines)))
        except InputError as error:
            answers[place] = {"id": row.id, "error": f"{error.message}; {error.hint}"}
    if good:
        asked = asked_of([rows[place] for place, *_ in good])
        profiles = [profile for *_, profile in good]
        shapes = serving_shapes([shape for _, shape, _, _ in good])
        devices = serving_devices([part for _, _, part, _ in good])
        served, layout = estimate(asked, shapes, devices, profiles)
        for at, (place, *_, profile) in enumerate(good):
            answers[place] = _answer(rows[place], profile, served, layout, at)
    return [answer for answer in answers if answer is not None]


def _resolved(
    row: ServeRow, catalogue: Catalogue, engines: Catalog
) -> tuple[ModelShape, Accelerator, Profile]:
    shape = shape_of(row.model, catalogue)
    part = catalogue.accelerators.get(row.accelerator)
    return shape, part, resolve(engines, row.engine, part.name)


def asked_of(rows: Sequence[ServeRow]) -> Asked:
    """Return rows as arrays, NaN where a row does not say."""

    def column(name: str) -> Floats:
        values = [getattr(row, name) for row in rows]
        return np.array([np.nan if value is None else float(value) for value in values])

    return Asked(
        tp=column("tp"),
        pp=column("pp"),
        attention_dp=np.full(len(rows), np.nan),
        input_tokens=column("input_tokens"),
        output_tokens=column("output_tokens"),
        batch=column("batch"),
        qps=column("qps"),
        mode=np.array([row.mode or USUAL_MODE for row in rows]),
        precision=tuple(row.precision or "bf16" for row in rows),
    )


def _answer(row: ServeRow, profile: Profile, served: Served, layout: Layout, at: int) -> Answer:
    mode = row.mode or USUAL_MODE
    rate = float(served.output_tokens_per_s[at])
    low, high = interval(np.asarray(rate), profile.sigma[mode])
    notes = list(profile.notes)
    if layout.attention_dp[at] > 1:
        notes.append(f"experts over {layout.gpus[at]:g} GPUs with data-parallel attention")
    if mode == "online" and served.saturated[at] and row.qps is not None:
        notes.append("the load is above what the replica sustains")
    if not row.output_tokens and mode != "first-token":
        notes.append("answers of one token supposed")
    ttft_s = float(served.ttft_s[at])
    return {
        "id": row.id,
        "notes": notes,
        "output_tokens_per_s": rate,
        "interval_tokens_per_s": [float(low), float(high)],
        # An endless stream above saturation waits for ever, which JSON cannot say.
        "ttft_s": ttft_s if np.isfinite(ttft_s) else None,
        "tpot_s": float(served.tpot_s[at]),
        "batch": max(round(float(served.batch[at])), 1),
        "gpus": int(layout.gpus[at]),
        "memory_gib": float(served.memory_bytes[at]) / GIB,
        "fits": bool(served.fits[at] > 0),
    }
