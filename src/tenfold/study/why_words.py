"""What a change means, in one sentence that says what to do."""

from collections.abc import Sequence

from msgspec import UNSET

from tenfold.decide.place.govern.why_quota import amount_of
from tenfold.decide.place.govern.why_settled import Settled
from tenfold.decide.place.govern.why_windows import span
from tenfold.model.ids import JobId
from tenfold.model.job import Job
from tenfold.study.why_changes import (
    AskFor,
    Change,
    Grant,
    MoveJobs,
    Nothing,
    Raise,
    RentNodes,
    Several,
    ShrinkJobs,
    StopJobs,
)
from tenfold.study.why_trial import Started

NAMED = 3
"""Jobs that are named before the rest is counted."""


def sentence_of(settled: Settled, job: Job, change: Change, started: Started) -> str:
    """Return a change as advice."""
    said = _advice(settled, job, change)
    if started.stopped:
        return f"{said}; {jobs_of(started.stopped)} would be stopped for it"
    return said


def _advice(settled: Settled, job: Job, change: Change) -> str:
    match change:
        case Nothing():
            return "change nothing: it starts in the next cycle"
        case AskFor():
            return _request(job, change)
        case Grant():
            return " and ".join(_raise(each) for each in change.raises)
        case RentNodes():
            return _rent(settled, change)
        case ShrinkJobs():
            return f"let {_resized(settled, change)} go on with fewer GPUs"
        case MoveJobs():
            return f"move {jobs_of([each.job_id for each in change.jobs])} to other nodes"
        case StopJobs():
            return f"stop {jobs_of(change.jobs)}, which the rules would not"
        case Several():
            return "; and ".join(_advice(settled, job, step) for step in change.steps)


def _request(job: Job, change: AskFor) -> str:
    where, terms = job.shape.where, job.terms
    if change.gpus is not UNSET:
        return f"ask for {change.gpus:,} GPUs instead of {job.shape.gpus:,}"
    if change.accelerators is not UNSET:
        return f"ask for {' or '.join(change.accelerators)}"
    if change.limit_ms is not UNSET:
        over = "it would be over before its nodes are needed"
        return f"set its limit to {span(change.limit_ms)}: {over}"
    if change.priority is not UNSET:
        return f"raise its priority from {job.priority} to {change.priority}"
    if change.how is not UNSET and where is not None:
        return f'let it stand in several {where.within} domains: `how = "{change.how}"`'
    if change.needs is not UNSET and where is not None:
        tags = ", ".join(f"`{tag}`" for tag in (*where.needs, *where.avoids))
        return f"drop what it says about the tags {tags}"
    words: list[str] = []
    if change.after is not UNSET and terms is not None:
        gone = [each for each in terms.after if each not in change.after]
        words.append(f"do not wait for {jobs_of(gone)}")
    if change.off_peak is not UNSET:
        words.append("do not wait for off-peak hours")
    if change.array_most is not UNSET:
        words.append(f"let {change.array_most} of its array run at once")
    return ", and ".join(words)


def _raise(each: Raise) -> str:
    verb = {"quota": "raise the quota", "borrow": "raise what it may borrow", "lend": "lend more"}
    amount = amount_of(each.by, each.resource)
    return f"team `{each.team}`: {verb[each.what]} by {amount}"


def _rent(settled: Settled, change: RentNodes) -> str:
    node = settled.view.nodes[change.like]
    nodes = "1 node" if change.nodes == 1 else f"{change.nodes:,} nodes"
    gpus = f"{node.gpus * change.nodes:,} {node.accelerator or 'GPUs'}"
    price = settled.govern.usd_micros_per_gpu_hour.get(node.accelerator)
    if price is None:
        return f"rent {nodes} ({gpus})"
    usd = price * node.gpus * change.nodes / 1e6
    return f"rent {nodes} ({gpus}) at ${usd:,.2f} an hour by the prices of the policy"


def _resized(settled: Settled, change: ShrinkJobs) -> str:
    running, words = settled.view.running, list[str]()
    for each in change.jobs[:NAMED]:
        before = sum(slot.gpus for slot in running[each.job_id].slots)
        words.append(f"`{each.job_id}` ({before} to {sum(slot.gpus for slot in each.slots)} GPUs)")
    more = len(change.jobs) - NAMED
    return ", ".join(words) + (f" and {more:,} more" if more > 0 else "")


def jobs_of(jobs: Sequence[JobId]) -> str:
    """Return the first few names, and how many more there are."""
    names = [f"`{each}`" for each in jobs[:NAMED]]
    more = len(jobs) - NAMED
    if more > 0:
        return f"{', '.join(names)} and {more:,} more"
    return " and ".join(names) if len(names) < 3 else f"{names[0]}, {names[1]} and {names[2]}"
