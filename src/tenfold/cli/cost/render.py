"""A bill as text, CSV and HTML."""

import csv
import io
from collections.abc import Sequence

from tenfold.cli.output import show, table
from tenfold.cli.screen import Text
from tenfold.model.units import usd
from tenfold.report.figures import count, share
from tenfold.report.pages.html import Section, list_html, page, table_html, tiles_html
from tenfold.study.cost.question import CostAnswer
from tenfold.study.cost.recommend import Recommendation
from tenfold.study.cost.report import DIMENSIONS, CostReport, CostRow, Dimension, Overhead

CSV_COLUMNS = ("by", "key", "gpu_hours", "usd", "idle_usd", "kwh", "co2e_kg")
NOT_ADDED = "each saving is relative to today; they cannot be added together"


def show_cost(answer: CostAnswer, *, by: Dimension, top: int) -> None:
    """Print the bill, its rows, and what would lower it."""
    report = answer.report
    show(
        Text(
            f"${usd(report.total_usd_micros):,.2f} in {report.hours:,.1f} h; the fleet had "
            f"{report.gpu_hours:,.0f} GPU-hours, of which jobs used {share(_used(report))}",
            style="bold",
        ),
        "",
        table("", ["", ">$", ">share"], _sums(report)),
        "",
    )
    rows = report.rows[by]
    columns = [by, ">GPU-h", ">$", ">idle share $", ">kWh", ">kg CO2e"]
    show(table("", columns, _rows(report, rows[:top])))
    if len(rows) > top:
        show(f"{len(rows) - top:,} more with --top, --csv or --json")
    show("", table("", ["idle and overhead", ">$", ">kWh"], _other(report)))
    if answer.recommendations is not None:
        _show_recommendations(answer.recommendations)
    for note in (*report.notes, *answer.notes):
        show(Text(f"note: {note}", style="dim"))


def _show_recommendations(found: Sequence[Recommendation]) -> None:
    if not found:
        show("", "none of the simulated changes saves money")
        return
    show("", f"{count(len(found), 'change')} would save ({NOT_ADDED}):")
    for one in found:
        kind = "" if one.is_cash else ", as capacity for others"
        show(
            f"- {one.kind}: {one.do}",
            f"  saves ${usd(one.saves_usd_micros):,.2f} in this run, "
            f"${one.saves_usd_per_month:,.0f} a month{kind}",
            f"  simulated: {one.simulated}",
            f"  risk: {one.risk}",
        )


def cost_csv(report: CostReport) -> str:
    """Return every row of every dimension, and idle and overhead, as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for dimension in DIMENSIONS:
        for row in report.rows[dimension]:
            carbon = "" if row.co2e_kg is None else f"{row.co2e_kg:.6f}"
            figures = [f"{row.gpu_hours:.6f}", _exact(row.usd_micros), _exact(row.idle_usd_micros)]
            writer.writerow([dimension, row.key, *figures, f"{row.kwh:.6f}", carbon])
    for kind, lines in (("idle", report.idle), ("overhead", report.overhead)):
        for line in lines:
            writer.writerow(
                [kind, line.item, "", _exact(line.usd_micros), "", f"{line.kwh:.6f}", ""]
            )
    writer.writerow(["total", "", "", _exact(report.total_usd_micros), "", "", ""])
    return stream.getvalue()


def cost_page(answer: CostAnswer) -> str:
    """Return the bill as one HTML page."""
    report = answer.report
    tiles = [
        (f"${usd(report.total_usd_micros):,.2f}", f"in {report.hours:,.1f} h"),
        (share(_used(report)), "of GPU-hours allocated"),
        (f"${usd(report.idle_usd_micros):,.2f}", "idle"),
        ("-" if report.kwh is None else f"{report.kwh:,.0f} kWh", "energy"),
    ]
    columns = ["", "GPU-h", "$", "idle share $", "kWh", "kg CO2e"]
    sections = [
        ("Where it went", table_html(["", "$", "share"], _sums(report))),
        *(
            (f"By {dimension}", table_html(columns, _rows(report, report.rows[dimension][:100])))
            for dimension in DIMENSIONS
        ),
        ("Idle and overhead", table_html(["", "$", "kWh"], _other(report))),
    ]
    if answer.recommendations:
        lines = [
            f"{one.do}: ${one.saves_usd_per_month:,.0f} a month. Simulated: {one.simulated}. "
            f"Risk: {one.risk}"
            for one in answer.recommendations
        ]
        sections.append((f"What would save ({NOT_ADDED})", list_html(lines)))
    notes = (*report.notes, *answer.notes)
    if notes:
        sections.append(("Notes", list_html(notes)))
    parts = [Section(title, body) for title, body in sections]
    return page("Cost report", parts, lead=answer.source, top_html=tiles_html(tiles))


def _used(report: CostReport) -> float:
    return report.gpu_hours_allocated / report.gpu_hours if report.gpu_hours else 0.0


def _sums(report: CostReport) -> list[list[str]]:
    parts = [
        ("charged to jobs", report.charged_usd_micros),
        ("idle", report.idle_usd_micros),
        ("overhead", report.overhead_usd_micros),
        ("total", report.total_usd_micros),
    ]
    whole = report.total_usd_micros or 1
    return [[name, f"{usd(amount):,.2f}", share(amount / whole)] for name, amount in parts]


def _rows(report: CostReport, rows: Sequence[CostRow]) -> list[list[str]]:
    """Return one line for each row; energy is unknown without a fleet file."""
    return [
        [
            row.key,
            f"{row.gpu_hours:,.1f}",
            f"{usd(row.usd_micros):,.2f}",
            f"{usd(row.idle_usd_micros):,.2f}",
            "-" if report.kwh is None else f"{row.kwh:,.1f}",
            "-" if report.kwh is None or row.co2e_kg is None else f"{row.co2e_kg:,.1f}",
        ]
        for row in rows
    ]


def _other(report: CostReport) -> list[list[str]]:
    def line(name: str, one: Overhead) -> list[str]:
        return [name, f"{usd(one.usd_micros):,.2f}", f"{one.kwh:,.1f}" if one.kwh else ""]

    return [
        *(line(f"idle, {one.item}", one) for one in report.idle),
        *(line(one.item, one) for one in report.overhead),
    ]


def _exact(micros: int) -> str:
    """Return micro-dollars as dollars with six decimals, without a float in between."""
    whole, rest = divmod(micros, 1_000_000)
    return f"{whole}.{rest:06d}"
