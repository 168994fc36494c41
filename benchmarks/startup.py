"""How long `tenfold --help` takes beside an empty Python, run in turn on the same machine."""

import subprocess
import sys
from statistics import median
from time import perf_counter

from benchmarks.verdict import Verdict

ROUNDS = 15


def seconds(argv: list[str]) -> float:
    start = perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return perf_counter() - start


def run(thresholds: dict[str, float]) -> list[Verdict]:
    empty: list[float] = []
    helped: list[float] = []
    for _ in range(ROUNDS):
        empty.append(seconds([sys.executable, "-c", "pass"]))
        helped.append(seconds([sys.executable, "-m", "tenfold", "--help"]))
    ratio = median(helped) / median(empty)
    print(f"python -c pass    {median(empty) * 1000:7.1f} ms (median of {ROUNDS})")
    print(f"tenfold --help    {median(helped) * 1000:7.1f} ms")
    print(f"ratio             {ratio:7.1f}")
    return [
        Verdict("tenfold --help over python -c pass", ratio, thresholds["help_over_python"], "x")
    ]
