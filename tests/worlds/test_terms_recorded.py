"""Resizes, promises and idle sessions as they were recorded: replayed, told and compared."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from replay_builders import NODES, crowd, node
from restless import Restless
from tenfold.compose.simulation import SimRequest, SimResult, simulate
from tenfold.engine.explain import JobHistory, explain
from tenfold.engine.recording import Line, Recording, events_of
from tenfold.engine.replay import describe, rebuild, replay
from tenfold.files.records.replay_bundle import BundleHeader, open_new_bundle, read_bundle
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    JobEnded,
    JobIdled,
    JobResized,
    JobStarted,
    JobSubmitted,
    NodeJoined,
)
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job, Slot, shape_of
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, MINUTE, SECOND, Millis
from tenfold.report.reasons.render import render
from tenfold.sim.world import SimSettings
from tenfold.study.replay.diff import figures_of, runs_of

N0, N1 = NodeId("n0"), NodeId("n1")
ONE = JobId("one")
ROUGH = SimSettings(restart_cost_ms=Millis(MINUTE), start_delay_ms=Millis(7 * SECOND))


def jobs() -> list[Job]:
    """A crowd of which every other is elastic, and every fifth a session that idles."""
    found: list[Job] = []
    for one in crowd():
        terms = Terms(least_gpus=1, most_gpus=16) if one.seq % 2 else None
        if one.seq % 5 == 0 and one.duration_ms:
            terms = Terms(kind="interactive", busy_ms=Millis(one.duration_ms // 2))
        found.append(replace(one, shape=shape_of(min(one.shape.gpus, 8)), terms=terms))
    return found


def recorded(settings: SimSettings) -> tuple[SimResult, Sequence[Line]]:
    recording = Recording()
    request = SimRequest(nodes=NODES, jobs=jobs(), settings=settings)
    result = simulate(
        request, journal=recording, witnesses=[recording], around=lambda _: Restless()
    )
    return result, recording.lines


@pytest.mark.parametrize("settings", [SimSettings(), ROUGH], ids=["prompt", "rough"])
def test_what_was_decided_is_decided_again_on_the_record(settings: SimSettings):
    result, lines = recorded(settings)
    assert result.summary.resizes > 0
    again = replay(lines, Restless())
    assert again.difference is None
    assert again.orders == sum(isinstance(line, ActionOrdered) for line in lines)


def test_a_bundle_keeps_every_new_fact(tmp_path: Path):
    path = tmp_path / "run.jsonl.gz"
    fleet_before, lines = recorded(ROUGH)
    with open_new_bundle(path, BundleHeader()) as writer:
        request = SimRequest(nodes=NODES, jobs=jobs(), settings=ROUGH)
        result = simulate(request, journal=writer, witnesses=[writer], around=lambda _: Restless())
        writer.finish(result.fleet)
    bundle = read_bundle(path)
    assert bundle.lines == lines
    again = rebuild(bundle.lines)
    assert isinstance(again, Fleet)
    assert again.version == fleet_before.fleet.version


def test_two_ways_to_add_up_a_run_agree():
    result, lines = recorded(ROUGH)
    figures = figures_of(runs_of(events_of(lines)), 32)
    summary = result.summary
    assert figures.gpu_utilization == pytest.approx(summary.gpu_utilization)
    assert figures.avg_wait_s == pytest.approx(summary.avg_wait_s)
    assert figures.preemptions == summary.preemptions


def story(*lines: Line, terms: Terms) -> JobHistory:
    one = Job(id=ONE, shape=shape_of(8), submitted_ms=Millis(0), terms=terms)
    nodes = [NodeJoined(Millis(0), node("n0")), NodeJoined(Millis(0), node("n1"))]
    told = explain([*nodes, JobSubmitted(Millis(0), one), *lines], ONE)
    assert told is not None
    return told


def test_a_story_tells_of_promises_and_resizes():
    both = (Slot(N0, 8), Slot(N1, 8))
    resize = ResizeJob(
        ONE, (Slot(N0, 4),), Reason("shrunk", sentence="job `two` is within its quota")
    )
    told = story(
        ActionOrdered(Millis(0), ReserveStart(ONE, both, Millis(3 * HOUR), Millis(0))),
        ActionOrdered(Millis(HOUR), StartJob(ONE, both)),
        JobStarted(Millis(HOUR), ONE),
        ActionOrdered(Millis(2 * HOUR), resize),
        JobResized(Millis(2 * HOUR), ONE),
        terms=Terms(least_gpus=4, most_gpus=16),
    )
    assert [stage.code for stage in told.stages] == [
        "submitted",
        "promised",
        "waited",
        "start-ordered",
        "started",
        "resized",
    ]
    assert render(told.stages[1].why) == "reserved for it: starts within 3h 00m on `n0`, `n1`"
    assert render(told.stages[5].why) == (
        "from 16 to 4 GPUs on `n0`: job `two` is within its quota"
    )
    assert told.stages[5].nodes == (N0,)


def test_a_story_tells_of_a_session_that_idled_and_was_reclaimed():
    told = story(
        ActionOrdered(Millis(0), StartJob(ONE, (Slot(N0, 8),))),
        JobStarted(Millis(0), ONE),
        JobIdled(Millis(HOUR), ONE, Millis(HOUR)),
        ActionOrdered(
            Millis(2 * HOUR), StopJob(ONE, "idle", Reason("idle", sentence="idle for 60 min"))
        ),
        JobEnded(Millis(2 * HOUR), ONE, "cancelled"),
        terms=Terms(kind="interactive"),
    )
    assert [stage.code for stage in told.stages[3:]] == [
        "idled",
        "stop-ordered",
        "idle-reclaimed",
        "ended",
    ]
    assert render(told.stages[3].why) == "8 GPUs idle"
    assert render(told.stages[5].why) == "idle for 1h 00m; its GPUs were reclaimed"
    assert told.state == "ended"


def test_room_is_told_to_come_from_a_job_that_shrank():
    two = Job(id=JobId("two"), shape=shape_of(4), submitted_ms=Millis(5), seq=1)
    resize = ResizeJob(ONE, (Slot(N0, 4),), Reason("shrunk", sentence=""))
    lines: list[Line] = [
        NodeJoined(Millis(0), node("n0")),
        JobSubmitted(
            Millis(0),
            Job(
                id=ONE,
                shape=shape_of(8),
                submitted_ms=Millis(0),
                terms=Terms(least_gpus=4, most_gpus=8),
            ),
        ),
        ActionOrdered(Millis(0), StartJob(ONE, (Slot(N0, 8),))),
        JobStarted(Millis(0), ONE),
        JobSubmitted(Millis(5), two),
        ActionOrdered(Millis(5), resize),
        JobResized(Millis(6), ONE),
        ActionOrdered(Millis(6), StartJob(two.id, (Slot(N0, 4),))),
    ]
    told = explain(lines, two.id)
    assert told is not None
    assert render(told.stages[-1].why) == "could start when job `one` shrank"


def test_new_orders_are_said_in_words():
    resize = ResizeJob(ONE, (Slot(N0, 4),), Reason("shrunk", sentence="for `two`"))
    assert describe(resize) == "resize `one` to `n0` (shrunk)"
    reservation = ReserveStart(ONE, (Slot(N0, 4), Slot(N1, 4)), Millis(5_000), Millis(0))
    assert describe(reservation) == "reserve a start for `one` at 5,000 ms on `n0`, `n1`"
