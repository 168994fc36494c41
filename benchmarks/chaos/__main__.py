"""Everything that must survive being killed, part by part, with a verdict each.

    ./dev chaos                                          all of it, about 110 minutes
    ./dev chaos kills --jobs 200 --kills 10 --seed 7     one part of it, and less

kills        real jobs through `tenfold up`, which is killed again and again
recovery     two processes that train, killed again and again
worlds       the control plane over stores, executors and clocks that fail
journal      the journal after a crash at each of its writes
checkpoints  checkpoints after a cut of the power or a kill in the middle of saving
leaders      two control planes on one PostgreSQL: the leader is killed, paused, and cut off
objects      an object store: kill -9 of any process under load; then tiers change under load
storm        an hour of jobs, kills, a hostile team, a full disk, database restarts and clock jumps
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

from benchmarks import checkpoint_crashes, journal_faults, live_soak
from benchmarks.chaos import kills, leaders, recovery, storm
from benchmarks.chaos.objects import changes
from benchmarks.chaos.objects import kills as object_kills
from benchmarks.verdict import Verdict

NONE = 0.0


def part_kills(asked: argparse.Namespace) -> list[Verdict]:
    ask = kills.Ask(jobs=asked.jobs, kills=asked.kills, seed=asked.seed)
    with tempfile.TemporaryDirectory(prefix="tenfold-chaos-") as folder:
        found = kills.Soak(Path(folder), ask).run()
    for line in kills.lines(found):
        print(line)
    return [
        Verdict("kills: laws broken", found.broken, NONE),
        Verdict("kills: jobs acknowledged", found.acknowledged, at_least=asked.jobs),
        Verdict("kills: controllers killed", found.kills, at_least=asked.kills),
        Verdict("kills: processes adopted", found.ruling.adopted, at_least=1),
    ]


def part_recovery(asked: argparse.Namespace) -> list[Verdict]:
    missing = recovery.missing()
    if missing:
        print(f"not run: {missing}")
        return []
    with tempfile.TemporaryDirectory(prefix="tenfold-chaos-") as folder:
        found = recovery.Recovery(Path(folder), recovery.Ask(asked.train_kills, asked.seed)).run()
    print(recovery.line(found))
    return [
        Verdict("recovery: kills", found.kills, at_least=asked.train_kills),
        Verdict("recovery: restarts that lost more than an interval", len(found.beyond), NONE),
        Verdict("recovery: checkpoints that do not load", found.invalid, NONE),
        Verdict("recovery: final weights differ", int(not found.same), NONE),
    ]


def part_worlds(asked: argparse.Namespace) -> list[Verdict]:
    tally = live_soak.soak(asked.seed, asked.worlds)
    print(tally.line())
    return [
        Verdict("worlds: laws broken", tally.broken, NONE),
        Verdict("worlds: seeds", tally.worlds, at_least=asked.worlds),
    ]


def part_journal(asked: argparse.Namespace) -> list[Verdict]:
    words = ["--seed", str(asked.seed), "--rounds", str(asked.rounds)]
    return [Verdict("journal: crashes that lose or spoil", journal_faults.main(words), NONE)]


def part_checkpoints(asked: argparse.Namespace) -> list[Verdict]:
    powered, killed = checkpoint_crashes.measure(asked.points, checkpoint_crashes.KILLS, asked.seed)
    wrong = checkpoint_crashes.show(powered, killed)
    return [
        Verdict("checkpoints: load wrong or are lost", wrong, NONE),
        Verdict("checkpoints: points", len(powered), at_least=asked.points),
    ]


def part_objects(asked: argparse.Namespace) -> list[Verdict]:
    print(f"seed {asked.seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tenfold-chaos-") as folder:
        ask = object_kills.Ask(kills=asked.object_kills, seed=asked.seed)
        found = object_kills.Soak(Path(folder), ask).run()
    for line in object_kills.lines(found):
        print(line)
    with tempfile.TemporaryDirectory(prefix="tenfold-chaos-") as folder:
        changed = changes.Changes(Path(folder), changes.Ask(seed=asked.seed)).run()
    for line in changes.lines(changed):
        print(line)
    return [
        Verdict("objects: kills", sum(found.kills.values()), at_least=asked.object_kills),
        Verdict("objects: acknowledged, but lost or wrong", len(found.wrong), NONE),
        Verdict("objects: answers that no kill explains", len(found.refused), NONE),
        Verdict("objects: commands or processes with problems", len(found.problems), NONE),
        Verdict("objects: blobs with too few shards", len(found.lost_shards), NONE),
        Verdict("objects: lost with the catalogue", len(found.rebuilt_wrong), NONE),
        Verdict("objects: requests failed while tiers change", len(changed.failures), NONE),
        *(
            Verdict(f"objects: {one.name}, bytes over the fewest", one.over_fewest, 1.5)
            for one in changed.changes
        ),
    ]


def part_storm(asked: argparse.Namespace) -> list[Verdict]:
    with tempfile.TemporaryDirectory(prefix="tenfold-chaos-") as folder:
        found = storm.run(Path(folder), storm.Ask(minutes=asked.minutes, seed=asked.seed))
    for line in storm.lines(found):
        print(line)
    return storm.verdicts(found)


def part_leaders(asked: argparse.Namespace) -> list[Verdict]:
    lacks = leaders.missing()
    if lacks:
        print(f"not run: {lacks}")
        return []
    ask = leaders.Ask(kills=asked.leader_kills, pauses=asked.pauses, seed=asked.seed)
    with tempfile.TemporaryDirectory(prefix="tenfold-chaos-") as folder:
        found = leaders.measure(Path(folder), ask)
    for line in leaders.lines(found):
        print(line)
    return leaders.verdicts(found, ask)


PARTS: dict[str, Callable[[argparse.Namespace], list[Verdict]]] = {
    "kills": part_kills,
    "recovery": part_recovery,
    "worlds": part_worlds,
    "journal": part_journal,
    "checkpoints": part_checkpoints,
    "leaders": part_leaders,
    "objects": part_objects,
    "storm": part_storm,
}


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="./dev chaos", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--jobs", type=int, default=kills.JOBS)
    parser.add_argument("--kills", type=int, default=kills.KILLS, help="of the controller")
    parser.add_argument("--seed", type=int, default=kills.SEED)
    parser.add_argument("--train-kills", type=int, default=recovery.KILLS)
    parser.add_argument("--worlds", type=int, default=live_soak.SEEDS)
    parser.add_argument("--rounds", type=int, default=3, help="crashes at each write")
    parser.add_argument("--points", type=int, default=checkpoint_crashes.POINTS)
    parser.add_argument("--leader-kills", type=int, default=leaders.KILLS)
    parser.add_argument("--pauses", type=int, default=leaders.PAUSES, help="of the leader")
    parser.add_argument("--object-kills", type=int, default=object_kills.KILLS)
    parser.add_argument("--minutes", type=float, default=storm.MINUTES, help="of the storm")
    asked = parser.parse_args(words)
    unknown = [name for name in asked.parts if name not in PARTS]
    if unknown:
        parser.error(f"there is no part `{unknown[0]}`; choose from {', '.join(PARTS)}")
    verdicts: list[Verdict] = []
    for name in asked.parts or PARTS:
        print(f"\n== {name}", flush=True)
        began_s = perf_counter()
        verdicts += PARTS[name](asked)
        print(f"{perf_counter() - began_s:.0f} s", flush=True)
    print()
    for verdict in verdicts:
        print(verdict.line())
    return 0 if all(verdict.held for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
