"""The kill -9 soak, in small; and that what it must find, it finds."""

import os
import shutil
from pathlib import Path
from random import Random

import pytest

from benchmarks.chaos.judge import History, Ruling, judge
from benchmarks.chaos.kills import Ask, Soak, lines
from benchmarks.chaos.people import People
from benchmarks.chaos.plane import Plane
from benchmarks.chaos.replayed import CUT, closed
from benchmarks.chaos.victims import Victims
from benchmarks.chaos.witness import KILLED, Witness, read
from tenfold.engine.decision_log import Cycle
from tenfold.engine.recording import Line
from tenfold.journal.rows import AttemptRow, JobRow
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, JobStarted, JobSubmitted, NodeJoined
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.units import Millis

REQUIRED = os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1"
MISSING = [name for name in ("flock", "setsid") if shutil.which(name) is None]
NAME = JobId("sleep-1")
AT = Millis(1)


@pytest.mark.skipif(bool(MISSING) and not REQUIRED, reason=f"no {MISSING}: install util-linux")
def test_no_acknowledged_job_is_lost_or_run_twice_while_everything_is_killed(tmp_path: Path):
    found = Soak(tmp_path, Ask(jobs=40, kills=4, seed=3)).run()
    told = "\n".join(lines(found))
    assert found.broken == 0, told
    assert (found.acknowledged, found.kills) == (40, 4), told
    assert sum(found.ruling.states.values()) == found.ruling.submitted >= 40, told


@pytest.fixture
def bench(tmp_path: Path) -> tuple[Witness, People, Victims]:
    """A soak that was never run, to be told lies."""
    witness = Witness(tmp_path / "witness")
    people = People(Plane(tmp_path / "home", 1), witness, 1, Random(1))
    people.told.append(NAME)
    return witness, people, Victims(tmp_path / "run", Random(1))


def past(state: str = "succeeded", reason: str = "completed") -> History:
    """A journal in which one job ran once."""
    job = Job(id=NAME, shape=shape_of(0), submitted_ms=AT)
    row = JobRow(
        **{"id": NAME, "seq": 1, "number": 1, "team": "", "user_name": "", "name": "sleep"},
        **{"state": state, "gpus_milli": 0, "submitted_ms": 1, "changed_ms": 1, "changed_seq": 1},
        attempts=1,
    )
    attempt = AttemptRow(job_id=NAME, number=1, ordered_ms=1, ended_ms=2, reason=reason)
    return History(events=[JobSubmitted(AT, job)], jobs={NAME: row}, attempts={NAME: (attempt,)})


def broken(ruling: Ruling) -> list[str]:
    return [law for law, found in ruling.faults.items() if found]


def test_a_second_run_at_the_same_time_is_found(bench: tuple[Witness, People, Victims]):
    witness, people, victims = bench
    witness.runs.write_text("begin sleep-1 1 0 11\ntwice sleep-1 1 0 12\nbegin sleep-1 1 0 12\n")
    found = broken(judge(past(), read(witness.runs), people, victims))
    assert "two runs at once" in found
    assert "an attempt begun twice" in found
    assert "succeeded without a run to its end" in found


def test_a_job_without_an_end_and_one_that_is_not_there_are_found(
    bench: tuple[Witness, People, Victims],
):
    witness, people, victims = bench
    people.told.append("true-2")
    found = broken(judge(past(), read(witness.runs), people, victims))
    assert "acknowledged and lost" in found
    assert "not one end" in found
    assert "left in the fleet" in found


def test_a_run_that_lives_through_a_kill_is_adopted_or_somebody_is_to_blame(
    bench: tuple[Witness, People, Victims],
):
    witness, people, victims = bench
    witness.runs.write_text(f"begin sleep-1 1 0 11\n{KILLED}\nend sleep-1 1 0 11\n")
    told = read(witness.runs)
    assert judge(past(), told, people, victims).adopted == 1
    lost = judge(past(reason="node-lost"), told, people, victims)
    assert lost.adopted == 0
    assert "lived through a kill and was taken for lost" in broken(lost)
    victims.supervisors.add((NAME, 1))
    assert "lost, and its supervisor was not killed" not in broken(
        judge(past(reason="node-lost"), told, people, victims)
    )


def test_a_cycle_that_a_kill_cut_off_is_closed_where_the_next_writer_begins():
    node = Node(id=NodeId("n"), pool=PoolId("p"), site=SiteId("s"), gpus=2)
    first, second = (
        Job(id=JobId(name), shape=shape_of(1), submitted_ms=AT) for name in ("first", "second")
    )
    orders = [StartJob(one.id, (Slot(node.id, 1),)) for one in (first, second)]
    lines: list[Line] = [
        NodeJoined(AT, node),
        JobSubmitted(AT, first),
        JobSubmitted(AT, second),
        ActionOrdered(AT, orders[0]),
        JobStarted(AT, first.id),
        ActionOrdered(AT, orders[1]),
        Cycle(AT, "place", 6, 0, 1, tuple(orders)),
    ]
    cut = Cycle(AT, CUT, 4, 1, 0, (orders[0],))
    rest = Cycle(AT, "place", 6, 0, 1, (orders[1],))
    assert list(closed(iter(lines), [1, 5])) == [*lines[:4], cut, *lines[4:6], rest]
    assert list(closed(iter(lines), [1])) == lines
