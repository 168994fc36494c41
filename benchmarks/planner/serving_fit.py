"""Fit the facts about engines, and write them into the repository.

python -m benchmarks.planner.serving_fit            prints what the fit finds
python -m benchmarks.planner.serving_fit --write    and writes `engines.toml`
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from msgspec.structs import replace

from benchmarks.planner.serving_families import (
    FEW_VERSIONS,
    MEASURED_ON,
    DecodeSteps,
    PytorchFit,
    few_rows,
    fit_few,
    fit_pytorch,
    tpot_errors,
)
from benchmarks.planner.serving_holdout import leave_out
from benchmarks.planner.serving_model import TURNS_FINAL, fit, sigma_of
from benchmarks.planner.serving_profiles import in_order, profiles_of, render
from benchmarks.planner.serving_rows import (
    FITTED,
    TABLES,
    Published,
    Rows,
    absent,
    rate_error,
    read_published,
    served,
    tables_of,
)
from tenfold.facts.loader import load_catalogue
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.facts.profiles import EngineProfile
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.engines import catalog_of

OUT = Path(str(files("tenfold.facts") / "data" / "engines.toml"))


@dataclass(frozen=True, slots=True)
class Fitted:
    """All facts about engines, with the errors that their spreads rest on."""

    profiles: list[EngineProfile]
    data: Rows
    in_sample: Floats
    pytorch: PytorchFit
    version_out: Floats
    accelerator_out: Floats
    unknown_engine: Mapping[str, Floats]
    """By family: what the profile of an engine that is not known makes of its rows."""


def fit_all(rows: Sequence[Published], catalogue: Catalogue) -> Fitted:
    """Fit every family and compute every spread; some 18 fits."""
    data = tables_of(rows)
    found = fit(data, TURNS_FINAL)
    profiles = profiles_of(data, found)
    pytorch = fit_pytorch(
        DecodeSteps(catalogue.accelerators.get(MEASURED_ON)), catalog_of(profiles)
    )
    few = [fit_few(family, rows, profiles) for family in FEW_VERSIONS]
    profiles = in_order([*profiles, *pytorch.profiles, *(row for pair in few for row in pair)])
    unknown = _unknown_engine(rows, data, profiles, pytorch)
    in_sample = found.errors(data)
    version_out, part_out = leave_out(data, data.version), leave_out(data, data.part)
    unseen = {
        "version": spread_beyond(sigma_of(version_out), in_sample),
        "accelerator": spread_beyond(sigma_of(part_out), in_sample),
        "engine": spread_beyond(_mean_sigma(unknown), in_sample),
    }
    generic = profiles[0]
    by_mode = generic.residual_by_mode | {"online": _online_sigma(rows, profiles)}
    profiles[0] = replace(generic, residual_by_mode=by_mode, residual_unseen=unseen)
    return Fitted(profiles, data, in_sample, pytorch, version_out, part_out, unknown)


def spread_beyond(sigma: float, in_sample: Floats) -> float:
    """Return what has to be added (as a spread) to that of seen rows."""
    return round(float(np.sqrt(max(sigma**2 - sigma_of(in_sample) ** 2, 0.0))), 3)


def _mean_sigma(errors: Mapping[str, Floats]) -> float:
    """Return the spread over families, each weighing alike, the one of the fit left out."""
    others = [error for name, error in errors.items() if name != TABLES.name]
    return float(np.sqrt(np.mean([sigma_of(error) ** 2 for error in others])))


def _unknown_engine(
    rows: Sequence[Published],
    data: Rows,
    profiles: Sequence[EngineProfile],
    pytorch: PytorchFit,
) -> dict[str, Floats]:
    nobody = [profile for profile in profiles if profile.scope in ("generic", "accelerator")]
    tables = rate_error(data.rows, served(data.rows, catalog_of(nobody)))
    few = {family: tpot_errors(few_rows(family, rows), nobody) for family in FEW_VERSIONS}
    return {TABLES.name: tables, "pytorch": pytorch.generic_errors, **few}


def _online_sigma(rows: Sequence[Published], profiles: Sequence[EngineProfile]) -> float:
    """No parameter is fitted on online rows, but the queueing formulas were shaped on them."""
    online = [row for row in rows if row.mode == "online"]
    return round(sigma_of(rate_error(online, served(online, catalog_of(profiles)))), 3)


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planner.serving_fit")
    parser.add_argument("--write", action="store_true", help=f"write {OUT}")
    write = parser.parse_args(argv).write
    catalogue = load_catalogue()
    read = read_published(catalogue)
    if read is None:
        sys.stderr.write(f"error: {absent()}\n")
        return 2
    found = fit_all(read[0], catalogue)
    data, error = found.data, np.abs(np.expm1(found.in_sample)) * 100
    for mode in FITTED:
        print(f"{mode:15} {np.median(error[data.mode == mode]):5.1f}% median, in sample")
    for family, errors in found.unknown_engine.items():
        print(f"{family:15} {sigma_of(errors):5.3f} spread as an engine that is not known")
    print(f"unseen          {found.profiles[0].residual_unseen}")
    print(f"by mode         {found.profiles[0].residual_by_mode}")
    if write:
        OUT.write_text(render(found.profiles))
        print(f"wrote {OUT}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
