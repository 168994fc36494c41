"""A recorded run as a saved state: the fleet at one moment, and questions about its jobs."""

from collections.abc import Callable
from functools import cache
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import UNUSED_FACTS, accelerator_names, canonical_accelerator, load_facts
from tenfold.compose.governance import with_residency
from tenfold.engine.explain import JobHistory, explain
from tenfold.engine.loop import Decider
from tenfold.engine.recording import Line
from tenfold.engine.replay import InvalidRecord, rebuild
from tenfold.files.records.replay_bundle import Bundle
from tenfold.fleet.fleet import Fleet
from tenfold.model.errors import InputError
from tenfold.model.events import JobSubmitted
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import SECOND, Millis
from tenfold.study.eta.eta import MIN_JUDGED, Eta, eta, not_before
from tenfold.study.eta.recorded import wait_log_of
from tenfold.study.eta.wait_log import WaitLog
from tenfold.study.replay.bundle import decider_of, fleet_in
from tenfold.study.why.remedies import RemedySearch
from tenfold.study.why.why import Explainer, Why, eta_for, why_under

JobState = Literal["pending", "starting", "running", "ended", "refused", "cancelled"]


class SavedState(Struct, frozen=True, kw_only=True):
    """A moment of a recorded run."""

    file: str
    at_ms: Millis
    fleet: Fleet
    lines: list[Line]
    """What had happened by then."""
    govern: GovernanceRules | None
    """The rules, where the run was governed."""
    decider_of: Callable[[], Decider]
    wait_log_of: Callable[[], WaitLog]
    """Follows the waits in the record, the first time it is asked."""


class Answer(Struct, frozen=True, kw_only=True):
    """What is known about a job at a moment: why it waits, or what became of it."""

    job_id: JobId
    state: JobState
    at_ms: Millis
    why: Why | None = None
    """Of a job that waits."""
    story: JobHistory | None = None
    """Of every job: each stage with the reason that was recorded."""


def saved_at(bundle: Bundle, at_ms: Millis | None = None) -> SavedState:
    """Return the state of a bundle at a moment, or where it ends."""
    lines = bundle.lines
    if at_ms is not None:
        cut = next((place for place, line in enumerate(lines) if line.at_ms > at_ms), len(lines))
        lines = lines[:cut]
    fleet = rebuild(lines)
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
        wait_log_of=cache(lambda: wait_log_of(lines)),
    )


def ask(saved: SavedState, job_id: str, seek: RemedySearch = "cheapest") -> Answer:
    """Return why a job waits, or what became of it; to seek nothing leaves the ETA out too."""
    story = explain(saved.lines, JobId(job_id))
    if story is None:
        raise InputError(
            "unknown-job",
            f"no job of `{saved.file}` is called `{job_id}` "
            f"{saved.at_ms / SECOND:,.0f} s after its start",
            "`tenfold job list` names those that wait or run; --at asks about another time",
            file=saved.file,
        )
    story = _until(saved, story)
    why = None
    job = saved.fleet.pending.get(JobId(job_id))
    if job is not None:
        why = why_at(saved, job, seek)
    return Answer(job_id=JobId(job_id), state=story.state, at_ms=saved.at_ms, why=why, story=story)


def _until(saved: SavedState, story: JobHistory) -> JobHistory:
    """Return a story that ends at the moment asked about, and not with the fact before it."""
    passed_ms = saved.at_ms - max(line.at_ms for line in saved.lines)
    if story.state == "running":
        return replace(story, ran_ms=Millis(story.ran_ms + passed_ms))
    if story.state in ("pending", "starting"):
        return replace(story, waited_ms=Millis(story.waited_ms + passed_ms))
    return story


def why_at(saved: SavedState, job: Job, seek: RemedySearch = "cheapest") -> Why:
    """Return why a pending job does not run, what would let it, and when it will."""
    fleet, now_ms = saved.fleet, saved.at_ms
    if saved.govern is None:
        found = why_under(fleet, job, now_ms, saved.decider_of)
    else:
        found = Explainer(fleet, saved.govern, now_ms).why(job, seek)
    if seek == "none":
        return found
    return replace(found, eta=_eta(saved, job, found))


def _eta(saved: SavedState, job: Job, found: Why) -> Eta | None:
    """Return when a job that waits will start: by the waits in the record, if they tell enough.

    A record too short to judge forecasts by leaves runs ahead, which look at the fleet itself.
    """
    fleet, now_ms = saved.fleet, saved.at_ms
    if found.state != "waits":
        return None
    wait_log = saved.wait_log_of()
    if len(wait_log.outcomes) < MIN_JUDGED:
        return eta_for(fleet, found, now_ms, saved.decider_of)
    return not_before(eta(fleet, job, now_ms, wait_log), found.not_before_ms)


def dry_run(saved: SavedState, job: Job, seek: RemedySearch = "cheapest") -> Why:
    """Return what would become of a job that is submitted at this moment."""
    fleet = saved.fleet.fork()
    known = (fleet.pending, fleet.orders, fleet.running)
    if any(job.id in jobs for jobs in known):
        raise InputError(
            "job-exists",
            f"job `{job.id}` waits or runs already in `{saved.file}`",
            "give it another `name`",
            field="name",
        )
    admitted = [*fleet.pending.values(), *(run.job for run in fleet.running.values())]
    seq = 1 + max((one.seq for one in admitted), default=0)
    new = replace(_bound(saved, job), submitted_ms=saved.at_ms, seq=seq)
    fleet.apply(JobSubmitted(saved.at_ms, new))
    return why_at(replace(saved, fleet=fleet), new, seek)


def _bound(saved: SavedState, job: Job) -> Job:
    """Return a job with types spelled as the fleet does, and with its team's residency."""
    if job.shape.accelerators:
        own = accelerator_names(node.accelerator for node in saved.fleet.nodes.values())
        catalogue = load_facts(None, without=UNUSED_FACTS)
        names = tuple(
            canonical_accelerator(name, own, catalogue) for name in job.shape.accelerators
        )
        job = replace(job, shape=replace(job.shape, accelerators=names))
    return job if saved.govern is None else with_residency([job], saved.govern)[0]
