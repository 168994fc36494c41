"""Twenty thousand random small worlds, each with fifty jobs and three faults or more.

Every law of the core is watched at every cycle: nothing over-allocated, gangs whole, no order
repeated, no job lost, room used, the kept index the one that would be built. Every third world
is governed, and there the laws of quotas, stops, promises and windows are watched too. The
comparison with a fresh decider, and the search for somebody who is owed room, are made at
every `--every`-th cycle. At the end every law is listed with how often it was looked at; where
all policies had their turn, a law that never was fails the run. A world that breaks a law
prints the one line that runs it again, with both at every cycle.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import NamedTuple

from tenfold.model.policy.policy import POLICIES, PolicyName
from tests.rigs.broken import never_met, table, times
from tests.rigs.soak import policy_of, soak_one

CHUNK, EVERY, SHOWN_MOST = 50, 5, 20
WORLDS = 20_000
WORLDS_FEW = 1_000
"""So many worlds meet every law, by a wide margin; fewer may miss one by chance."""

NO_LOOKS: Counter[str] = Counter()


class Broken(NamedTuple):
    seed: int
    policy: PolicyName
    why: str

    def line(self) -> str:
        again = f"./dev soak --seed {self.seed} --worlds 1 --policy {self.policy}"
        return f"BROKEN {self.why}\n  again: {again}"


class Tally(NamedTuple):
    worlds: int = 0
    governed: int = 0
    cycles: int = 0
    events: int = 0
    stops: int = 0
    refusals: int = 0
    broken: tuple[Broken, ...] = ()
    laws: Counter[str] = NO_LOOKS

    def plus(self, other: "Tally") -> "Tally":
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


Chunk = tuple[range, PolicyName | None, int]


def soak_chunk(chunk: Chunk) -> Tally:
    seeds, named, every = chunk
    tally, before = Tally(), Counter(times)
    for seed in seeds:
        policy = named or policy_of(seed)
        is_governed = int(policy == "governed")
        try:
            one = soak_one(seed, policy, every=every)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            tally = tally.plus(Tally(1, is_governed, broken=(Broken(seed, policy, why),)))
        else:
            tally = tally.plus(
                Tally(1, is_governed, one.cycles, one.events, one.stops, one.refusals)
            )
    return tally.plus(Tally(laws=times - before))


class Ask(NamedTuple):
    first: int
    worlds: int
    named: PolicyName | None
    every: int

    def chunks(self) -> Iterator[Chunk]:
        end = self.first + self.worlds
        for seed in range(self.first, end, CHUNK):
            yield range(seed, min(seed + CHUNK, end)), self.named, self.every


def soak(ask: Ask) -> Tally:
    """Run the worlds on all cores, and say now and then how far it has come."""
    start_s, total, told = perf_counter(), Tally(), 0
    worlds = ask.worlds
    workers = min(os.cpu_count() or 1, -(-worlds // CHUNK))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for tally in pool.map(soak_chunk, ask.chunks()):
            for one in tally.broken[: max(0, SHOWN_MOST - len(total.broken))]:
                print(one.line(), flush=True)
            total = total.plus(tally)
            if total.worlds * 10 // worlds > told:
                told = total.worlds * 10 // worlds
                print(f"{total.worlds} worlds, {perf_counter() - start_s:.0f} s", flush=True)
    return total


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__)
    parser.add_argument("--worlds", type=int, default=WORLDS)
    parser.add_argument("--seed", type=int, default=0, help="that of the first world")
    parser.add_argument("--policy", choices=POLICIES, help="one for all, not each in turn")
    parser.add_argument("--every", type=int, help="cycles from one fresh decider to the next")
    asked = parser.parse_args(words)
    every = asked.every or (1 if asked.worlds == 1 else EVERY)
    start_s = perf_counter()
    total = soak(Ask(asked.seed, asked.worlds, asked.policy, every))
    print(
        f"{total.worlds} worlds from seed {asked.seed}, {asked.policy or 'each policy in turn'}, "
        f"{total.governed} of them governed: "
        f"{total.cycles} cycles, {total.events} facts, {total.stops} runs cut short, "
        f"{total.refusals} jobs refused, {perf_counter() - start_s:.0f} s; "
        f"{len(total.broken)} broken"
    )
    print(table(total.laws))
    missed = never_met(total.laws) if asked.policy is None and asked.worlds >= WORLDS_FEW else []
    for law in missed:
        print(f"NEVER LOOKED AT {law}")
    return 1 if total.broken or missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
