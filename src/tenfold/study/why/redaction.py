"""Redact an explanation for its reader: own names stay, other teams become amounts."""

from collections.abc import Callable

from msgspec import UNSET
from msgspec.structs import replace

from tenfold.decide.place.explain.holders import Holders
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.view import job_ref
from tenfold.model.ids import JobId
from tenfold.report.reasons.render import Reader, redacted
from tenfold.study.why.changes import (
    Change,
    CombinedChange,
    MoveJobs,
    RaiseLimits,
    RequestChange,
    ShrinkJobs,
    Step,
    StopJobs,
)
from tenfold.study.why.remedies import Remedy, cheapest_of
from tenfold.study.why.why import Why

IsOwn = Callable[[JobId], bool]


def redacted_why(found: Why, fleet: Fleet, reader: Reader) -> Why:
    """Return an explanation with its sentences, without names the reader may not see."""

    def is_own(job_id: JobId) -> bool:
        return job_id == found.job_id or reader.may_see(job_ref(fleet, job_id).team)

    remedies = tuple(_remedy(each, reader, found, is_own) for each in found.remedies)
    return replace(
        found,
        reason=redacted(found.reason, reader, found.team),
        holders=_holders(found.holders, reader),
        rules=tuple(
            replace(each, reason=redacted(each.reason, reader, found.team)) for each in found.rules
        ),
        remedies=remedies,
        cheapest=cheapest_of(remedies),
    )


def _holders(holders: Holders, reader: Reader) -> Holders:
    if reader.sees_all:
        return holders
    own = tuple(each for each in holders.teams if reader.may_see(each.team))
    held = sum(each.gpus_milli for each in holders.teams) - sum(each.gpus_milli for each in own)
    jobs = tuple(each for each in holders.jobs if reader.may_see(each.team))
    return Holders(teams=own, jobs=jobs, others_gpus_milli=held)


def _remedy(remedy: Remedy, reader: Reader, found: Why, is_own: IsOwn) -> Remedy:
    advice = redacted(remedy.advice, reader, found.team)
    shown = replace(remedy, advice=advice, sentence=advice.sentence)
    if reader.sees_all:
        return shown
    # A team may see what its parent teams would have to grant.
    teams = dict.fromkeys((found.team, *(each.team for each in found.standing)))

    def step(one: Step) -> Step:
        match one:
            case ShrinkJobs() | MoveJobs():
                return replace(one, jobs=tuple(job for job in one.jobs if is_own(job.job_id)))
            case StopJobs():
                return replace(one, jobs=tuple(job for job in one.jobs if is_own(job)))
            case RaiseLimits():
                return RaiseLimits(tuple(each for each in one.raises if each.team in teams))
            case RequestChange() if one.after is not UNSET:
                return replace(one, after=tuple(job for job in one.after if is_own(job)))
            case _:
                return one

    change: Change = (
        CombinedChange(tuple(step(one) for one in remedy.change.steps))
        if isinstance(remedy.change, CombinedChange)
        else step(remedy.change)
    )
    return replace(
        shown,
        change=change,
        stopped=tuple(each for each in remedy.stopped if is_own(each)),
        also_starts=tuple(each for each in remedy.also_starts if is_own(each)),
    )
