"""The four examples of growth: how long each takes, how much memory, and is it the same again?

Each runs twice with one seed in a process of its own, under two seeds of Python's hashes. What
it prints as JSON and the report it writes must be the same to the byte.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks.verdict import Verdict

ROOT = Path(__file__).parents[2]
HASH_SEEDS = ("1", "4711")
KIB_PER_MIB = 1_024
LAUNCHER = """
import os, sys
peak, command = sys.argv[1], sys.argv[2:]
child = os.posix_spawn(command[0], command, os.environ)
_, status, used = os.wait4(child, 0)
open(peak, "w").write(str(used.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""A child's peak begins with that of its parent, so the parent is a small process."""


EXAMPLES: dict[str, str] = {
    "one-rack": "{0}/fleet.toml --grow {0}/grow.toml --failures rsc-1 --axis nodes",
    "research-256": (
        "{0}/fleet.toml --jobs {0}/history.csv --grow {0}/grow.toml --failures rsc-1 --to 2,4"
    ),
    "bank-three-sites": (
        "{0}/fleet.toml --jobs {0}/history.csv --grow {0}/grow.toml"
        " --measured {0}/measured.csv --failures rsc-1 --to 2,4"
    ),
    "inference-startup": (
        "{0}/fleet.toml --grow {0}/grow.toml --measured {0}/measured.csv --axis traffic"
    ),
}
"""The command of each example's README, after `tenfold grow`; `{0}` is its folder."""


class Ran(NamedTuple):
    """What one run of an example gave, and took."""

    printed: bytes
    page: bytes
    seconds: float
    mib: float


def run_example(name: str, hash_seed: str) -> Ran:
    """Run an example in a process of its own."""
    words = EXAMPLES[name].format(f"examples/{name}").split()
    with tempfile.TemporaryDirectory() as folder:
        page, out, peak = (Path(folder) / name for name in ("grow.html", "grow.json", "peak"))
        command = [sys.executable, "-m", "tenfold", "grow", *words, "--json", "--html", str(page)]
        begun = time.perf_counter()
        with out.open("wb") as printed:
            ran = subprocess.run(
                [sys.executable, "-S", "-c", LAUNCHER, str(peak), *command],
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
                stdout=printed,
                stderr=subprocess.DEVNULL,
                check=False,
            )
        seconds = time.perf_counter() - begun
        if ran.returncode:
            raise RuntimeError(f"example {name} ended with status {ran.returncode}")
        mib = int(peak.read_text()) / KIB_PER_MIB
        return Ran(out.read_bytes(), page.read_bytes(), seconds, mib)


def run(thresholds: dict[str, float]) -> list[Verdict]:
    alike, slowest, largest = 0, 0.0, 0.0
    for name in EXAMPLES:
        first, again = (run_example(name, seed) for seed in HASH_SEEDS)
        same = (first.printed, first.page) == (again.printed, again.page)
        alike += same
        seconds, mib = max(first.seconds, again.seconds), max(first.mib, again.mib)
        slowest, largest = max(slowest, seconds), max(largest, mib)
        said = msgspec.json.decode(first.printed)["answer"]["sentence"]
        print(
            f"{name}: {first.seconds:.1f} and {again.seconds:.1f} s, {mib:.0f} MiB, "
            f"{'the same bytes' if same else 'OTHER BYTES'}; {said}"
        )
    return [
        Verdict("grow: examples with the same bytes again", alike, at_least=thresholds["same"]),
        Verdict("grow: slowest example", slowest, at_most=thresholds["seconds_most"], unit=" s"),
        Verdict("grow: memory of an example", largest, at_most=thresholds["mib_most"], unit=" MiB"),
    ]
