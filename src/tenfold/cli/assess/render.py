"""The one screen of an assessment."""

from tenfold.cli.assess.words import (
    break_text,
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
from tenfold.cli.output import show, table
from tenfold.report.figures import share
from tenfold.study.assess.assess import Assessment

CAUSES_SHOWN = 4
ROWS_SHOWN = 4


def show_assessment(found: Assessment) -> None:
    """Print the assessment."""
    show(headline(found), "")
    facts = [
        ("allocated", fullness(found)),
        ("now", now_text(found)),
        ("wasted", held_text(found)),
        ("waits", waits_text(found)),
        ("", longest_text(found) if found.use.has_history else ""),
        *_causes(found),
        *_breaks(found),
    ]
    show(table("", ["", ""], [[name, text] for name, text in facts if text]), "")
    _show_changes(found)
    for one in found.changes.notes:
        show(one)
    for what, needs in found.unseen:
        show(f"not available: {what} (needs {needs})")
    for one in found.assumed:
        show(f"assumed: {one}")


def _causes(found: Assessment) -> list[tuple[str, str]]:
    rows = found.causes.rows[:CAUSES_SHOWN]
    lines = [f"{share(row.share)} of the wait time: {row.title}" for row in rows]
    return [("why" if place == 0 else "", line) for place, line in enumerate(lines)]


def _breaks(found: Assessment) -> list[tuple[str, str]]:
    outlook = found.outlook
    if outlook is None:
        return []
    first = outlook.sentence if outlook.first is None else break_text(outlook.first)
    lines = [("breaks first", first), ("growth", growth_text(outlook.trend))]
    if outlook.first is not None and outlook.first.fix:
        lines.insert(1, ("", f"fix: {outlook.first.fix}"))
    return lines


def _show_changes(found: Assessment) -> None:
    changes = found.changes.changes
    if not changes:
        return
    rows = [
        [
            change.sentence,
            saved_text(change.promised),
            saved_text(change.gave),
            cost_text(change),
        ]
        for change in changes
    ]
    show(
        table(
            "Changes that would help most: hours of wait time saved",
            ["change", ">1st half (tuning)", ">2nd half (test)", ">$/month"],
            rows,
        )
    )
    calibrated = all(change.calibrated for change in changes)
    if not calibrated:
        show("uncalibrated: use these figures to rank the changes, not as amounts")
    show(*(one.sentence for one in found.changes.calibrations))
