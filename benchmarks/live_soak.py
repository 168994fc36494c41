"""The control plane in a world of chance: stores, executors and clocks that fail.

The very control plane that runs a live fleet, with time and hands that are drawn from a seed.
Whatever is called may fail before or after it took effect, and the controller may be killed
between any two calls. Watched are the laws of the live world: what was acknowledged is there
and comes to one end, no job runs twice at once, no device is given twice, the journal replays
to the same fleet. A seed that breaks one prints the line that runs it again.
"""

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter
from typing import NamedTuple

from benchmarks.chaos.chance import (
    GPUS,
    NODES,
    Broken,
    Chance,
    ChanceClock,
    ChanceExecutor,
    ChanceStore,
    Disk,
    Hands,
    Killed,
    Users,
    restored,
)
from tenfold.compose.control_plane import ControlPlane, Parts
from tenfold.compose.node_rules import cordon_rule_of
from tenfold.compose.policies import placing_decider
from tenfold.decide.recover.lemons import CordonThresholds, cordons_left
from tenfold.engine.digest import fleet_digest
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet
from tenfold.live.inbox import Inbox, JoinNodes, SetNodeState
from tenfold.model.events import (
    JobCancelled,
    JobEnded,
    JobRefused,
    JobResized,
    JobSubmitted,
    NodeCordoned,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.job import Job
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.policy.policy import Policy, PolicyName
from tenfold.model.units import Millis

SEEDS, CHUNK, SHOWN_MOST = 5_000, 50, 10
POLICIES: tuple[PolicyName, ...] = ("fifo", "las", "fair", "tenfold", "governed")
"""Those that ask for nothing that only a replay knows."""
BLAMING = CordonThresholds(causes_least=1, times_pool=0)
"""As quick to blame as can be: in a world of chance no node stands out for long."""


def soak_one(seed: int) -> Chance:
    """Run one world to its end, or raise `Broken`."""
    chance, disk, inbox = Chance(seed), Disk(), Inbox()
    hands, users = Hands(chance), Users(chance, inbox)
    policy = Policy(name=POLICIES[seed % len(POLICIES)])

    def idle() -> None:
        users.act()
        if hands.next_ms() is None:
            # Somebody looks after nodes that were taken out, when nothing else goes on.
            for node in restored(disk.events).fleet.failure_log.blamed:
                inbox.put(SetNodeState(node, "up"), lambda _: None)
        if not users.left and hands.next_ms() is None and not _unfinished(disk):
            inbox.close()

    def saved_at(job: Job, work: RunSpec) -> Millis | None:
        return Millis(chance.now_ms - 1) if work.checkpoint and chance.happens(0.5) else None

    parts = Parts(
        store=lambda: ChanceStore(disk, chance),
        executor=lambda: ChanceExecutor(hands, chance),
        clock=lambda least_ms: ChanceClock(chance, hands, least_ms, idle),
        deciders=lambda: [placing_decider(policy)],
        saved_at=saved_at,
        judge=cordon_rule_of(BLAMING),
    )
    nodes = tuple(
        Node(
            id=NodeId(f"n{number}"),
            pool=PoolId("p"),
            site=SiteId("s"),
            gpus=GPUS,
            cpus_milli=8_000,
        )
        for number in range(1, NODES + 1)
    )
    while not inbox.is_closed:
        if len(restored(disk.events).fleet.nodes) < NODES:
            inbox.put(JoinNodes(nodes), lambda _: None)
        try:
            ControlPlane(parts, inbox).run_once()
        except (Killed, OSError):
            chance.now_ms += 1_000
            # What waited in the inbox of a killed controller is gone, and nobody was told.
            inbox.drain()
            if chance.happens(0.1):
                chance.now_ms -= 500
    _judge(disk, hands, users)
    chance.resizes = sum(isinstance(event, JobResized) for event in disk.events)
    chance.blamed = _judge_blame(disk)
    return chance


def _unfinished(disk: Disk) -> bool:
    fleet = restored(disk.events).fleet
    return bool(fleet.pending or fleet.orders or fleet.running)


def _judge(disk: Disk, hands: Hands, users: Users) -> None:
    ends: dict[JobId, int] = {}
    submitted: list[JobId] = []
    for event in disk.events:
        if isinstance(event, JobEnded | JobCancelled | JobRefused):
            ends[event.job_id] = ends.get(event.job_id, 0) + 1
        elif isinstance(event, JobSubmitted):
            submitted.append(event.job.id)
    for job_id in users.told:
        if job_id not in submitted:
            raise Broken(f"`{job_id}` was acknowledged and is not in the journal")
    for job_id in submitted:
        if ends.get(job_id, 0) != 1:
            raise Broken(f"`{job_id}` came to {ends.get(job_id, 0)} ends")
    first, again = restored(disk.events).fleet, restored(disk.events).fleet
    check(first)
    if fleet_digest(first) != fleet_digest(again):
        raise Broken("the journal replays to two fleets")
    alive = [key for key, one in hands.attempts.items() if one.end is None]
    if alive:
        raise Broken(f"attempts {alive} outlive their jobs")


def _judge_blame(disk: Disk) -> int:
    """Return how many nodes were taken out by themselves; never more than the rule allows."""
    fleet, count = Fleet(), 0
    for event in disk.events:
        fleet.apply(event)
        if isinstance(event, NodeCordoned):
            count += 1
            if cordons_left(fleet, fleet.failure_log, BLAMING) < 0:
                raise Broken(f"{len(fleet.failure_log.blamed)} nodes are out of use at once")
            if event.node_id not in fleet.failure_log.blamed:
                raise Broken(f"`{event.node_id}` was cordoned without a reason")
    return count


class Tally(NamedTuple):
    worlds: int = 0
    kills: int = 0
    faults: int = 0
    resizes: int = 0
    blamed: int = 0
    seconds: float = 0.0
    wrong: tuple[str, ...] = ()

    @property
    def broken(self) -> int:
        return len(self.wrong)

    def plus(self, other: "Tally") -> "Tally":
        return Tally(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def line(self) -> str:
        return (
            f"{self.worlds:,} worlds, {self.kills:,} kills, {self.faults:,} failed calls, "
            f"{self.resizes:,} resizes and {self.blamed:,} nodes blamed "
            f"in {self.seconds:.0f} s: {self.broken} broken"
        )


def soak_chunk(seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        try:
            one = soak_one(seed)
        except Exception as why:
            again = f"./dev soak live --seed {seed} --seeds 1"
            said = f"BROKEN {type(why).__name__} {why}\n  again: {again}"
            tally = tally.plus(Tally(1, wrong=(said,)))
        else:
            tally = tally.plus(Tally(1, one.kills, one.faults, one.resizes, one.blamed))
    return tally


def soak(first: int, worlds: int) -> Tally:
    """Run the worlds on all cores; those that break a law are printed as they are found."""
    start_s, total, end = perf_counter(), Tally(), first + worlds
    chunks = [range(at, min(at + CHUNK, end)) for at in range(first, end, CHUNK)]
    workers = min(os.cpu_count() or 1, len(chunks))
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        for tally in pool.map(soak_chunk, chunks):
            for said in tally.wrong[: max(0, SHOWN_MOST - total.broken)]:
                print(said, flush=True)
            total = total.plus(tally)
    return total._replace(seconds=perf_counter() - start_s)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(words)
    total = soak(asked.seed, asked.seeds)
    print(total.line())
    return 1 if total.broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
