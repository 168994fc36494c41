"""A governance what-if as tables for people, in the terminal and on a page."""

from collections.abc import Callable, Sequence
from pathlib import Path

from rich.text import Text

from tenfold.cli.output import show, table
from tenfold.cli.sim.render import hours
from tenfold.report.figures import count, share
from tenfold.report.pages.html import Section, list_html, page, prose_html, table_html
from tenfold.study.govern.compare import Governance
from tenfold.study.govern.figures import Fare, Gain, TeamFare, Way

Table = tuple[list[str], list[list[str]]]
ARROW = "\u2192"
FOOT = "Simulations by Tenfold: the same jobs, fleet, policy and seed give the same page."
BY_TEAM: dict[str, Callable[[TeamFare], str]] = {
    "Mean wait": lambda fare: hours(fare.wait_s_mean),
    "Half of the jobs wait less than": lambda fare: hours(fare.wait_s_p50),
    "90% wait less than": lambda fare: hours(fare.wait_s_p90),
    "Got of what it deserved": lambda fare: f"{fare.served:.0%}",
}
REFUSED = "Jobs refused, which wait and deserve nothing"


def show_governance(answer: Governance) -> None:
    """Print the ways side by side, the teams under each, and what borrowing gains."""
    ways = [way for way in answer.ways if way.whole is not None]
    if ways:
        show(Text(_title(answer), style="bold"))
        show(*(f"  {way.name}: {way.words}" for way in ways))
        show("", table("", *_whole(ways)))
        for title, (columns, rows) in _by_team(ways).items():
            show("", Text(title, style="bold"), table("", columns, rows))
        if answer.borrowing is not None:
            show("", gain_words(answer.borrowing))
    for why in _failures(answer):
        show(why)


def governance_page(answer: Governance) -> str:
    """Return the same as a page."""
    ways = [way for way in answer.ways if way.whole is not None]
    sections: list[Section] = []
    if ways:
        words = [f"`{way.name}`: {way.words}." for way in ways]
        sections.append(Section("Side by side", list_html(words) + _html(_whole(ways))))
        sections += [Section(title, _html(shown)) for title, shown in _by_team(ways).items()]
    if answer.borrowing is not None:
        sections.append(Section("Borrowing", prose_html(gain_words(answer.borrowing))))
    if failed := _failures(answer):
        sections.append(Section("Runs that failed", list_html(failed)))
    if answer.notes:
        sections.append(Section("Notes", list_html(answer.notes)))
    return page("Governance what-if", sections, lead=f"{_title(answer)}.", foot=FOOT)


def gain_words(gain: Gain) -> str:
    """Return what borrowing gains over partitions, in a sentence or two."""
    waits = f"{hours(gain.wait_s_mean_before)} {ARROW} {hours(gain.wait_s_mean)}"
    held = f"{gain.allocated_waiting_before:.1%} {ARROW} {gain.allocated_waiting:.1%}"
    said = (
        f"Borrowing over partitions: while jobs wait, {held} of the GPUs are allocated;"
        f" {count(gain.jobs, 'job')} that finish under both wait {waits} in the mean,"
        f" {gain.delay_days_saved:,.0f} days less in all."
    )
    if gain.jobs_only_now:
        fit = "fits" if gain.jobs_only_now == 1 else "fit"
        said += (
            f" {count(gain.jobs_only_now, 'job')} of {gain.gpu_hours_only_now:,.0f} GPU-hours"
            f" {fit} into no partition."
        )
    return said


def _title(answer: Governance) -> str:
    jobs = next((way.whole.jobs for way in answer.ways if way.whole), 0)
    return f"{count(jobs, 'job')}, judged by `{Path(answer.policy).name}`"


def _whole(ways: Sequence[Way]) -> Table:
    figures = [_figures(way.whole) for way in ways if way.whole is not None]
    rows = [[name, *(each[name] for each in figures)] for name in figures[0]]
    # A row that is empty everywhere tells nothing.
    rows = [
        row for row in rows if row[0] != "jobs left over" or any(cell != "0" for cell in row[1:])
    ]
    return ["", *(f">{way.name}" for way in ways)], rows


def _figures(fare: Fare) -> dict[str, str]:
    return {
        "mean wait": hours(fare.wait_s_mean),
        "half wait less than": hours(fare.wait_s_p50),
        "90% wait less than": hours(fare.wait_s_p90),
        "mean wait of the worst team": hours(fare.worst_wait_s_mean),
        "days waited in all": f"{fare.delay_days:,.0f}",
        "evenness of what teams deserve (Jain)": f"{fare.jain_served:.3f}",
        "least served team got": share(fare.least_served),
        "evenness of slowdowns (Jain)": f"{fare.jain_slowdown:.2f}",
        "GPUs allocated": f"{fare.gpu_utilization:.1%}",
        "GPUs allocated while jobs wait": f"{fare.allocated_waiting:.1%}",
        "first submission to last end": hours(fare.makespan_s),
        "GPU-hours beyond quotas": f"{fare.beyond_quota_gpu_hours:,.0f}",
        "preemptions": f"{fare.preemptions:,}",
        "GPU-hours lost": f"{fare.gpu_hours_lost:,.0f}",
        "jobs finished": f"{fare.finished:,}",
        "jobs refused": f"{fare.refused:,}",
        "jobs left over": f"{fare.unfinished:,}",
    }


def _by_team(ways: Sequence[Way]) -> dict[str, Table]:
    teams = list(dict.fromkeys(team for way in ways for team in way.teams))
    columns = ["team", *(f">{way.name}" for way in ways)]
    tables: dict[str, Table] = {}
    for title, say in BY_TEAM.items():
        rows = [
            [team or "(none)", *(_cell(way.teams.get(team), say) for way in ways)] for team in teams
        ]
        tables[title] = (columns, rows)
    refused = [
        [way.teams[team].refused if team in way.teams else 0 for way in ways] for team in teams
    ]
    if any(map(any, refused)):
        rows = [
            [team or "(none)", *(f"{jobs:,}" for jobs in found)]
            for team, found in zip(teams, refused, strict=True)
            if any(found)
        ]
        tables[REFUSED] = (columns, rows)
    return tables


def _cell(fare: TeamFare | None, say: Callable[[TeamFare], str]) -> str:
    """Return a figure of a team; one of which nothing finished has none."""
    return "-" if fare is None or not fare.finished else say(fare)


def _failures(answer: Governance) -> list[str]:
    found: list[str] = []
    for way in answer.ways:
        if way.error is not None:
            hint = f" ({way.error.hint})" if way.error.hint else ""
            found.append(f"`{way.name}`: {way.error.message}{hint} [{way.error.code}]")
    return found


def _html(shown: Table) -> str:
    columns, rows = shown
    return table_html([column.lstrip(">") for column in columns], rows)
