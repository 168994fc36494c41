"""Results of a replay as JSON and as text."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec.structs import asdict
from rich.table import Table

from tenfold.cli.output import print_note, show, table
from tenfold.cli.replay.event_names import event_name
from tenfold.cli.sim.render import hours
from tenfold.engine.explain import JobHistory
from tenfold.engine.replay import describe
from tenfold.engine.shadow import Shadowed
from tenfold.model.actions import Action
from tenfold.model.ids import JobId
from tenfold.model.units import DAY, SECOND
from tenfold.report.figures import count, share
from tenfold.report.reasons.render import duration_text, render
from tenfold.study.replay.bundle import ReplayCheck
from tenfold.study.replay.calibration import WaitCalibration
from tenfold.study.replay.diff import Figures, JobDiff, ReplayDiff, Shift

DATES_MS = 30 * 365 * DAY
"""Simulated time starts at 0, real time in 1970: anything later than this is a date."""
SHOWN = 5
"""Actions, jobs and differences listed before the rest is only counted."""


def verified_json(check: ReplayCheck) -> dict[str, object]:
    """Return a verification as JSON."""
    return {"same": check.same, **asdict(check)}


def show_verified(record: str, check: ReplayCheck) -> None:
    """Print whether the replay matches the recording, or the first difference."""
    found = check.difference
    if found is None:
        fleet = "the final fleet state is the same"
        if not check.same_fleet:
            fleet = "but the final fleet state differs: an event was changed or removed"
        under = ", then ".join(f"`{name}`" for name in check.policies)
        begun = f" ({check.starts:,} starts of the control plane)" if check.starts > 1 else ""
        show(
            f"{record}: replayed {count(check.events, 'event')} and {count(check.cycles, 'cycle')} "
            f"under {under}{begun}",
            f"{_matching(check.orders)} the recording; {fleet}",
        )
        return
    seen = found.seen
    show(
        f"{record}: the replay differs in cycle {found.cycle:,}, at {_moment(found.at_ms)}",
        found.sentence,
        f"state: {seen.pending:,} waiting, {seen.ordered:,} starting, {seen.running:,} running, "
        f"{seen.gpus_free:,} GPUs free, {count(seen.nodes_up, 'node')} up",
        f"recorded: {_actions(found.recorded)}",
        f"replayed: {_actions(found.decided)}",
    )


def _matching(actions: int) -> str:
    if not actions:
        return "no actions in"
    return "1 action matches" if actions == 1 else f"all {actions:,} actions match"


def _moment(at_ms: int) -> str:
    """Return a real time as a date, and a simulated one as time since the start."""
    if at_ms < DATES_MS:
        return hours(at_ms / SECOND)
    return datetime.fromtimestamp(at_ms / SECOND, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _actions(actions: Sequence[Action]) -> str:
    if not actions:
        return "nothing"
    said = "; ".join(describe(action) for action in actions[:SHOWN])
    more = len(actions) - SHOWN
    return f"{said}; and {more:,} more" if more > 0 else said


def calibration_json(found: WaitCalibration) -> dict[str, object]:
    """Return a calibration as JSON."""
    return {"sentence": found.sentence, **asdict(found)}


def show_calibration(record: str, found: WaitCalibration) -> None:
    """Print how far the unchanged policy, simulated, is from what was recorded."""
    rows = [
        ["mean wait", hours(found.recorded_wait_s), hours(found.simulated_wait_s)],
        [
            "mean wait, weighted by GPUs",
            hours(found.recorded_gpu_wait_s),
            hours(found.simulated_gpu_wait_s),
        ],
    ]
    show(
        f"{record}: recorded from another scheduler, replayed under a simulation of its policy "
        f"(`{found.policy}`):",
        "",
        table("", ["", ">recorded", ">simulated"], rows),
        "",
        found.sentence,
    )
    for note in found.notes:
        print_note(note)


def diff_json(
    diff: ReplayDiff, before: str, after: str, found: WaitCalibration | None = None
) -> dict[str, object]:
    """Return the differences and the names of both policies."""
    names: dict[str, object] = {"policy_recorded": before, "policy_again": after}
    if found is not None:
        names["calibration"] = calibration_json(found)
    return {**names, **asdict(diff)}


def show_diff(diff: ReplayDiff, before: str, after: str) -> None:
    """Print what would have been different under another policy."""
    show(
        f"{count(diff.recorded.jobs, 'job')} recorded under `{before}`, rerun under `{after}`",
        "",
        _figures_table(diff.recorded, diff.again, before, after),
        "",
        f"earlier starts: {_shift(diff.earlier)}",
        f"later starts: {_shift(diff.later)}",
        f"same start on other nodes: {count(diff.same_start_other_nodes, 'job')}",
        f"unchanged: {count(diff.alike, 'job')}",
        f"preemptions: {diff.preemptions_added:,} added, {diff.preemptions_avoided:,} avoided",
    )
    if diff.only_recorded or diff.only_again:
        show(
            f"started only in the recording: {count(diff.only_recorded, 'job')}; "
            f"only under `{after}`: {count(diff.only_again, 'job')}"
        )
    if diff.jobs:
        show("", _jobs_table(diff.jobs))


def _figures_table(one: Figures, other: Figures, before: str, after: str) -> Table:
    rows = [
        ["finished", f"{one.finished:,}", f"{other.finished:,}"],
        ["rejected", f"{one.refused:,}", f"{other.refused:,}"],
        ["mean job completion time", hours(one.avg_jct_s), hours(other.avg_jct_s)],
        ["mean wait", hours(one.avg_wait_s), hours(other.avg_wait_s)],
        ["makespan", hours(one.makespan_s), hours(other.makespan_s)],
        ["GPUs allocated", share(one.gpu_utilization), share(other.gpu_utilization)],
        ["preemptions", f"{one.preemptions:,}", f"{other.preemptions:,}"],
        ["runs lost to node failures", f"{one.failures:,}", f"{other.failures:,}"],
    ]
    return table("", ["", f">{before} (recorded)", f">{after}"], rows)


def _shift(shift: Shift) -> str:
    if not shift.jobs:
        return "0 jobs"
    return (
        f"{count(shift.jobs, 'job')}, by {hours(shift.mean_s)} on average, "
        f"{hours(shift.most_s)} at most"
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
            "same" if diff.same_nodes else "other",
        ]
        for diff in jobs
    ]
    columns = ["job", "team", ">wait", ">new wait", ">start", ">end", "nodes"]
    return table("Largest changes", columns, rows)


def _moved(by_s: float) -> str:
    if not by_s:
        return "same"
    return f"{'+' if by_s > 0 else '-'}{hours(abs(by_s))}"


def show_story(story: JobHistory) -> None:
    """Print the history of a job, and what blocks it if it still waits."""
    job = story.job
    team = f" (team `{job.team}`)" if job.team else ""
    waited, ran = duration_text(story.waited_ms), duration_text(story.ran_ms)
    rows = [
        [
            duration_text(stage.at_ms - job.submitted_ms),
            event_name(stage.code),
            render(stage.why),
        ]
        for stage in story.stages
    ]
    show(
        f"`{job.id}`{team}: {event_name(story.state)}; waited {waited}, ran {ran}",
        "",
        table("", [">elapsed", "event", "reason"], rows),
    )
    if story.obstacle is not None:
        show("", f"reason at the end of the recording: {render(story.obstacle.reason)}")


def shadow_json(shadow: Shadowed) -> dict[str, object]:
    """Return what a shadow policy would have done differently."""
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
    """Print in a few lines what a shadow policy would have done differently."""
    name = shadow.shadow_name
    show(
        "",
        f"shadow policy `{name}`: differs in {shadow.cycles_differing:,} of "
        f"{count(shadow.cycles, 'cycle')}; would have started "
        f"{count(len(shadow.would_start), 'job')} earlier and stopped "
        f"{count(len(shadow.would_stop), 'job')}",
    )
    for found in shadow.differences[:SHOWN]:
        parts = [
            _named("would start {}", found.started),
            _named("would keep {} waiting", found.held_back),
            _named("would start {} on other nodes", found.elsewhere),
            _named("would stop {}", found.stopped),
            _named("would not stop {}", found.spared),
            _named("would not agree on rejecting {}", found.refused),
        ]
        show(f"  {hours(found.at_ms / SECOND)}: {', '.join(part for part in parts if part)}")
    if shadow.failure:
        show(f"the shadow policy failed and was stopped: {shadow.failure}")


def _named(text: str, jobs: Sequence[JobId]) -> str:
    if not jobs:
        return ""
    more = f" and {len(jobs) - SHOWN:,} more" if len(jobs) > SHOWN else ""
    return text.format(", ".join(f"`{job}`" for job in jobs[:SHOWN]) + more)
