"""Fit training stacks on all rows; `--write` regenerates the two files of facts they ship in.

python -m benchmarks.planner.training_fit [--write] [--into FOLDER]
"""

import argparse
import sys
from pathlib import Path

from benchmarks.planner.training_facts import (
    corrections_of,
    profiles_of,
    render_corrections,
    render_stacks,
)
from benchmarks.planner.training_model import fit, held_out_log_error
from benchmarks.planner.training_rows import missing, read_rows
from tenfold.facts.loader import load_catalogue

SHIPPED = Path(__file__).resolve().parents[2] / "src" / "tenfold" / "facts" / "data"


def main(words: list[str]) -> int:
    """Fit, say what came out, and write it where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.planner.training_fit")
    parser.add_argument("--write", action="store_true", help="write the files of facts")
    parser.add_argument("--into", type=Path, default=SHIPPED, help="the folder they go to")
    asked = parser.parse_args(words)
    absent = missing()
    if absent:
        sys.stderr.write(f"error: {absent}\n")
        return 2
    rows, _ = read_rows(load_catalogue())
    fitted = fit(rows)
    profiles = profiles_of(fitted, rows, held_out_log_error(rows))
    corrections = corrections_of(fitted, rows)
    for fact in profiles:
        print(f"{fact.name:44} {fact.rows:5} rows, residual {fact.residual:.3f}")
    print(f"{sum(len(fact.points) for fact in corrections)} points of correction")
    if asked.write:
        (asked.into / "stacks.toml").write_text(render_stacks(profiles, rows))
        (asked.into / "corrections.toml").write_text(render_corrections(corrections))
        print(f"wrote stacks.toml and corrections.toml into {asked.into}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
