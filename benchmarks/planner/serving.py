"""Serving against published tables: held-out error, what is left out whole, and speed.

Held-out figures are of rows that the fit behind them has not seen; the first table and the
rows under load are not held out, and say so.
"""

from benchmarks.planner import serving_evaluate as evaluate
from benchmarks.planner.serving_fit import fit_all
from benchmarks.planner.serving_rows import absent, read_published, tables_of
from benchmarks.verdict import Verdict
from tenfold.facts.loader import load_catalogue
from tenfold.physics.serving.engines import catalog_of


def run(thresholds: dict[str, float]) -> list[Verdict]:
    catalogue = load_catalogue()
    read = read_published(catalogue)
    if read is None:
        print(absent())
        return []
    rows, unknown = read
    data, catalog = tables_of(rows), catalog_of(catalogue.engines)
    print(f"{len(rows)} published rows; not in the catalogue: {', '.join(unknown) or 'none'}")
    print(evaluate.HEAD)
    evaluate.shipped(data, catalog)
    half = evaluate.random_halves(data)
    found = fit_all(rows, catalogue)
    version = evaluate.left_out(data, found.version_out, data.version, "version")
    part = evaluate.left_out(data, found.accelerator_out, data.part, "accelerator")
    model = evaluate.models_left_out(data)
    evaluate.coverage(found.version_out, found.in_sample, data.version, "version")
    evaluate.coverage(found.accelerator_out, found.in_sample, data.part, "accelerator")
    evaluate.under_load(rows, catalog)
    decode = evaluate.decode_steps(found)
    us = evaluate.speed(data)
    limit = thresholds["median_percent"]
    return [
        Verdict("serving: random half held out, median error", half, limit, "%"),
        Verdict("serving: version left out, median error", version[0], limit, "%"),
        Verdict("serving: version left out, 3 rows to calibrate", version[1], limit, "%"),
        Verdict("serving: accelerator left out, median error", part[0], limit, "%"),
        Verdict("serving: accelerator left out, 3 rows to calibrate", part[1], limit, "%"),
        Verdict("serving: model left out, median error", model[0], limit, "%"),
        Verdict("serving: H200 decode steps, two-fold held out", decode, limit, "%"),
        Verdict("serving: time a configuration", us, thresholds["us_per_configuration"], " us"),
    ]
