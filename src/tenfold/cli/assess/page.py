"""The page of an assessment."""

from collections.abc import Sequence

from tenfold.cli.assess.words import (
    amount,
    break_text,
    calibration_text,
    cost_text,
    fullness,
    growth_text,
    headline,
    held_text,
    longest_text,
    now_text,
    saved_text,
    waits_text,
)
from tenfold.report.charts.runs import count_over_time, share_over_time, span
from tenfold.report.figures import share
from tenfold.report.pages.html import (
    Section,
    charts_html,
    list_html,
    page,
    pairs_html,
    prose_html,
    table_html,
    tiles_html,
)
from tenfold.study.assess.assess import Assessment
from tenfold.study.assess.changes import Change
from tenfold.study.assess.use import UseRow
from tenfold.study.assess.waits import WaitRow

ROWS_MOST = 12
FOOT = (
    "Made by `tenfold assess`. Use and waits are sums over the record; changes are simulated on "
    "the record with the code that schedules. Nothing was sent anywhere."
)


def assess_page(found: Assessment) -> str:
    """Return the page."""
    sections = [
        Section("How full the fleet is, and by whom", _use(found)),
        Section("Wasted GPU-hours", _held(found)),
        Section("How long jobs wait", _waits(found)),
        Section("Why they wait", _causes(found)),
        Section("What breaks first", _outlook(found)),
        Section("Changes that would help most", _changes(found)),
        Section("What was not available", _unseen(found)),
    ]
    return page(
        f"Assessment of {found.cluster}",
        sections,
        lead=headline(found),
        top_html=tiles_html(_tiles(found)),
        foot=FOOT,
    )


def _tiles(found: Assessment) -> list[tuple[str, str]]:
    every = found.waits.every
    how = "simulated " if found.waits.simulated else ""
    if not found.use.has_history:
        now = found.use.now
        return [(f"{now.free:,}", "GPUs free"), (f"{now.pending:,}", "jobs pending")] if now else []
    held = share(found.use.share) if found.use.counts_gpus else "-"
    tiles = [
        (held, "of GPU-hours allocated"),
        (span(every.mean_s), f"mean {how}wait"),
        (span(every.p90_s), f"P90 {how}wait"),
        (f"{amount(every.waiting_hours)} h", "of wait time in total"),
    ]
    outlook = found.outlook
    if outlook is not None and outlook.first is not None and outlook.first.factor is not None:
        one = outlook.first
        figure = one.day or ("today" if (one.factor or 2) <= 1 else f"{one.factor:.2f}x")
        tiles.append((figure, f"first limit: {one.label}"))
    return tiles


def _said(text: str, before: str = "") -> str:
    return prose_html(f"{before}{text}.") if text else ""


def _use(found: Assessment) -> str:
    use = found.use
    if not use.has_history:
        text = "No history of jobs could be read. "
        return _said(f"Now: {now_text(found)}", text) if use.now else prose_html(text)
    parts = [_said(fullness(found))]
    if now_text(found):
        parts.append(prose_html(f"Now: {now_text(found)}."))
    charts: list[str] = []
    if use.over_time:
        charts.append(share_over_time("GPUs allocated", {"allocated": use.over_time}))
    weeks = found.outlook.trend.gpu_hours_by_week if found.outlook else ()
    if len(weeks) > 1:
        points = [((place + 0.5) * 604_800.0, one) for place, one in enumerate(weeks)]
        charts.append(count_over_time("Work submitted a week", "GPU-hours", {"submitted": points}))
    parts.append(charts_html(*charts))
    for name, holders in (
        ("account", use.by_account),
        ("user", use.by_user),
        ("partition", use.by_partition),
    ):
        parts.append(_holders(name, holders))
    return "".join(parts)


def _holders(name: str, holders: Sequence[UseRow]) -> str:
    if len(holders) == 1 and holders[0].name == "(none)":
        return ""
    rows = [
        [one.name, f"{one.jobs:,}", f"{one.gpu_hours:,.1f}", f"{one.share:.1%}"]
        for one in holders[:ROWS_MOST]
    ]
    return table_html([name, "jobs", "GPU-hours", "share of the fleet"], rows) + _more(
        len(holders), name
    )


def _more(many: int, name: str) -> str:
    return prose_html(f"{many - ROWS_MOST:,} more by {name}.") if many > ROWS_MOST else ""


def _held(found: Assessment) -> str:
    held, price = found.use.held, found.usd_per_gpu_hour
    if not held_text(found):
        return prose_html("Not known: no record says how many GPUs jobs had.") + _unusable(found)

    def row(name: str, hours: float | None) -> list[str]:
        if hours is None:
            return [name, "-", "-", "-"]
        part = hours / found.use.gpu_hours if found.use.gpu_hours else 0.0
        money = "-" if price is None else f"${hours * price:,.0f}"
        return [name, f"{hours:,.1f}", f"{part:.1%}", money]

    rows = [
        row("allocated beyond what the job requested", held.unrequested),
        row("held by jobs that used almost no CPU time", held.low_cpu),
        row("used by jobs that failed, timed out or lost a node", held.lost),
        row("used by jobs that were cancelled", held.cancelled),
    ]
    parts = [
        _said(held_text(found), "Wasted: "),
        table_html(["", "GPU-hours", "of those allocated", "dollars"], rows),
    ]
    if found.changes.price_words:
        parts.append(prose_html(f"Dollars: {found.changes.price_words}."))
    if held.overlong_limits is not None:
        parts.append(
            prose_html(
                f"The median completed job ran for 1/{held.overlong_limits:,.1f} of its time "
                "limit; backfill relies on the limits."
            )
        )
    return "".join([*parts, _unusable(found)])


