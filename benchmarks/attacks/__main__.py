"""Attack a real control plane of one source tree, or of several in turn.

    ./dev soak attacks                                  this tree
    ./dev soak attacks --tree ../older --tree . --only 3

One line for each attack: whether it held, what was tried, what came back and was measured, and in
brackets what had to be so.

1 one request stops the loop      4 retries without an end       7 characters that act on terminals
2 folders swapped for links       5 files of jobs that are read  8 a journal that is damaged
3 small requests, large journals  6 storms of one team           9 the small ones
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from time import perf_counter

from benchmarks.attacks import (
    jobs,
    journals,
    small,
    storms,
    submissions,
    swapped_folders,
    terminals,
)
from benchmarks.attacks.target import Finding, Tree

HERE = Path(__file__).parents[2]
ATTACKS: dict[int, tuple[Callable[[Tree], Iterator[Finding]], ...]] = {
    1: (submissions.stopped_loop,),
    2: (swapped_folders.swapped,),
    3: (submissions.amplification,),
    4: (jobs.retries,),
    5: (jobs.sparse_manifests,),
    6: (storms.half_sent_bodies, storms.unread_watchers),
    7: (terminals.terminals,),
    8: (journals.damaged,),
    9: (
        small.requests,
        small.unready,
        small.cancelled,
        small.handshakes,
        jobs.control_groups,
        jobs.abandoned_groups,
    ),
}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev soak attacks",
        description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument(
        "--tree", type=Path, action="append", help="checkout to attack (default: this one)"
    )
    parser.add_argument(
        "--only", type=int, action="append", choices=ATTACKS, help="run this attack alone"
    )
    asked = parser.parse_args(words)
    trees = [Tree(path.resolve().name, path.resolve()) for path in asked.tree or [HERE]]
    for tree in trees:
        if not (tree.path / "src" / "tenfold").is_dir():
            parser.error(f"{tree.path} has no src/tenfold")
    broken = dict.fromkeys((tree.name for tree in trees), 0)
    for number in asked.only or ATTACKS:
        for attack in ATTACKS[number]:
            for tree in trees:
                broken[tree.name] += _run(number, attack, tree)
    for name, count in broken.items():
        print(f"{name}: {count} broken")
    return 1 if any(broken.values()) else 0


def _run(number: int, attack: Callable[[Tree], Iterator[Finding]], tree: Tree) -> int:
    """Run an attack; return how many of its findings broke their bound."""
    broken, began_s = 0, perf_counter()
    for found in attack(tree):
        broken += not found.held
        word = "held  " if found.held else "broken"
        print(
            f"{word} {number} {tree.name}: {found.tried}: {found.came} [{found.bound}]", flush=True
        )
    took_s, (load, *_) = perf_counter() - began_s, os.getloadavg()
    print(f"       {number} {tree.name}: {took_s:.0f} s, load {load:.1f}", flush=True)
    return broken


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
