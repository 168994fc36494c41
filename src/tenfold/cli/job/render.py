"""Why a job is pending, in a few actionable lines, and jobs as a table."""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.cli.job.columns import clock_time, iso_time, minute_of, rounded_up
from tenfold.cli.output import show, table
from tenfold.cli.replay.render import show_story
from tenfold.decide.place.explain.holders import Holders, QuotaUsage
from tenfold.decide.place.explain.rules import TIMED
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import WHOLE, Job, Slot
from tenfold.model.units import SECOND, Millis
from tenfold.report.figures import count, dollars
from tenfold.report.reasons.registry import shown_code
from tenfold.report.reasons.render import (
    amount_of,
    at_most,
    duration_text,
    number_of,
    plural,
    render,
)
from tenfold.study.eta.eta import Eta
from tenfold.study.why.recorded import Answer, SavedState, reasons_in_queue
from tenfold.study.why.remedies import Remedy
from tenfold.study.why.why import Explainer, Why

REASONS_MOST = 500
"""A longer queue of an observed cluster is listed without reasons."""
SHOWN = 4
"""Nodes, teams and jobs listed by name; the rest are counted."""


class JobLine(Struct, frozen=True, kw_only=True):
    """One pending or running job."""

    job_id: JobId
    team: TeamId
    state: str
    gpus: float
    since_ms: Millis
    """When it was submitted, or started."""
    for_ms: Millis
    reason: str = ""
    """Code of the reason a pending job waits, if the policy gives one."""


def list_json(saved: SavedState, *, team: str | None, state: str | None) -> list[JobLine]:
    """Return pending and running jobs, in order of arrival."""
    fleet, explainer = saved.fleet, None
    if saved.govern is not None and state != "running":
        explainer = Explainer(fleet, saved.govern, saved.at_ms)
    lines: list[JobLine] = []
    reasons = {} if state == "running" else reasons_in_queue(saved, REASONS_MOST)
    for job in sorted((*fleet.pending.values(), *fleet.held.values()), key=_arrival):
        if state != "running" and team in (None, job.team):
            code = explainer.reason(job).code if explainer and job.id in fleet.pending else ""
            code = reasons[job.id].code if job.id in reasons else code
            lines.append(
                _line(job, "pending", job.submitted_ms, saved.at_ms, code and shown_code(code))
            )
    for run in sorted(fleet.running.values(), key=lambda each: _arrival(each.job)):
        if state != "pending" and team in (None, run.job.team):
            lines.append(_line(run.job, "running", run.started_ms, saved.at_ms))
    return lines


def show_jobs(lines: Sequence[JobLine]) -> None:
    """Print jobs as a table."""
    rows = [
        [
            str(line.job_id),
            str(line.team),
            f"{line.gpus:g}",
            line.state,
            duration_text(line.for_ms),
            line.reason,
        ]
        for line in lines
    ]
    if rows:
        show(table("", ["job", "team", ">GPUs", "state", ">time", "reason"], rows), "")
    waiting = sum(line.state == "pending" for line in lines)
    show(f"{count(waiting, 'job')} pending, {count(len(lines) - waiting, 'job')} running")


def show_answer(answer: Answer) -> None:
    """Print why a job is pending, or its history."""
    if answer.why is None:
        assert answer.story is not None, "a job that is not pending has a story"
        show_story(answer.story)
        return
    story = answer.story
    waited = f" for {duration_text(story.waited_ms)}" if story else ""
    team = f" (team `{answer.why.team}`)" if answer.why.team else ""
    show(f"`{answer.job_id}`{team}: pending{waited}")
    stops = [one for one in (story.stages if story else ()) if one.code == "stop-ordered"]
    if stops:
        show(f"last stop: {render(stops[-1].why)}")
    show_waiting(answer.why)


def show_dry_run(found: Why) -> None:
    """Print what would happen to a submitted job."""
    if found.state == "starts":
        show(f"`{found.job_id}` would start now on {_on(found.slots)}")
        return
    verb = "could never start" if found.state == "never" else "would be pending"
    show(f"`{found.job_id}` {verb}")
    show_waiting(found)


def show_waiting(found: Why, *, is_live: bool = False) -> None:
    """Print the reason a job waits, its reserved or expected start, and what would start it now.

    Only a live answer has times of day.
    """
    reason = render(found.reason)
    show(f"reason: {reason} [{shown_code(found.reason.code)}]")
    _show_rules(found, is_live=is_live)
    if found.ahead and " ahead" not in reason:
        show(f"queue: {count(found.ahead, 'job')} ahead")
    if found.reservation is not None:
        within = duration_text(max(0, found.reservation.start_ms - found.at_ms))
        show(f"reservation: starts within {within} on {_on(found.reservation.slots)}")
    if found.not_before_ms is not None:
        show(f"earliest start: in {duration_text(found.not_before_ms - found.at_ms)}")
    _show_forecast(found, is_live=is_live)
    _show_holders(found.holders)
    for place, standing in enumerate(found.standing):
        # The last entry for each resource is the total of all teams.
        following = found.standing[place + 1 : place + 2]
        is_total = not following or following[0].resource != standing.resource
        show(f"quota: {_standing(standing, is_total=is_total)}")
    if found.cheapest is not None:
        show(f"cheapest fix: {_remedy(found.cheapest)}")
    for remedy in found.remedies[1:]:
        show(f"or: {_remedy(remedy)}")


