"""What was recorded in one world comes out the same in another: simulation and replay."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from replay_builders import ROUGH, crowd, recorded, request, with_lines
from tenfold.compose.policies import placing_decider
from tenfold.compose.simulation import simulate
from tenfold.engine.decision_log import Cycle
from tenfold.engine.digest import fleet_digest
from tenfold.engine.loop import Decider
from tenfold.engine.recording import Line, Recording, iterations_of
from tenfold.engine.replay import InvalidRecord, rebuild, replay
from tenfold.files.records.replay_bundle import Bundle, read_bundle
from tenfold.fleet.check import check
from tenfold.model.actions import StartJob
from tenfold.model.errors import InputError
from tenfold.model.events import ActionOrdered, JobEnded, JobSubmitted
from tenfold.model.policy.policy import POLICIES, Policy, PolicyName
from tenfold.model.units import Millis
from tenfold.sim.world import SimSettings
from tenfold.study.replay.bundle import fleet_in, simulate_recorded, verify
from tenfold.study.replay.diff import figures_of, replay_diff, runs_of
from tenfold.study.replay.rerun import rerun

SETTINGS = [SimSettings(), ROUGH]
WORLDS = ["prompt", "rough"]


@pytest.fixture(name="bundle")
def a_bundle(tmp_path: Path) -> Bundle:
    return recorded(request("las"), tmp_path / "run.jsonl")[1]


@pytest.mark.parametrize("settings", SETTINGS, ids=WORLDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_the_same_policy_decides_the_same_on_recorded_facts(
    policy: PolicyName, settings: SimSettings, tmp_path: Path
):
    result, bundle = recorded(request(policy, settings=settings), tmp_path / "run.jsonl.gz")
    verified = verify(bundle)
    assert verified.difference is None
    assert verified.same
    assert verified.events == result.events
    assert verified.orders > 60


@pytest.mark.parametrize("policy", POLICIES)
def test_shares_of_a_gpu_are_replayed(policy: PolicyName, tmp_path: Path):
    asked = request(policy, jobs=crowd(shares=True), settings=ROUGH)
    _, bundle = recorded(asked, tmp_path / "run.jsonl")
    assert verify(bundle).same


@pytest.mark.parametrize("policy", POLICIES)
def test_a_bundle_read_back_gives_the_same_fleet(policy: PolicyName, tmp_path: Path):
    result, bundle = recorded(request(policy, settings=ROUGH), tmp_path / "run.jsonl.gz")
    fleet = fleet_in(bundle)
    check(fleet)
    assert fleet_digest(fleet) == fleet_digest(result.fleet) == bundle.end.fleet


@pytest.mark.parametrize("settings", SETTINGS, ids=WORLDS)
@pytest.mark.parametrize("policy", POLICIES)
def test_run_again_under_its_own_policy_nothing_differs(
    policy: PolicyName, settings: SimSettings, tmp_path: Path
):
    result, bundle = recorded(request(policy, settings=settings), tmp_path / "run.jsonl")
    again = rerun(bundle, Policy(name=policy))
    diff = replay_diff(again.recorded, again.again, again.gpus)
    assert (diff.earlier.jobs, diff.later.jobs, diff.other_nodes) == (0, 0, 0)
    assert diff.recorded == diff.again
    for name in ("finished", "refused", "preemptions", "failures"):
        assert getattr(diff.recorded, name) == getattr(result.summary, name)
    for name in ("avg_jct_s", "avg_wait_s", "makespan_s", "gpu_utilization"):
        assert getattr(diff.recorded, name) == pytest.approx(getattr(result.summary, name))


def test_a_bundle_holds_what_happened_in_memory_and_no_less(tmp_path: Path):
    in_memory = Recording()
    simulate(request(settings=ROUGH), journal=in_memory, witnesses=[in_memory])
    _, bundle = recorded(request(settings=ROUGH), tmp_path / "run.jsonl.gz")
    assert bundle.lines == in_memory.lines


def test_the_same_run_is_the_same_file(tmp_path: Path):
    for name in ("one.jsonl.gz", "other.jsonl.gz"):
        simulate_recorded(request(settings=ROUGH), bundle=tmp_path / name)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "other.jsonl.gz").read_bytes()


def test_a_replay_needs_no_world_that_knows_how_long_jobs_last(bundle: Bundle):
    """Under `las`, which never looks at durations, facts alone bring back every decision."""
    blind = _without_durations(bundle)
    replayed = replay(blind, _decider("las"))
    assert replayed.difference is None
    assert replayed.cycles == bundle.end.cycles


@pytest.mark.parametrize("policy", ["fifo", "las", "tenfold"])
def test_what_jobs_take_is_read_from_their_runs_where_nobody_knows_it(
    policy: PolicyName, tmp_path: Path
):
    settings = SimSettings(restart_cost_ms=Millis(60_000))
    small = [job for job in request().jobs if job.shape.gpus < 64]
    asked = request(policy, settings=settings, jobs=small)
    _, bundle = recorded(asked, tmp_path / "run.jsonl")
    again = rerun(with_lines(bundle, _without_durations(bundle)), Policy(name=policy))
    assert again.notes == ()
    runs = runs_of(again.again)
    assert figures_of(runs, again.gpus) == figures_of(runs_of(again.recorded), again.gpus)


def test_another_policy_moves_jobs_and_says_which(tmp_path: Path):
    _, bundle = recorded(request("fifo"), tmp_path / "run.jsonl")
    again = rerun(bundle, Policy(name="las"))
    diff = replay_diff(again.recorded, again.again, again.gpus)
    assert diff.earlier.jobs > 0
    assert diff.earlier.most_s >= diff.earlier.mean_s > 0
    assert diff.preemptions_added == diff.again.preemptions > 0
    assert diff.preemptions_avoided == 0
    assert diff.again.avg_wait_s < diff.recorded.avg_wait_s
    moved = [abs(one.start_moved_s) for one in diff.jobs]
    assert moved == sorted(moved, reverse=True)
    assert len(moved) <= 20


def test_an_order_on_another_node_is_caught_with_what_was_seen(bundle: Bundle):
    place = next(at for at, line in enumerate(bundle.lines) if _starts_on(line, "n0"))
    order = bundle.lines[place]
    assert isinstance(order, ActionOrdered)
    assert isinstance(order.action, StartJob)
    moved = replace(order.action, slots=(replace(order.action.slots[0], node="n3"),))
    lines = _renewed(
        [*bundle.lines[:place], replace(order, action=moved), *bundle.lines[place + 1 :]]
    )
    found = replay(lines, _decider("las")).difference
    assert found is not None
    assert found.what == "actions"
    assert f"`{moved.job_id}` on `n3`" in found.sentence
    assert found.seen.pending > 0
    assert found.seen.nodes_up == 4
    assert found.recorded != found.decided


def test_an_order_left_out_is_caught(bundle: Bundle):
    cycle = next(
        at for at, line in enumerate(bundle.lines) if isinstance(line, Cycle) and line.actions
    )
    said = bundle.lines[cycle]
    assert isinstance(said, Cycle)
    lines = [
        *bundle.lines[:cycle],
        replace(said, actions=said.actions[:-1]),
        *bundle.lines[cycle + 1 :],
    ]
    found = replay(lines, _decider("las")).difference
    assert found is not None
    assert "only replayed: " in found.sentence


@pytest.mark.parametrize("field", ["version", "pending", "running", "wake_at_ms"])
def test_a_cycle_that_says_otherwise_is_caught(bundle: Bundle, field: str):
    lines = list(bundle.lines)
    place = max(at for at, line in enumerate(lines) if isinstance(line, Cycle))
    lines[place] = replace(lines[place], **{field: 77})
    found = replay(lines, _decider("las")).difference
    assert found is not None
    assert found.what == ("wake" if field == "wake_at_ms" else "state")
    assert found.cycle == bundle.end.cycles


def test_a_fact_left_out_is_caught(bundle: Bundle):
    """Every single end that is left out: either no fleet follows, or the decisions differ."""
    ends = [at for at, line in enumerate(bundle.lines) if isinstance(line, JobEnded)]
    for place in ends[:20]:
        doctored = with_lines(bundle, [*bundle.lines[:place], *bundle.lines[place + 1 :]])
        try:
            assert not verify(doctored).same
        except InputError as caught:
            assert caught.code == "impossible-fact"


def test_a_changed_duration_is_caught_by_the_fleet_it_ends_in(bundle: Bundle):
    lines = list(bundle.lines)
    place = max(at for at, line in enumerate(lines) if isinstance(line, JobSubmitted))
    event = lines[place]
    assert isinstance(event, JobSubmitted)
    lines[place] = replace(event, job=replace(event.job, duration_ms=Millis(1)))
    verified = verify(with_lines(bundle, lines))
    assert verified.difference is None
    assert not verified.same


def test_a_fact_that_cannot_follow_is_named_by_its_line(bundle: Bundle):
    lines = list(bundle.lines)
    place = max(at for at, line in enumerate(lines) if isinstance(line, JobEnded))
    lines.insert(place, lines[place])
    found = rebuild(lines)
    assert isinstance(found, InvalidRecord)
    with pytest.raises(InputError) as caught:
        verify(with_lines(bundle, lines))
    assert caught.value.code == "impossible-fact"
    assert caught.value.line == found.place + 2


def test_nodes_that_are_not_those_of_the_header_are_refused(bundle: Bundle):
    lines = list(bundle.lines)
    lines[0] = replace(lines[0], node=replace(lines[0].node, gpus=4))
    with pytest.raises(InputError) as caught:
        verify(with_lines(bundle, lines))
    assert caught.value.code == "nodes-differ"


def test_turns_of_two_deciders_are_told_apart():
    one = Cycle(Millis(0), "one", 0, 0, 0)
    other = Cycle(Millis(0), "other", 0, 0, 0)
    later = Cycle(Millis(5), "one", 0, 0, 0)
    turns = list(iterations_of([one, other, later, other], deciders=2))
    assert [len(turn.steps) for turn in turns] == [2, 2]
    assert [step.cycle.decider for step in turns[0].steps] == ["one", "other"]


def test_a_run_that_breaks_leaves_no_bundle(tmp_path: Path):
    twice = [request().jobs[0], request().jobs[0]]
    with pytest.raises(AssertionError):
        simulate_recorded(request("fifo", jobs=twice), bundle=tmp_path / "run.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_a_bundle_of_nothing_is_a_bundle(tmp_path: Path):
    simulate_recorded(request("fifo", jobs=[], faults=[]), bundle=tmp_path / "run.jsonl")
    bundle = read_bundle(tmp_path / "run.jsonl")
    assert verify(bundle).same
    again = rerun(bundle, Policy(name="las"))
    assert replay_diff(again.recorded, again.again, again.gpus).recorded.jobs == 0


def _decider(policy: PolicyName) -> Decider:
    return placing_decider(Policy(name=policy))


def _starts_on(line: Line, node_id: str) -> bool:
    """Whether a line starts a job of one node there, on a moment at which others wait."""
    return (
        isinstance(line, ActionOrdered)
        and isinstance(line.action, StartJob)
        and [slot.node for slot in line.action.slots] == [node_id]
        and line.at_ms > 0
    )


def _renewed(lines: list[Line]) -> list[Line]:
    """Let cycles say again what their orders are, as the reader of a bundle does."""
    orders = []
    renewed: list[Line] = []
    for line in lines:
        if isinstance(line, ActionOrdered):
            orders.append(line.action)
        if isinstance(line, Cycle):
            renewed.append(replace(line, actions=tuple(orders)))
            orders = []
        else:
            renewed.append(line)
    return renewed


def _without_durations(bundle: Bundle) -> list[Line]:
    return [
        replace(line, job=replace(line.job, duration_ms=None))
        if isinstance(line, JobSubmitted)
        else line
        for line in bundle.lines
    ]
