"""Render a change as a reason that says what to do."""

from collections.abc import Iterable, Iterator

from msgspec import UNSET

from tenfold.decide.place.explain.settled import Settled
from tenfold.fleet.view import job_ref
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.reason import Amount, Causes, JobRef, Reason, TeamRef, Value, first_names
from tenfold.study.why.changes import (
    Change,
    CombinedChange,
    MoveJobs,
    NewSlots,
    NoChange,
    RaiseLimits,
    RentNodes,
    RequestChange,
    ShrinkJobs,
    Step,
    StopJobs,
)
from tenfold.study.why.trial import Started


def advice_of(settled: Settled, job: Job, change: Change, started: Started) -> Reason:
    """Return a change as advice."""
    steps = change.steps if isinstance(change, CombinedChange) else (change,)
    advice = Causes(tuple(one for step in steps for one in _advice(settled, job, step)))
    fields: dict[str, Value] = {"steps": advice, "stopped": _refs(settled, started.stopped)}
    if started.also:
        fields["also"] = _refs(settled, started.also)
    return Reason("remedy", fields)


def _advice(settled: Settled, job: Job, change: Step) -> Iterator[Reason]:
    match change:
        case NoChange():
            yield Reason("change-nothing")
        case RequestChange():
            yield from _request(settled, job, change)
        case RaiseLimits():
            for each in change.raises:
                fields = {"team": TeamRef(each.team), "what": each.what}
                yield Reason("raise-limit", {**fields, "by": Amount(each.by, each.resource)})
        case RentNodes():
            yield _rent(settled, change)
        case ShrinkJobs():
            yield from (_shrink(settled, each) for each in change.jobs)
        case MoveJobs():
            jobs = _refs(settled, (each.job_id for each in change.jobs))
            yield Reason("move-jobs", {"jobs": jobs})
        case StopJobs():
            yield Reason("stop-jobs", {"jobs": _refs(settled, change.jobs)})


def _shrink(settled: Settled, to: NewSlots) -> Reason:
    before = sum(slot.gpus for slot in settled.view.running[to.job_id].slots)
    gpus = sum(slot.gpus for slot in to.slots)
    job = job_ref(settled.view, to.job_id)
    return Reason("shrink-job", {"job": job, "before": before, "gpus": gpus})


def _request(settled: Settled, job: Job, change: RequestChange) -> Iterator[Reason]:
    where, terms = job.shape.where, job.terms
    if change.gpus is not UNSET:
        yield Reason("ask-gpus", {"gpus": change.gpus, "before": job.shape.gpus})
    if change.accelerators is not UNSET:
        yield Reason("ask-accelerators", {"accelerators": change.accelerators})
    if change.limit_ms is not UNSET:
        yield Reason("ask-limit", {"limit_ms": change.limit_ms})
    if change.priority is not UNSET:
        yield Reason("ask-priority", {"before": job.priority, "priority": change.priority})
    if change.how is not UNSET and where is not None:
        yield Reason("ask-domain", {"within": where.within, "how": change.how})
    if change.needs is not UNSET and where is not None:
        yield Reason("ask-tags", first_names("tags", (*where.needs, *where.avoids)))
    if change.after is not UNSET and terms is not None:
        removed = (each for each in terms.after if each not in change.after)
        yield Reason("ask-after", {"jobs": _refs(settled, removed)})
    if change.off_peak is not UNSET:
        yield Reason("ask-off-peak")
    if change.array_most is not UNSET:
        yield Reason("ask-array", {"most": change.array_most})


def _rent(settled: Settled, change: RentNodes) -> Reason:
    node = settled.view.nodes[change.like]
    fields: dict[str, Value] = {"nodes": change.nodes, "gpus": node.gpus * change.nodes}
    fields["accelerator"] = node.accelerator
    price = settled.govern.usd_micros_per_gpu_hour.get(node.accelerator)
    if price is not None:
        fields["usd"] = price * node.gpus * change.nodes / 1e6
    return Reason("rent-nodes", fields)


def _refs(settled: Settled, jobs: Iterable[JobId]) -> tuple[JobRef, ...]:
    return tuple(job_ref(settled.view, each) for each in jobs)