def _unusable(found: Assessment) -> str:
    now = found.use.now
    if now is None or not now.unusable_nodes:
        return ""
    return pairs_html([(name, why) for name, why in now.unusable_nodes])


def _waits(found: Assessment) -> str:
    waits = found.waits
    if not found.use.has_history:
        return prose_html("Not known: no history of jobs could be read.")
    parts = [prose_html(f"Waits: {waits_text(found)}; {longest_text(found)}.")]
    if waits.simulated:
        parts.append(
            prose_html(
                "The record does not say when jobs started: these waits are simulated under "
                f"{found.policy}, and not calibrated."
            )
        )
    for name, rows in (
        ("account", waits.by_account),
        ("partition", waits.by_partition),
        ("size", waits.by_size),
    ):
        if len(rows) > 1 or (rows and rows[0].name != "(none)"):
            parts.append(_wait_table(name, rows) + _more(len(rows), name))
    return "".join(parts)


def _wait_table(name: str, rows: Sequence[WaitRow]) -> str:
    return table_html(
        [name, "jobs", "mean", "median", "P90", "total hours", "GPU-hours waiting"],
        [
            [
                one.name,
                f"{one.jobs:,}",
                span(one.mean_s),
                span(one.p50_s),
                span(one.p90_s),
                f"{one.waiting_hours:,.1f}",
                f"{one.gpu_hours_waiting:,.1f}",
            ]
            for one in rows[:ROWS_MOST]
        ],
    )


def _causes(found: Assessment) -> str:
    rows = [
        [
            one.title,
            f"{one.waiting_hours:,.1f}",
            f"{one.share:.1%}",
            f"{one.gpu_hours_waiting:,.1f}",
            f"{one.jobs:,}",
        ]
        for one in found.causes.rows
    ]
    return prose_html(
        "Computed from what ran where at eight moments of each wait; the scheduler's own reasons "
        "are not read."
    ) + table_html(
        [
            "cause",
            "hours of wait time",
            "share",
            "GPU-hours waiting",
            "jobs with this as main cause",
        ],
        rows,
    )


def _outlook(found: Assessment) -> str:
    outlook = found.outlook
    if outlook is None:
        return prose_html("No history of jobs: there is nothing to grow.")
    first = outlook.sentence if outlook.first is None else break_text(outlook.first)
    rows = [
        [
            one.label,
            "today" if one.factor is not None and one.factor <= 1 else f"{one.factor or 0:.2f}x",
            one.day or "-",
            one.symptom,
            one.fix or "-",
            one.grade or "-",
        ]
        for one in ([outlook.first] if outlook.first else []) + list(outlook.others)
    ]
    parts = [prose_html(f"First: {first}; {growth_text(outlook.trend)}.")]
    if rows:
        parts.append(
            table_html(["limit", "load", "day", "symptom", "fix", "based on"], rows[:ROWS_MOST])
        )
    parts.append(prose_html(f"Simulated limits: {outlook.calibration}."))
    return "".join(parts)


def _changes(found: Assessment) -> str:
    changes = found.changes
    parts = [
        prose_html(
            f"Every change is simulated on the record, against {found.policy}. It is chosen on "
            "the first half of the jobs and tried on the second."
        )
    ]
    if calibration_text(found):
        parts.append(prose_html(f"Calibration: {calibration_text(found)}."))
    rows = [_change(one) for one in changes.changes]
    if rows:
        columns = [
            "change",
            "saved, 1st half (tuning)",
            "saved, 2nd half (test)",
            "mean wait, 2nd half",
            "$/month",
        ]
        parts.append(table_html([*columns, "how, and what it is worth"], rows))
        if not all(one.calibrated for one in changes.changes):
            parts.append(
                prose_html("Uncalibrated: use these figures to rank the changes, not as amounts.")
            )
    tried = [
        [
            one.kind,
            one.name,
            span(one.mean_wait_s),
            f"{one.hours_saved:,.1f}",
            "yes" if one.allowed else "no: large jobs wait longer",
        ]
        for one in changes.candidates
    ]
    if tried:
        parts.append(prose_html("Everything that was tried on the first half:"))
        parts.append(table_html(["kind", "change", "mean wait", "hours saved", "allowed"], tried))
    parts.append(list_html(list(changes.notes)))
    return "".join(parts)


def _change(one: Change) -> list[str]:
    before, after = one.gave.before, one.gave.after
    worth = f"; {one.worth}" if one.worth else ""
    return [
        one.sentence,
        saved_text(one.promised),
        saved_text(one.gave),
        f"{span(before.mean_wait_s)} to {span(after.mean_wait_s)}",
        cost_text(one),
        f"{one.how}{worth}",
    ]


def _unseen(found: Assessment) -> str:
    parts = [pairs_html([(what, f"needs {needs}") for what, needs in found.unseen])]
    said = [f"assumed: {one}" for one in found.assumed] + list(found.notes)
    if found.outlook is not None:
        said += [one for one in found.outlook.assumptions if one not in said]
    return "".join([*parts, list_html(said)])
