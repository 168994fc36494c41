"""A governance comparison as text tables and as an HTML page."""

from collections.abc import Callable, Sequence
from pathlib import Path

from tenfold.cli.output import show, table
from tenfold.cli.screen import Text
from tenfold.cli.sim.render import hours
from tenfold.report.figures import count, share
from tenfold.report.pages.html import Section, list_html, page, prose_html, table_html
from tenfold.study.govern.compare import GovernanceComparison
from tenfold.study.govern.figures import BorrowingGain, FleetFigures, SharedRun, TeamFigures

Table = tuple[list[str], list[list[str]]]
ARROW = "\u2192"
FOOT = "Simulated by Tenfold. The same jobs, fleet, policy and seed always give the same result."
BY_TEAM: dict[str, Callable[[TeamFigures], str]] = {
    "Mean wait": lambda result: hours(result.wait_s_mean),
    "Wait, P50": lambda result: hours(result.wait_s_p50),
    "Wait, P90": lambda result: hours(result.wait_s_p90),
    "Entitlement received": lambda result: f"{result.served:.0%}",
}
NO_QUOTAS = "no-quotas"
"""Code of the error of a run without quotas."""
ABOVE_QUOTA = "GPU-hours above quota"
REFUSED = "Jobs rejected (not counted in waits or entitlement)"


def show_governance(answer: GovernanceComparison) -> None:
    """Print the modes side by side, the teams under each, and what borrowing gains."""
    runs = [shared for shared in answer.runs if shared.whole is not None]
    if runs:
        show(Text(_title(answer), style="bold"))
        show(*(f"  {shared.name}: {shared.description}" for shared in runs))
        show("", table("", *_whole(runs, has_quotas=_has_quotas(answer))))
        for title, (columns, rows) in _by_team(runs).items():
            show("", Text(title, style="bold"), table("", columns, rows))
        if answer.borrowing is not None:
            show("", gain_text(answer.borrowing))
    if failed := _failures(answer):
        show("", *failed)


def governance_page(answer: GovernanceComparison) -> str:
    """Return the same as a page."""
    runs = [shared for shared in answer.runs if shared.whole is not None]
    sections: list[Section] = []
    if runs:
        whole = _whole(runs, has_quotas=_has_quotas(answer))
        description = [f"`{shared.name}`: {shared.description}." for shared in runs]
        sections.append(Section("Side by side", list_html(description) + _html(whole)))
        sections += [Section(title, _html(shown)) for title, shown in _by_team(runs).items()]
    if answer.borrowing is not None:
        sections.append(Section("Borrowing", prose_html(gain_text(answer.borrowing))))
    if failed := _failures(answer):
        sections.append(Section("Failed runs", list_html(failed)))
    if answer.notes:
        sections.append(Section("Notes", list_html(answer.notes)))
    return page(
        "Quota policy compared with other policies", sections, lead=f"{_title(answer)}.", foot=FOOT
    )


def gain_text(gain: BorrowingGain) -> str:
    """Return what borrowing gains over partitions, in one or two sentences."""
    waits = f"{hours(gain.wait_s_mean_before)} {ARROW} {hours(gain.wait_s_mean)}"
    held = f"{gain.allocated_waiting_before:.1%} {ARROW} {gain.allocated_waiting:.1%}"
    said = (
        f"Effect of borrowing: GPUs allocated while jobs wait {held};"
        f" mean wait {waits} over the {count(gain.jobs, 'job')} that finish in both modes,"
        f" {gain.delay_days_saved:,.0f} days less in total."
    )
    if gain.jobs_only_now:
        is_one = gain.jobs_only_now == 1
        total = "" if is_one else " in total"
        larger = "is larger than the partition of its team"
        larger = larger if is_one else "are larger than the partitions of their teams"
        said += (
            f" {count(gain.jobs_only_now, 'job')} ({gain.gpu_hours_only_now:,.0f} GPU-hours{total})"
            f" {larger}."
        )
    return said


def _title(answer: GovernanceComparison) -> str:
    jobs = next((shared.whole.jobs for shared in answer.runs if shared.whole), 0)
    return f"{count(jobs, 'job')}; entitlements from `{Path(answer.policy).name}`"


def _has_quotas(answer: GovernanceComparison) -> bool:
    """Return whether any team has a quota: without one, nothing is above it."""
    return all(shared.error is None or shared.error.code != NO_QUOTAS for shared in answer.runs)


def _whole(runs: Sequence[SharedRun], *, has_quotas: bool) -> Table:
    figures = [_figures(shared.whole) for shared in runs if shared.whole is not None]
    if not has_quotas:
        figures = [{**each, ABOVE_QUOTA: "-"} for each in figures]
    rows = [[name, *(each[name] for each in figures)] for name in figures[0]]
    rows = [
        row for row in rows if row[0] != "jobs unfinished" or any(cell != "0" for cell in row[1:])
    ]
    return ["", *(f">{shared.name}" for shared in runs)], rows


def _figures(result: FleetFigures) -> dict[str, str]:
    return {
        "mean wait": hours(result.wait_s_mean),
        "wait, P50": hours(result.wait_s_p50),
        "wait, P90": hours(result.wait_s_p90),
        "mean wait, worst team": hours(result.worst_wait_s_mean),
        "total wait, days": f"{result.delay_days:,.0f}",
        "fairness of entitlement (Jain)": f"{result.jain_served:.3f}",
        "entitlement received, worst team": share(result.least_served),
        "fairness of slowdown (Jain)": f"{result.jain_slowdown:.2f}",
        "GPUs allocated": f"{result.gpu_utilization:.1%}",
        "GPUs allocated while jobs wait": f"{result.allocated_waiting:.1%}",
        "makespan": hours(result.makespan_s),
        ABOVE_QUOTA: f"{result.beyond_quota_gpu_hours:,.0f}",
        "preemptions": f"{result.preemptions:,}",
        "GPU-hours lost": f"{result.gpu_hours_lost:,.0f}",
        "jobs finished": f"{result.finished:,}",
        "jobs rejected": f"{result.refused:,}",
        "jobs unfinished": f"{result.unfinished:,}",
    }


def _by_team(runs: Sequence[SharedRun]) -> dict[str, Table]:
    teams = list(dict.fromkeys(team for shared in runs for team in shared.teams))
    columns = ["team", *(f">{shared.name}" for shared in runs)]
    tables: dict[str, Table] = {}
    for title, say in BY_TEAM.items():
        rows = [
            [team or "(none)", *(_cell(shared.teams.get(team), say) for shared in runs)]
            for team in teams
        ]
        tables[title] = (columns, rows)
    refused = [
        [shared.teams[team].refused if team in shared.teams else 0 for shared in runs]
        for team in teams
    ]
    if any(map(any, refused)):
        rows = [
            [team or "(none)", *(f"{jobs:,}" for jobs in found)]
            for team, found in zip(teams, refused, strict=True)
            if any(found)
        ]
        tables[REFUSED] = (columns, rows)
    return tables


def _cell(result: TeamFigures | None, say: Callable[[TeamFigures], str]) -> str:
    """Return a team's figure; a team with no finished jobs has none."""
    return "-" if result is None or not result.finished else say(result)


def _failures(answer: GovernanceComparison) -> list[str]:
    found: list[str] = []
    for shared in answer.runs:
        if shared.error is not None:
            found.append(f"`{shared.name}`: {shared.error.message} [{shared.error.code}]")
            found += [f"hint: {shared.error.hint}"] if shared.error.hint else []
    return found


def _html(shown: Table) -> str:
    columns, rows = shown
    return table_html([column.lstrip(">") for column in columns], rows)
