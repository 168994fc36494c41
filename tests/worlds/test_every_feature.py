"""Every feature of a policy in both worlds: jobs experience the same.

The simulator runs each scenario of `features.py`, and so does the live control plane with its
real decider and journal, in virtual time. Compared is what happened to each job: when and where
it started, size changes, preemptions with the work they left, its end, and why it waited.
"""

from collections.abc import Sequence
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import FieldInfo, fields, replace

from rigs.virtual_live import LiveScript, run_live
from tenfold.compose.policies import placing_decider
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.loop import Decider
from tenfold.engine.recording import Recording, events_of
from tenfold.fleet.fleet import Fleet
from tenfold.live.inbox import Submit
from tenfold.model.actions import ResizeJob, StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobEnded,
    JobIdled,
    JobRefused,
    JobResized,
    JobStarted,
    JobStopped,
)
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, JobStatus, Shape, Slot, shape_of
from tenfold.model.job.submission import Submission, admitted
from tenfold.model.job.terms import Terms, Window
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.policy.policy import ORACLES, Policy, PolicyName
from tenfold.model.units import SECOND, Millis
from tenfold.report.reasons.render import render
from tenfold.server.background.follower import FleetSnapshot
from tenfold.sim.world import SimSettings
from tenfold.study.eta.wait_log import WaitLog
from tenfold.study.why.recorded import SavedState, why_at
from worlds.features import FEATURES, Scenario, minutes

DELAY_MS = 1
"""How long a start or a stop takes in both worlds: none is done when it is ordered."""
ASKED_MOST = 2
"""Only the first pending jobs are asked about: each answer decides anew."""
LATE_MS = 7
"""How late a clock may return: it does so at every moment in the second run."""
NEAR_MS, LATE_NEAR_MS = 10, SECOND
"""Times may differ by this much. A job is down while it is resized live, but not in the simulator,
and what happens at the end of a run is later by that."""

Step = tuple[Any, ...]
Experience = dict[JobId, list[Step]]


class Waits:
    """Why jobs are pending, as `tenfold job why` would answer after each cycle."""

    def __init__(self, policy: Policy, *, is_live: bool) -> None:
        self._policy, self._is_live = policy, is_live
        self.told: dict[JobId, list[str]] = {}
        """By job, each reason that differs from the one before."""

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        for job_id, job in islice(fleet.pending.items(), ASKED_MOST):
            told, why = self.told.setdefault(job_id, []), self._why(fleet, job, now_ms)
            if told[-1:] != [why]:
                told.append(why)

    def _why(self, fleet: Fleet, job: Job, now_ms: Millis) -> str:
        policy = self._policy
        if self._is_live:
            answer = FleetSnapshot(fleet.fork(), now_ms, policy).why(job.id, "none", with_eta=False)
            assert answer is not None
            return render(answer.why.reason)
        govern = (policy.govern or GovernanceRules()) if policy.name == "governed" else None
        saved = SavedState(
            file="",
            at_ms=now_ms,
            fleet=fleet.fork(),
            lines=[],
            govern=govern,
            decider_of=lambda: placing_decider(policy),
            wait_log_of=WaitLog,
        )
        return render(why_at(saved, job, "none").reason)


def experience_of(events: Sequence[Event]) -> Experience:
    """Return what happened to each job, in order."""
    found: Experience = {}
    slots: dict[JobId, tuple[Slot, ...]] = {}
    for event in events:
        step: Step | None = None
        match event:
            case ActionOrdered(_, StartJob(job_id, given) | ResizeJob(job_id, given)):
                slots[job_id] = given
            case JobStarted(at, job_id):
                step = (at, "started", slots[job_id])
            case JobResized(at, job_id):
                step = (at, "resized", slots[job_id])
            case JobStopped(at, job_id, cause, progress_ms):
                step = (at, "stopped", cause, progress_ms)
            case JobIdled(at, job_id, since_ms):
                step = (at, "idled", since_ms)
            case JobEnded(at, job_id, status):
                step = (at, "ended", status)
            case JobRefused(at, job_id, reasons):
                step = (at, "refused", tuple(render(one) for one in reasons))
            case _:
                pass
        if step is not None:
            found.setdefault(event.job_id, []).append(step)  # pyright: ignore
    return found


