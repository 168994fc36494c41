"""A small job that times its own steps, for `tenfold baseline`.

    python examples/baselines/job.py --out steps.jsonl
    python examples/baselines/job.py --out slow.jsonl --compute-times 2

It loads a batch, multiplies matrices, and writes a line a step. `--compute-times` makes
it do the arithmetic so many times over, as a slower kernel would. `--clock cpu` counts CPU
time instead of wall time, for a machine that is busy with other work too.
"""

import argparse
import json
from pathlib import Path
from time import perf_counter, process_time

import numpy as np


def main() -> None:
    """Run the steps and write what each took."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--width", type=int, default=320)
    parser.add_argument("--compute-times", type=int, default=1)
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    asked = parser.parse_args()
    clock_s = process_time if asked.clock == "cpu" else perf_counter
    dice = np.random.default_rng(0)
    weights = dice.normal(size=(asked.width, asked.width)) / asked.width**0.5
    with asked.out.open("w") as log:
        for step in range(1, asked.steps + 1):
            start = clock_s()
            batch = dice.normal(size=(asked.width, asked.width))
            loaded = clock_s()
            for _ in range(4 * asked.compute_times):
                batch = np.tanh(batch @ weights)
            done = clock_s()
            row = {"step": step, "step_s": done - start}
            row |= {"compute_s": done - loaded, "data_s": loaded - start}
            log.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