def _show_rules(found: Why, *, is_live: bool) -> None:
    """Print the rules that hold a job back, except the one that is its reason."""
    for rule in found.rules:
        clock = clock_time(rule.until_ms) if is_live and rule.until_ms is not None else ""
        until, by = (f" (until {clock})", f" (by {clock})") if clock else ("", "")
        if rule.reason.code == "starts-by-preempting":
            show(f"start: {render(rule.reason)}{until.replace('until', 'at')}")
        elif rule.reason.code == "time-limits":
            show(f"capacity: {render(rule.reason)}{by}")
        elif rule.reason.code != found.reason.code:
            show(f"rule: {render(rule.reason)}{until}")
        elif rule.until_ms is not None and (until or rule.reason.code not in TIMED):
            within = duration_text(rule.until_ms - found.at_ms)
            if rule.reason.code in TIMED:
                show(f"reason ends: in {within}{by.replace('by', 'at')}")
            else:
                limits = "when running jobs reach their time limits"
                show(f"reason ends: within {within}, {limits}{by}")


def _show_forecast(found: Why, *, is_live: bool) -> None:
    if found.eta is not None:
        text = _expected(found.eta, found.at_ms)
        if is_live:
            text += _clock_of(found.eta, found.at_ms)
        show(f"expected start: {text}")
        show(f"forecast: {found.eta.basis}")
    elif found.eta_unknown:
        show(f"expected start: unknown ({found.eta_unknown})")


def _clock_of(eta: Eta, at_ms: Millis) -> str:
    """Return the time of day of a forecast as `job list` has it."""
    half = minute_of(rounded_up(iso_time(eta.p50_ms), iso_time(at_ms)))
    if eta.p90_ms is not None:
        most = minute_of(rounded_up(iso_time(eta.p90_ms), iso_time(at_ms)))
        if half == most:
            return f", about {most}"
    return f"; P50 is {half}"


def _expected(eta: Eta, at_ms: Millis) -> str:
    """Return both times of a forecast, rounded; one if they are the same."""
    half = at_most(eta.p50_ms - at_ms)
    if eta.p90_ms is None:
        return f"in about {half} (P50), P90 unknown"
    most = at_most(eta.p90_ms - at_ms)
    return (
        f"likely within {most} (P90)"
        if half == most
        else f"in about {half} (P50), within {most} (P90)"
    )


def _show_holders(holders: Holders) -> None:
    if holders.others_gpus_milli:
        show(f"{plural(holders.others_gpus_milli / WHOLE, 'GPU')} held by other teams")
    if not holders.jobs:
        return
    teams = ", ".join(
        f"{f'`{each.team}`' if each.team else 'no team'} {each.gpus_milli / WHOLE:,g}"
        for each in holders.teams[:SHOWN]
    )
    more = len(holders.teams) - SHOWN
    jobs = ", ".join(f"`{each.job_id}` {each.gpus_milli / WHOLE:,g}" for each in holders.jobs)
    noun = "team" if more == 1 else "teams"
    rest = f" and {more:,} more {noun}" if more > 0 else ""
    show(f"GPUs held: {teams}{rest}; largest jobs: {jobs}")


def _standing(each: QuotaUsage, *, is_total: bool) -> str:
    whose = f"team `{each.team}`" if each.team else "all teams"
    unit = each.resource
    if not each.team and not is_total:
        held, quota = amount_of(each.held, unit), number_of(each.quota, unit)
        return f"jobs without a team hold {held} (quota {quota})"
    if not each.team:
        return f"{whose} hold {number_of(each.held, unit)} of {amount_of(each.quota, unit)}"
    details = f"quota {number_of(each.quota, unit)}"
    if each.borrowed:
        details += f", {number_of(each.borrowed, unit)} borrowed"
    if each.limit is not None:
        details += f", limit {number_of(each.limit, unit)}"
    return f"{whose} holds {amount_of(each.held, unit)} ({details})"


def _remedy(remedy: Remedy) -> str:
    sentence = remedy.sentence or render(remedy.advice)
    gpu_h = (remedy.lost_gpu_ms + remedy.rented_gpu_ms) / (3_600 * SECOND)
    if not gpu_h:
        return sentence
    noun = "" if remedy.rented_gpu_ms else " lost"
    price = "" if remedy.usd_micros is None else f", {dollars(remedy.usd_micros)} in total"
    return f"{sentence} ({gpu_h:,.1f} GPU-hours{noun}{price})"


def _on(slots: Sequence[Slot]) -> str:
    names = list(dict.fromkeys(f"`{slot.node}`" for slot in slots))
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more:,} more" if more > 0 else "")


def _line(job: Job, state: str, since_ms: Millis, now_ms: Millis, reason: str = "") -> JobLine:
    return JobLine(
        job_id=job.id,
        team=job.team,
        state=state,
        gpus=job.shape.milli / WHOLE or job.shape.gpus,
        since_ms=since_ms,
        for_ms=Millis(now_ms - since_ms),
        reason=reason,
    )


def _arrival(job: Job) -> tuple[int, int]:
    return job.submitted_ms, job.seq