def jobs_of(scenario: Scenario) -> tuple[list[Job], dict[JobId, JobStatus]]:
    """Return the jobs as the simulator takes them, and how those end that do not complete."""
    made: list[Job] = []
    ends: dict[JobId, JobStatus] = {}
    for task in scenario.tasks:
        for one in admitted(task.submission, len(made) + 1, minutes(task.at_min)):
            made.append(replace(one.job, duration_ms=minutes(task.lasts_min)))
            if task.fails:
                ends[one.job.id] = "failed"
    return made, ends


def simulated(scenario: Scenario, waits: Waits | None = None) -> Experience:
    kept = Recording()
    jobs, ends = jobs_of(scenario)
    request = SimRequest(
        nodes=scenario.nodes,
        jobs=jobs,
        policy=scenario.policy,
        faults=scenario.faults,
        ends=ends,
        until_ms=scenario.until_ms,
        settings=SimSettings(start_delay_ms=Millis(DELAY_MS), stop_delay_ms=Millis(DELAY_MS)),
    )
    simulate(request, journal=kept, witnesses=() if waits is None else (waits,))
    return experience_of(list(events_of(kept.lines)))


def lived(
    scenario: Scenario, journal: Path, waits: Waits | None = None, late_ms: int = 0
) -> Experience:
    jobs, ends = jobs_of(scenario)
    # How long a session is used is not part of a request: it is observed.
    requests = [
        (
            minutes(task.at_min),
            Submit((replace(task.submission, terms=_as_submitted(task.submission.terms)),)),
        )
        for task in scenario.tasks
    ]
    script = LiveScript(
        policy=scenario.policy,
        nodes=scenario.nodes,
        requests=requests,
        jobs={job.id: job for job in jobs},
        failing=frozenset(ends),
        faults=scenario.faults,
        until_ms=scenario.until_ms,
        delay_ms=DELAY_MS,
        late_ms=late_ms,
    )
    witnesses = () if waits is None else (waits,)
    return experience_of(list(events_of(run_live(script, journal, witnesses))))


def _as_submitted(terms: Terms | None) -> Terms | None:
    return None if terms is None else replace(terms, busy_ms=None)


def differences(sim: Experience, live: Experience, near_ms: int = 0) -> list[str]:
    """Return the jobs that did not experience the same, with both stories."""
    found: list[str] = []
    for job_id in dict.fromkeys((*sim, *live)):
        one, other = sim.get(job_id, []), live.get(job_id, [])
        same = len(one) == len(other) and all(
            _same(a, b, near_ms) for a, b in zip(one, other, strict=True)
        )
        if not same:
            found.append(f"{job_id}\n  sim : {one}\n  live: {other}")
    return found


def _same(one: Step, other: Step, near_ms: int) -> bool:
    def plain(step: Step) -> Step:
        return tuple(0 if isinstance(part, int) else part for part in step)

    def times(step: Step) -> list[int]:
        return [part for part in step if isinstance(part, int)]

    near = all(abs(a - b) <= near_ms for a, b in zip(times(one), times(other), strict=False))
    return plain(one) == plain(other) and near


@pytest.mark.parametrize("name", FEATURES)
def test_jobs_experience_the_same_in_both_worlds(name: str, tmp_path: Path):
    scenario = FEATURES[name]
    sim_waits = Waits(scenario.policy, is_live=False)
    live_waits = Waits(scenario.policy, is_live=True)
    sim = simulated(scenario, sim_waits)
    live = lived(scenario, tmp_path / "journal.db", live_waits)
    assert differences(sim, live, NEAR_MS) == []
    assert live_waits.told == sim_waits.told


