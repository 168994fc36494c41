"""What a replay found, as JSON for programs and as tables for people."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import asdict
from rich.table import Table

from tenfold.cli.output import show, table
from tenfold.cli.sim.render import hours
from tenfold.engine.explain import JobHistory
from tenfold.engine.replay import describe
from tenfold.engine.shadow import Shadowed
from tenfold.model.actions import Action
from tenfold.model.ids import JobId
from tenfold.model.units import DAY, SECOND
from tenfold.report.figures import count, share
from tenfold.report.reasons.render import render
from tenfold.study.replay.bundle import ReplayCheck
from tenfold.study.replay.diff import Figures, JobDiff, ReplayDiff, Shift

DATES_MS = 30 * 365 * DAY
"""Simulated time begins with 0, real time in 1970: what is later than this is a date."""
SHOWN = 5
"""Actions, jobs and differences that are named before the rest is counted."""


def verified_json(check: ReplayCheck) -> dict[str, object]:
    """Return a verification with its answer."""
    return {"same": check.same, **asdict(check)}


def show_verified(record: str, check: ReplayCheck) -> None:
    """Print whether a replay came out as recorded, or the first difference."""
    found = check.difference
    if found is None:
        fleet = "and the same fleet at the end"
        if not check.same_fleet:
            fleet = "but another fleet at the end: a fact was changed or left out"
        under = ", then ".join(f"`{name}`" for name in check.policies)
        begun = f", in {check.starts:,} starts of the loop" if check.starts > 1 else ""
        show(
            f"{record}: {count(check.events, 'fact')} and {count(check.cycles, 'cycle')} "
            f"replayed under {under}{begun}",
            f"{count(check.orders, 'order')} decided as recorded, {fleet}",
        )
        return
    seen = found.seen
    show(
        f"{record}: cycle {found.cycle:,} at {_moment(found.at_ms)} differs",
        found.sentence,
        f"seen: {seen.pending:,} waiting, {seen.ordered:,} starting, {seen.running:,} running, "
        f"{seen.gpus_free:,} GPUs free on {count(seen.nodes_up, 'node')} that are up",
        f"recorded: {_actions(found.recorded)}",
        f"decided: {_actions(found.decided)}",
    )


def _moment(at_ms: int) -> str:
    """Return a time as a date where it is one, else since the beginning."""
    if at_ms < DATES_MS:
        return hours(at_ms / SECOND)
    return datetime.fromtimestamp(at_ms / SECOND, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _actions(actions: Sequence[Action]) -> str:
    if not actions:
        return "nothing"
    said = "; ".join(describe(action) for action in actions[:SHOWN])
    more = len(actions) - SHOWN
    return f"{said}; and {more:,} more" if more > 0 else said


def diff_json(diff: ReplayDiff, before: str, after: str) -> dict[str, object]:
    """Return what differs, with the names of both policies."""
    return {"policy_recorded": before, "policy_again": after, **asdict(diff)}


def show_diff(diff: ReplayDiff, before: str, after: str) -> None:
    """Print what would have differed under another policy."""
    show(
        f"{count(diff.recorded.jobs, 'job')} recorded under `{before}`, run again under `{after}`",
        "",
        _figures_table(diff.recorded, diff.again, before, after),
        "",
        f"start earlier: {_shift(diff.earlier)}",
        f"start later: {_shift(diff.later)}",
        f"start on other nodes: {count(diff.other_nodes, 'job')}; "
        f"as recorded: {count(diff.alike, 'job')}",
        f"preemptions: {diff.preemptions_added:,} added, {diff.preemptions_avoided:,} avoided",
    )
    if diff.only_recorded or diff.only_again:
        show(
            f"start in the record alone: {count(diff.only_recorded, 'job')}; "
            f"only under `{after}`: {count(diff.only_again, 'job')}"
        )
    if diff.jobs:
        show("", _jobs_table(diff.jobs))


def _figures_table(one: Figures, other: Figures, before: str, after: str) -> Table:
    rows = [
        ["finished", f"{one.finished:,}", f"{other.finished:,}"],
        ["refused", f"{one.refused:,}", f"{other.refused:,}"],
        ["mean completion", hours(one.avg_jct_s), hours(other.avg_jct_s)],
        ["mean wait", hours(one.avg_wait_s), hours(other.avg_wait_s)],
        ["from first submission to last end", hours(one.makespan_s), hours(other.makespan_s)],
        ["GPUs allocated", share(one.gpu_utilization), share(other.gpu_utilization)],
        ["preemptions", f"{one.preemptions:,}", f"{other.preemptions:,}"],
        ["runs broken by a lost node", f"{one.failures:,}", f"{other.failures:,}"],
    ]
    return table("", ["", f">{before}, recorded", f">{after}"], rows)


def _shift(shift: Shift) -> str:
    if not shift.jobs:
        return "0 jobs"
    return (
        f"{count(shift.jobs, 'job')}, by {hours(shift.mean_s)} on average "
        f"and {hours(shift.most_s)} at most"
    )


def _jobs_table(jobs: Sequence[JobDiff]) -> Table:
    rows = [
        [
            str(diff.job),
            diff.team,
            hours(diff.wait_s),
            hours(diff.wait_again_s),
            _moved(diff.start_moved_s),
            "-" if diff.end_moved_s is None else _moved(diff.end_moved_s),
            "same" if diff.same_nodes else "others",
        ]
        for diff in jobs
    ]
    columns = ["job", "team", ">waited", ">would wait", ">start", ">end", "nodes"]
    return table("Starts that move most", columns, rows)


def _moved(by_s: float) -> str:
    if not by_s:
        return "same"
    return f"{'+' if by_s > 0 else '-'}{hours(abs(by_s))}"


def show_story(story: JobHistory) -> None:
    """Print what happened to a job, and what stands in its way if it waits."""
    job = story.job
    team = f" of team `{job.team}`" if job.team else ""
    waited, ran = hours(story.waited_ms / SECOND), hours(story.ran_ms / SECOND)
    rows = [
        [
            hours((stage.at_ms - job.submitted_ms) / SECOND),
            stage.code,
            render(stage.why),
        ]
        for stage in story.stages
    ]
    show(
        f"`{job.id}`{team}: {story.state}, waited {waited}, ran {ran}",
        "",
        table("", [">after", "what", "why"], rows),
    )
    if story.obstacle is not None:
        show("", f"where the record ends: {render(story.obstacle.reason)}")


def shadow_json(shadow: Shadowed) -> dict[str, object]:
    """Return what a shadow would have done otherwise."""
    return {
        "policy": shadow.shadow_name,
        "cycles": shadow.cycles,
        "cycles_differing": shadow.cycles_differing,
        "would_start": len(shadow.would_start),
        "would_stop": len(shadow.would_stop),
        "failure": shadow.failure,
        "differences": shadow.differences,
    }


def show_shadow(shadow: Shadowed) -> None:
    """Print in a few lines what a shadow would have done otherwise."""
    name = shadow.shadow_name
    show(
        "",
        f"shadow `{name}`: differs in {shadow.cycles_differing:,} of "
        f"{count(shadow.cycles, 'cycle')}; it would have started "
        f"{count(len(shadow.would_start), 'job')} sooner and stopped "
        f"{count(len(shadow.would_stop), 'job')}",
    )
    for found in shadow.differences[:SHOWN]:
        parts = [
            _named("would start", found.started),
            _named("would let wait", found.held_back),
            _named("would start elsewhere", found.elsewhere),
            _named("would stop", found.stopped),
            _named("would spare", found.spared),
            _named("differs on refusing", found.refused),
        ]
        show(f"  at {hours(found.at_ms / SECOND)} it {', '.join(part for part in parts if part)}")
    if shadow.failure:
        show(f"the shadow broke and was left out from there on: {shadow.failure}")


def _named(verb: str, jobs: Sequence[JobId]) -> str:
    if not jobs:
        return ""
    more = f" and {len(jobs) - SHOWN:,} more" if len(jobs) > SHOWN else ""
    return f"{verb} {', '.join(f'`{job}`' for job in jobs[:SHOWN])}{more}"
