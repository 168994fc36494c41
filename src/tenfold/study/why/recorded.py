"""Explain jobs of a recorded run: the fleet rebuilt at one time, and its jobs."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import UNUSED_FACTS, accelerator_names, canonical_accelerator, load_facts
from tenfold.engine.decision_log import is_observed
from tenfold.engine.explain import JobHistory, explain
from tenfold.engine.loop import Decider
from tenfold.engine.obstacle import dependency_reason
from tenfold.engine.recording import Line
from tenfold.engine.replay import InvalidRecord, rebuild
from tenfold.files.records.replay_bundle import Bundle
from tenfold.fleet.fleet import Fleet
from tenfold.model.errors import InputError
from tenfold.model.events import JobHeld, JobSubmitted
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.reason import Reason
from tenfold.model.units import DAY, Millis
from tenfold.report.reasons.render import duration_text
from tenfold.study.eta.eta import MIN_JUDGED, Forecast, eta, not_before
from tenfold.study.eta.recorded import wait_log_of
from tenfold.study.eta.wait_log import WaitLog
from tenfold.study.replay.bundle import decider_of, fleet_in
from tenfold.study.why.remedies import RemedySearch
from tenfold.study.why.why import (
    Explainer,
    Why,
    dependency_rules,
    eta_for,
    why_under,
    with_forecast,
)

DATES_MS = 30 * 365 * DAY
"""Simulated time starts at 0, real time in 1970: anything later than this is a date."""
JobState = Literal["pending", "starting", "running", "ended", "refused", "cancelled"]


class SavedState(Struct, frozen=True, kw_only=True):
    """A recorded run at one time."""

    file: str
    at_ms: Millis
    fleet: Fleet
    lines: list[Line]
    """The records up to then."""
    govern: GovernanceRules | None
    """The governance rules, if the run was governed."""
    decider_of: Callable[[], Decider]
    base: Fleet | None = None
    """The fleet before the first record, of a journal whose older events were moved away."""
    holds: Mapping[JobId, Reason] = {}
    """Why held jobs are held."""
    observed: bool = False
    """Whether another scheduler decided, and the run was only recorded."""
    wait_log_of: Callable[[], WaitLog]
    """Builds the wait log of the record on first use."""


class Answer(Struct, frozen=True, kw_only=True):
    """The state of a job at one time: why it is pending, or its history."""

    job_id: JobId
    state: JobState
    at_ms: Millis
    why: Why | None = None
    """For a pending job."""
    story: JobHistory | None = None
    """For every job: each stage with its recorded reason."""


def saved_at(bundle: Bundle, after_ms: Millis | None = None) -> SavedState:
    """Return the state of a bundle some time after its start, or at its end."""
    lines = bundle.lines
    first_ms = lines[0].at_ms if lines and lines[0].at_ms > DATES_MS else Millis(0)
    at_ms = None if after_ms is None else Millis(first_ms + after_ms)
    if at_ms is not None:
        cut = next((place for place, line in enumerate(lines) if line.at_ms > at_ms), len(lines))
        lines = lines[:cut]
    fleet = rebuild(lines, bundle.base())
    if isinstance(fleet, InvalidRecord):
        fleet = fleet_in(bundle)
    last_ms = max((line.at_ms for line in lines), default=Millis(0))
    policy = bundle.header.policy
    return SavedState(
        file=bundle.file,
        at_ms=last_ms if at_ms is None else at_ms,
        fleet=fleet,
        lines=lines,
        govern=(policy.govern or GovernanceRules()) if policy.name == "governed" else None,
        decider_of=decider_of(bundle),
        base=bundle.base(),
        holds=_holds(lines, fleet),
        observed=is_observed(bundle.lines),
        # Another scheduler gave the orders of an observed cluster: its waits calibrate nothing.
        wait_log_of=cache(lambda: WaitLog() if is_observed(bundle.lines) else wait_log_of(lines)),
    )


def _holds(lines: Sequence[Line], fleet: Fleet) -> dict[JobId, Reason]:
    """Return why each held job was held last."""
    if not fleet.held:
        return {}
    return {
        line.job_id: line.reason
        for line in lines
        if isinstance(line, JobHeld) and line.job_id in fleet.held
    }


_DATED_MS = 946_684_800_000
"""Clocks beyond this are dates; a simulation begins at 0."""


def _moment(at_ms: int) -> str:
    """Return a date and time, or a duration for a run whose clock begins at 0."""
    if at_ms < _DATED_MS:
        return duration_text(at_ms)
    return f"{datetime.fromtimestamp(at_ms / 1_000, UTC):%Y-%m-%d %H:%M} UTC"


def ask(saved: SavedState, job_id: str, seek: RemedySearch = "cheapest") -> Answer:
    """Return why a job is pending, or its history; `seek="none"` also skips the ETA."""
    base = None if saved.base is None else saved.base.fork()
    story = explain(saved.lines, JobId(job_id), base=base)
    if story is None:
        raise InputError(
            "unknown-job",
            f"no job `{job_id}` in `{saved.file}` at {_moment(saved.at_ms)}",
            "`tenfold job list` shows pending and running jobs; --at selects another time",
            file=saved.file,
        )
    story = _until(saved, story)
    why = None
    job = saved.fleet.pending.get(JobId(job_id))
    held = saved.fleet.held.get(JobId(job_id))
    if job is not None:
        why = why_at(saved, job, seek)
    elif held is not None:
        why = held_why(saved, held)
    return Answer(job_id=JobId(job_id), state=story.state, at_ms=saved.at_ms, why=why, story=story)


def _until(saved: SavedState, story: JobHistory) -> JobHistory:
    """Return a story extended from its last event to the requested time."""
    passed_ms = saved.at_ms - max(line.at_ms for line in saved.lines)
    if story.state == "running":
        return replace(story, ran_ms=Millis(story.ran_ms + passed_ms))
    if story.state in ("pending", "starting"):
        return replace(story, waited_ms=Millis(story.waited_ms + passed_ms))
    return story


def held_why(saved: SavedState, job: Job) -> Why:
    """Return why a job is held."""
    reason = saved.holds.get(job.id, Reason("held-in-slurm"))
    return Why(job_id=job.id, team=job.team, at_ms=saved.at_ms, state="waits", reason=reason)


def reasons_in_queue(saved: SavedState, most: int) -> dict[JobId, Reason]:
    """Return why each pending job waits, of an observed run with at most so many."""
    reasons = dict(saved.holds)
    if saved.observed and len(saved.fleet.pending) <= most:
        for job in saved.fleet.pending.values():
            reasons[job.id] = why_at(saved, job, "none").reason
    return reasons


def why_at(saved: SavedState, job: Job, seek: RemedySearch = "cheapest") -> Why:
    """Return why a job is pending, what would start it, and when it will start."""
    fleet, now_ms = saved.fleet, saved.at_ms
    if saved.govern is None:
        found = why_under(fleet, job, now_ms, saved.decider_of)
    else:
        found = Explainer(fleet, saved.govern, now_ms).why(job, seek)
    dependency = dependency_reason(fleet, job)
    if dependency is not None:
        found = replace(found, reason=dependency, rules=dependency_rules(fleet, job, dependency))
    if seek == "none":
        return found
    return with_forecast(found, _eta(saved, job, found))


def _eta(saved: SavedState, job: Job, found: Why) -> Forecast | None:
    """Return when a pending job will start, from the waits in the record if there are enough.

    If the record is too short to check forecasts, the fleet is simulated ahead instead.
    """
    fleet, now_ms = saved.fleet, saved.at_ms
    if found.state != "waits":
        return None
    wait_log = saved.wait_log_of()
    if len(wait_log.outcomes) < MIN_JUDGED:
        return eta_for(fleet, found, now_ms, saved.decider_of)
    return not_before(eta(fleet, job, now_ms, wait_log), found.not_before_ms)


def dry_run(saved: SavedState, job: Job, seek: RemedySearch = "cheapest") -> Why:
    """Return what would happen to a job submitted at this time."""
    fleet = saved.fleet.fork()
    known = (fleet.pending, fleet.orders, fleet.running)
    if any(job.id in jobs for jobs in known):
        raise InputError(
            "job-exists",
            f"job `{job.id}` is already pending or running in `{saved.file}`",
            "use another `name`",
            field="name",
        )
    admitted = [*fleet.pending.values(), *(run.job for run in fleet.running.values())]
    seq = 1 + max((one.seq for one in admitted), default=0)
    new = replace(_bound(saved, job), submitted_ms=saved.at_ms, seq=seq)
    fleet.apply(JobSubmitted(saved.at_ms, new))
    return why_at(replace(saved, fleet=fleet), new, seek)


def _bound(saved: SavedState, job: Job) -> Job:
    """Return a job with the fleet's type names."""
    if job.shape.accelerators:
        own = accelerator_names(node.accelerator for node in saved.fleet.nodes.values())
        catalogue = load_facts(None, without=UNUSED_FACTS)
        names = tuple(
            canonical_accelerator(name, own, catalogue) for name in job.shape.accelerators
        )
        job = replace(job, shape=replace(job.shape, accelerators=names))
    return job