@pytest.mark.parametrize("name", FEATURES)
def test_a_clock_that_returns_late_changes_times_only(name: str, tmp_path: Path):
    scenario = FEATURES[name]
    live = lived(scenario, tmp_path / "journal.db", late_ms=LATE_MS)
    assert differences(simulated(scenario), live, LATE_NEAR_MS) == []


UNTESTED: dict[str, str] = {
    "Terms.array": "assigned at admission",
    "Terms.busy_ms": "known only in a replay; live it is observed",
    "Terms.service": "says whose replica a job is: no rule of placement but spreading reads it",
    "TeamRules.inference": "limits requests to services, which are no jobs",
    "Terms.kind": "see `Terms.idle_ms`: other kinds change what is learned from jobs, not a rule",
}
"""Fields that cannot be reset in a scenario, each with the reason."""


def _reset(scenario: Scenario, kind: type[Struct], field: FieldInfo) -> Scenario:
    """Return a scenario in which a field has its default wherever it is set."""

    def plain(one: Any) -> Any:
        return replace(one, **{field.name: _default(field)})

    policy, tasks = scenario.policy, scenario.tasks
    govern = policy.govern
    if kind is Policy:
        return replace(scenario, policy=plain(policy))
    if kind is GovernanceRules and govern is not None:
        return replace(scenario, policy=replace(policy, govern=plain(govern)))
    if kind is TeamRules and govern is not None:
        teams = tuple(plain(one) for one in govern.teams)
        return replace(scenario, policy=replace(policy, govern=replace(govern, teams=teams)))
    if kind is Window and govern is not None:
        windows = tuple(plain(one) for one in govern.windows)
        return replace(scenario, policy=replace(policy, govern=replace(govern, windows=windows)))

    def changed(submission: Submission) -> Submission:
        if kind is Submission:
            return plain(submission)
        if kind is Terms and submission.terms is not None:
            return replace(submission, terms=plain(submission.terms))
        where = submission.shape.where
        if kind is PlacementConstraints and where is not None:
            return replace(submission, shape=_with_where(submission.shape, plain(where)))
        return submission

    made = tuple(replace(one, submission=changed(one.submission)) for one in tasks)
    return replace(scenario, tasks=made)


def _with_where(shape: Shape, where: PlacementConstraints) -> Shape:
    assert not shape.gpus_per_node
    return shape_of(shape.gpus, where=where)


def _default(field: FieldInfo) -> Any:
    return field.default if field.default is not NODEFAULT else field.default_factory()


def _resettable() -> list[tuple[type[Struct], FieldInfo]]:
    """Return every field of what a policy, a team, a window or a job may set."""
    kinds = (Policy, GovernanceRules, TeamRules, Window, Terms, PlacementConstraints)
    return [
        (kind, field)
        for kind in kinds
        for field in fields(kind)
        if not field.required and f"{kind.__name__}.{field.name}" not in UNTESTED
    ]


@pytest.mark.parametrize(
    ("kind", "field"), _resettable(), ids=lambda one: getattr(one, "name", None)
)
def test_every_field_of_a_policy_changes_what_jobs_experience_in_a_scenario(
    kind: type[Struct], field: FieldInfo
):
    """A new field fails here until a scenario in `features.py` depends on it."""
    for name, scenario in FEATURES.items():
        without = _reset(scenario, kind, field)
        if without != scenario and simulated(without) != _simulated(name):
            return
    pytest.fail(f"no scenario depends on `{kind.__name__}.{field.name}`: add one to FEATURES")


@cache
def _simulated(name: str) -> Experience:
    return simulated(FEATURES[name])


def test_every_policy_that_can_run_live_has_a_scenario():
    """Policies that read true durations run in replays only."""
    run = {scenario.policy.name for scenario in FEATURES.values()}
    assert run == set(get_args(PolicyName)) - set(ORACLES)


def test_every_reason_to_leave_a_field_out_is_still_true():
    named = {
        f"{kind.__name__}.{field.name}"
        for kind in (Policy, GovernanceRules, TeamRules, Window, Terms, PlacementConstraints)
        for field in fields(kind)
    }
    assert set(UNTESTED) <= named
