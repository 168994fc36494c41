"""Checkpoint writes that are cut short never leave one that loads wrong.

Two ways of cutting. The power of a disk in memory goes at a random operation, with whatever
was not synced lost or torn, name by name and byte by byte; then the next life of the run
begins on what is left. And real processes are killed at a random moment with SIGKILL while
they write to a real disk. After each cut, `load` must give exactly the values of a step that
was saved, and no step before the last one whose `save` had returned.

    python -m benchmarks.checkpoint_crashes --points 200 --kills 30
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from time import perf_counter, sleep
from typing import NamedTuple

import numpy as np

from benchmarks.verdict import Verdict
from tenfold.checkpoint import CheckpointError, How, load, save
from tenfold.checkpoint.files import DISK, Files
from tests.rigs.forgetful import ForgetfulDisk, PowerCut

FOLDER = Path("checkpoints")
POINTS, KILLS, SAVES = 200, 30, 5
RANKS = (1, 1, 3)
WAIT_S = 20.0
CHILD_SIZE = 100_000


class Cut(NamedTuple):
    """One cut: what had been acknowledged, what was found, and what is wrong about it."""

    acknowledged: int
    found: int
    fault: str = ""


def values_of(step: int, rank: int = 0, size: int = 400) -> dict[str, object]:
    """Return what the training state is at a step: known, so that a wrong one shows."""
    drawn = np.random.default_rng([step, rank])
    return {
        "step": step,
        "weights": [drawn.standard_normal(size), drawn.integers(0, 9, (3, 5))],
        "optimiser": {0: (drawn.random(), None), "name": f"rank {rank}"},
        "order": drawn.bytes(50),
    }


def same(found: object, expected: object) -> bool:
    """Tell whether two values are alike to the last bit and in every type."""
    if type(found) is not type(expected):
        return False
    if isinstance(found, np.ndarray) and isinstance(expected, np.ndarray):
        return found.dtype == expected.dtype and np.array_equal(found, expected)
    if isinstance(found, dict) and isinstance(expected, dict):
        return list(found) == list(expected) and all(same(found[k], expected[k]) for k in found)
    if isinstance(found, list | tuple) and isinstance(expected, list | tuple):
        pairs = zip(found, expected, strict=False)
        return len(found) == len(expected) and all(same(one, other) for one, other in pairs)
    return found == expected


def check(files: Files, folder: Path, acknowledged: int, ranks: int, size: int = 400) -> Cut:
    """Load as the next life would, and compare."""
    found = 0
    for rank in range(ranks):
        try:
            loaded = load(folder, rank=rank, ranks=ranks, files=files)
        except CheckpointError as error:
            return Cut(acknowledged, 0, f"load failed: {error}")
        step = loaded.step if loaded else 0
        if step < acknowledged:
            return Cut(acknowledged, step, f"step {acknowledged} was acknowledged, {step} is left")
        if rank and step != found:
            return Cut(acknowledged, step, f"rank {rank} loads step {step}, another {found}")
        if loaded and not same(loaded.values, values_of(step, rank, size)):
            return Cut(acknowledged, step, f"step {step} loads with wrong values")
        found = step
    return Cut(acknowledged, found)


def live(disk: ForgetfulDisk, first: int, ranks: int) -> int:
    """Save a few steps, and return the last that was acknowledged before the power went."""
    acknowledged = [first] * ranks

    def one_rank(rank: int) -> None:
        how = How(files=disk, attempt=1, wait_s=WAIT_S)
        for step in range(first + 1, first + 1 + SAVES):
            try:
                save(FOLDER, step, values_of(step, rank), rank=rank, ranks=ranks, how=how)
            except PowerCut:
                return
            acknowledged[rank] = step

    threads = [Thread(target=one_rank, args=(rank,)) for rank in range(1, ranks)]
    for thread in threads:
        thread.start()
    one_rank(0)
    for thread in threads:
        thread.join()
    return max(acknowledged)


def cut_power(
    seed: int, ranks: int, make: Callable[[], ForgetfulDisk] = ForgetfulDisk, lives: int = 3
) -> list[Cut]:
    """Cut the power in each of several lives, each on what the one before left."""
    chance = random.Random(seed)
    whole = make()
    live(whole, 0, ranks)
    disk, first, cuts = make(), 0, list[Cut]()
    for _ in range(lives):
        disk.operations = 0
        disk.cut_at = chance.randrange(whole.operations)
        acknowledged = live(disk, first, ranks)
        disk = disk.after_power_cut(chance.randrange(2**32))
        cuts.append(check(disk, FOLDER, acknowledged, ranks))
        first = cuts[-1].found
        if cuts[-1].fault:
            break
    return cuts


def kill(folder: Path, attempt: int, chance: random.Random) -> Cut:
    """Kill a process that saves all the time, and look at what it left."""
    child = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.checkpoint_crashes", "--child", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TENFOLD_ATTEMPT": str(attempt)},
        cwd=Path(__file__).parents[1],
    )
    assert child.stdout is not None
    begun = int(child.stdout.readline())
    sleep(chance.uniform(0, 0.4))
    child.send_signal(signal.SIGKILL)
    lines = child.stdout.read().splitlines(keepends=True)
    child.wait()
    child.stdout.close()
    whole = [int(line) for line in lines if line.endswith("\n")]
    return check(DISK, folder, max([begun, *whole]), 1, CHILD_SIZE)


def child(folder: Path) -> None:
    """Save without end, and say each step when its `save` has returned."""
    begun = load(folder)
    step = begun.step if begun else 0
    print(step, flush=True)
    while True:
        step += 1
        save(folder, step, values_of(step, 0, CHILD_SIZE))
        print(step, flush=True)


def measure(points: int, kills: int, seed: int = 0) -> tuple[list[Cut], list[Cut]]:
    """Return the cuts of the power and those by SIGKILL."""
    powered: list[Cut] = []
    at = 0
    while len(powered) < points:
        powered += cut_power(seed + at, RANKS[at % len(RANKS)])
        at += 1
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        killed = [kill(Path(place) / "run", attempt, chance) for attempt in range(1, kills + 1)]
    return powered[:points], killed


def show(powered: list[Cut], killed: list[Cut]) -> int:
    """Print what was found, and return how many cuts left something wrong."""
    for name, cuts in (("power cut", powered), ("killed", killed)):
        wrong = [one for one in cuts if one.fault]
        newer = sum(one.found > one.acknowledged for one in cuts)
        print(
            f"{name}: {len(cuts)} times, {len(wrong)} left a checkpoint that loads wrong or is "
            f"lost; {newer} found a step newer than the last acknowledged"
        )
        for one in wrong[:10]:
            print(f"  {one.fault}")
    return sum(bool(one.fault) for one in (*powered, *killed))


def run(limits: dict[str, float]) -> list[Verdict]:
    powered, killed = measure(POINTS, KILLS)
    faults = show(powered, killed)
    return [
        Verdict("checkpoints that load wrong", faults, limits["wrong_most"]),
        Verdict("power cuts", len(powered), at_least=limits["points_least"]),
        Verdict("kills", len(killed), at_least=limits["kills_least"]),
    ]


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args(words)
    if asked.child:
        child(asked.child)
    start_s = perf_counter()
    faults = show(*measure(asked.points, asked.kills, asked.seed))
    print(f"{perf_counter() - start_s:.0f} s")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
