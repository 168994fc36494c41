"""`tenfold capacity triggers` and `tenfold capacity review`: is it time to order, was it right?"""

from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.errors import Exit
from tenfold.cli.grow.command import FleetFile, GrowFile
from tenfold.cli.output import print_json, print_note, show, table
from tenfold.compose.fleet import load_facts
from tenfold.files.capacity.drivers import read_drivers
from tenfold.files.capacity.proposals import add_proposals, read_proposals
from tenfold.files.capacity.tables import parsed_day
from tenfold.files.capacity.triggers import read_triggers
from tenfold.files.fleet.read import load_fleet
from tenfold.files.growth import read_grow
from tenfold.files.series.series import read_timed_series
from tenfold.model.errors import InputError
from tenfold.physics.operations.lead_time import total_of
from tenfold.report.figures import count, share
from tenfold.study.capacity.answer import CapacityAnswer
from tenfold.study.capacity.history import read_spans
from tenfold.study.capacity.inputs import TimedSeries
from tenfold.study.capacity.options import LEAD_STAGES
from tenfold.study.capacity.review import Review, review
from tenfold.study.capacity.triggers import TriggerAnswer, TriggerQuestion, evaluate

DAYS_PER_WEEK = 7


def triggers_command(
    fleet: FleetFile,
    *,
    rules: Annotated[Path, Parameter(help="Trigger file: rules with thresholds and evidence")],
    jobs: Annotated[
        Path,
        Parameter(help="Job history: a job table, a public trace, or a state directory"),
    ],
    start: Annotated[str, Parameter(help="First date of the history, such as 2026-06-01")],
    grow: GrowFile = None,
    drivers: Annotated[
        list[Path] | None,
        Parameter(
            name="--drivers",
            negative="",
            help="Driver file, for rules of kind `pipeline` (committed GPUs); repeatable",
        ),
    ] = None,
    store: Annotated[
        Path | None,
        Parameter(help="Append new proposals to this file, and list the existing ones"),
    ] = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Replay a history against trigger rules; the last day of the history is treated as today.

    A rule that fires opens a proposal; nothing is bought. Run it again every day: a proposal is
    stored once. Exits with status 1 if a proposal was opened on the last day.
    """
    catalogue = load_facts(facts)
    spec = load_fleet(fleet, catalogue, unknown_accelerators=True)
    if parsed_day(start) is None:
        raise InputError(
            "wrong-value", f"`--start {start}` is not a date", "write it as 2026-06-01"
        )
    found = read_triggers(rules)
    spans, end_ms, _ = read_spans(jobs)
    weeks = total_of(LEAD_STAGES.values()).quantile(0.9)
    if grow is not None:
        stated = read_grow(grow, catalogue, spec).lead_times
        weeks = next((one.weeks_p90 for one in stated if one.thing == "nodes"), weeks)
    question = TriggerQuestion(
        gpus=float(spec.gpus),
        lead_days=weeks * DAYS_PER_WEEK,
        start=start,
        drivers=read_drivers(tuple(drivers or ()), catalogue, spec),
    )
    answer = evaluate(found, spans, end_ms, question)
    if store is not None:
        new = add_proposals(store, answer.proposals)
        print_note(f"{store}: {count(len(new), 'new proposal')}")
    if as_json:
        print_json(answer)
    else:
        _show(answer, store)
    if any(one.day == answer.now for one in answer.proposals):
        raise Exit(1)


def _show(answer: TriggerAnswer, store: Path | None) -> None:
    today = answer.today
    shown = (
        ("utilisation {:.0%}", today.utilisation),
        ("P90 wait {:.1f} h", today.queue),
        ("committed pipeline: {:.0%} of the free GPUs", today.pipeline),
        ("forecast demand within the lead time: {:.0%} of the GPUs", today.forecast),
    )
    known = ", ".join(form.format(one) for form, one in shown if one is not None)
    show(f"{count(answer.days, 'day')} up to {answer.now}: {known}", "")
    proposals = answer.proposals if store is None else read_proposals(store)
    rows = [[one.day, one.rule, one.sentence] for one in proposals]
    if rows:
        show(table("Proposals", ["day", "trigger", "why"], rows), "")
    else:
        show("no trigger fired", "")
    if answer.saturated:
        show(f"demand exceeded the fleet for a week from {answer.saturated}{_warned(answer)}")
    for one in answer.warnings:
        show(f"warning: trigger `{one.rule}`: {one.message}")


def _warned(answer: TriggerAnswer) -> str:
    """Say how long before that the first proposal was opened."""
    if answer.warned_days is None:
        return "; no trigger had fired"
    if answer.warned_days < 0:
        return f"; the first proposal was opened {-answer.warned_days} days later"
    return f", {answer.warned_days} days after the first proposal"


def review_command(
    plan: Annotated[
        Path, Parameter(help="Plan to review: what `tenfold capacity plan --json` printed")
    ],
    *,
    history: Annotated[
        Path,
        Parameter(help="CSV with the columns id, t and value: GPUs in demand since the plan began"),
    ],
    own_gpus: Annotated[
        float | None, Parameter(help="Number of GPUs that are owned or reserved today")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare a plan with what happened: forecast error, coverage, capacity, and orders due."""
    try:
        planned = msgspec.json.decode(plan.read_bytes(), type=CapacityAnswer)
    except (msgspec.DecodeError, RecursionError, OSError):
        raise InputError(
            "syntax",
            f"`{plan}` is not a plan written by `capacity plan --json`",
            "write it with `tenfold capacity plan --json`",
            file=str(plan),
        ) from None
    notes: list[str] = []
    series = [
        TimedSeries(step_s=step_s, values=tuple(values))
        for step_s, values in read_timed_series(history, notes).values()
    ]
    for note in notes:
        print_note(note)
    found = review(planned, series, own_gpus)
    if as_json:
        print_json(found)
        return
    _show_review(found)


def _show_review(found: Review) -> None:
    show(
        f"{found.fleet}: demand off by {share(found.wape)} (bias {found.bias:+.0%}); "
        f"{share(found.covered)} of {count(len(found.months), 'month')} between P10 and P90 "
        "(80% expected)",
        "",
    )
    rows = [
        [
            one.day,
            f"{one.planned:,.0f}",
            f"{one.low:,.0f} to {one.high:,.0f}",
            f"{one.came:,.0f}",
            f"{one.error:+.0%}",
            "yes" if one.is_inside else "no",
        ]
        for one in found.months
    ]
    columns = ["from", ">planned", ">P10 to P90", ">actual", ">error", "inside"]
    show(table("GPUs in demand", columns, rows), "")
    if found.own_actual is not None:
        gap = found.own_actual - found.own_planned
        show(f"own GPUs: {found.own_actual:,.0f}, {gap:+,.0f} compared with the plan")
    for one in found.due:
        show(f"order by {one.order_by}: {one.what}")
