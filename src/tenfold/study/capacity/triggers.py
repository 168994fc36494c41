"""Evaluate triggers on a history, day by day, with only the past known at each day."""

from collections.abc import Sequence
from datetime import date, timedelta
from math import ceil

import numpy as np
from msgspec import Struct

from tenfold.decide.capacity.forecast import HORIZON_OVER_HISTORY, VALUES_LEAST, forecast
from tenfold.decide.capacity.triggers import (
    FIGURES,
    DayFigures,
    Firing,
    RuleWarning,
    TriggerRule,
    firings,
    lint_rules,
)
from tenfold.files.capacity.proposals import Proposal
from tenfold.model.capacity.drivers import Driver
from tenfold.model.capacity.history import JobSpan
from tenfold.model.units import DAY, HOUR, Millis
from tenfold.physics.arrays import Floats
from tenfold.study.capacity.history import assumed_ms, gpu_hours, gpus_of, wanted_ms

WAIT_DAYS = 7
"""Waits of this many days are looked at together."""
FORECAST_EVERY_DAYS = 7
HOURS = 24.0
Z80 = 0.8416212335729143
Z90 = 1.2815515655446004


class TriggerQuestion(Struct, frozen=True, kw_only=True):
    """What triggers are evaluated for."""

    gpus: float
    """GPUs available."""
    lead_days: float
    """P90 of the lead time of nodes."""
    start: str
    """The first date of the history."""
    drivers: tuple[Driver, ...] = ()
    """Commitments of the pipeline, of kind `gpus`."""


class TriggerAnswer(Struct, frozen=True, kw_only=True):
    """What fired, and what is doubtful about the rules."""

    days: int
    now: str
    firings: tuple[Firing, ...]
    proposals: tuple[Proposal, ...]
    today: DayFigures
    warnings: tuple[RuleWarning, ...]
    saturated: str
    """The first day on which demand exceeded the fleet for a week; empty if it never did."""
    warned_days: int | None
    """Days from the first firing to that day; None if demand never exceeded the fleet."""


def evaluate(
    rules: Sequence[TriggerRule],
    spans: Sequence[JobSpan],
    end_ms: Millis,
    question: TriggerQuestion,
) -> TriggerAnswer:
    """Return what rules say about a history; the last day of the history is taken as today."""
    kinds = [rule.kind for rule in rules]
    days, demand = figures(spans, end_ms, question, with_forecast="forecast" in kinds)
    fired = firings(rules, days)
    full = _saturated(demand, question)
    warned = None if full is None or not fired else full - fired[0].day
    by_name = {rule.name: rule for rule in rules}
    return TriggerAnswer(
        days=len(days),
        now=_day(question.start, len(days) - 1),
        firings=tuple(fired),
        proposals=tuple(_proposal(one, by_name[one.rule], question) for one in fired),
        today=days[-1],
        warnings=tuple(lint_rules(rules)),
        saturated="" if full is None else _day(question.start, full),
        warned_days=warned,
    )


def figures(
    spans: Sequence[JobSpan],
    end_ms: Millis,
    question: TriggerQuestion,
    *,
    with_forecast: bool,
) -> tuple[list[DayFigures], Floats]:
    """Return what was known at the end of each day, and GPUs in demand by day."""
    begin = min(span.wanted_ms for span in spans)
    count = max(1, int((end_ms - begin) // DAY))
    edges = begin + DAY * np.arange(count + 1, dtype=np.float64)
    used = gpu_hours([(a, b, gpus_of(span.job)) for span in spans for a, b in span.runs], edges)
    assumed = assumed_ms(spans)
    wants = [
        (span.wanted_ms, span.wanted_ms + wanted_ms(span, assumed), gpus_of(span.job))
        for span in spans
    ]
    demand = gpu_hours(wants, edges) / HOURS
    waits = _waits(spans, end_ms)
    ahead = _ahead(demand, question) if with_forecast else [None] * count
    return [
        DayFigures(
            day=at,
            utilisation=float(used[at]) / HOURS / question.gpus,
            queue=_wait_p90(waits, edges[at + 1]),
            pipeline=_pipeline(question, at, float(used[at]) / HOURS),
            forecast=ahead[at],
        )
        for at in range(count)
    ], demand


def _waits(spans: Sequence[JobSpan], end_ms: Millis) -> Floats:
    """Return when each job stopped waiting, and how long it had waited."""
    pairs = [
        (float(span.runs[0][0] if span.runs else end_ms), float(span.wanted_ms)) for span in spans
    ]
    return np.array(pairs, dtype=np.float64)


def _wait_p90(waits: Floats, now: float) -> float | None:
    """Return the P90 of waits that ended in the last days, and of those that go on."""
    until = np.minimum(waits[:, 0], now)
    seen = (waits[:, 1] < now) & (until > now - WAIT_DAYS * DAY)
    if not seen.any():
        return None
    return float(np.quantile(until[seen] - waits[seen, 1], 0.9)) / HOUR


def _pipeline(question: TriggerQuestion, at: int, used: float) -> float | None:
    """Return GPUs that are committed within the lead time over those that are free."""
    if not question.drivers:
        return None
    today = date.fromisoformat(question.start) + timedelta(days=at)
    until = today + timedelta(days=ceil(question.lead_days))
    committed = sum(
        driver.amount.mean * driver.probability
        for driver in question.drivers
        if driver.kind == "gpus" and today <= date.fromisoformat(driver.begins) <= until
    )
    return committed / max(1.0, question.gpus - used)


def _ahead(demand: Floats, question: TriggerQuestion) -> list[float | None]:
    """Return the highest P80 of demand within the lead time over the GPUs available, by day."""
    horizon = max(1, ceil(question.lead_days))
    found: list[float | None] = []
    last: float | None = None
    for at in range(len(demand)):
        known = demand[: at + 1]
        enough = len(known) >= max(VALUES_LEAST, 2 * FORECAST_EVERY_DAYS)
        if enough and at % FORECAST_EVERY_DAYS == 0:
            reach = min(horizon, int(HORIZON_OVER_HISTORY * len(known)))
            made = forecast({"demand": known}, reach)[0]["demand"]
            mean, high = np.array(made.mean), np.array(made.hi80)
            # The 80% interval ends at P90; P80 lies between that and the mean.
            last = float(np.max(mean + (high - mean) * Z80 / Z90)) / question.gpus
        found.append(last)
    return found


def _saturated(demand: Floats, question: TriggerQuestion) -> int | None:
    over = demand > question.gpus
    run = 0
    for at, is_over in enumerate(over):
        run = run + 1 if is_over else 0
        if run == WAIT_DAYS:
            return at - WAIT_DAYS + 1
    return None


def _proposal(one: Firing, rule: TriggerRule, question: TriggerQuestion) -> Proposal:
    day = _day(question.start, one.day)
    sentence = (
        f"{FIGURES[one.kind]}: {one.value:.3g}, above {one.above:g} since "
        f"{_day(question.start, one.since)}; the lead time is "
        f"{question.lead_days / 7:.0f} weeks: nodes ordered on this day arrive by "
        f"{_day(question.start, one.day + round(question.lead_days))}, see `tenfold capacity plan`"
    )
    return Proposal(
        id=f"proposal-{one.rule}-{day}",
        rule=one.rule,
        kind=one.kind,
        day=day,
        sentence=sentence,
        value=one.value,
        above=one.above,
        evidence=rule.evidence,
    )


def _day(start: str, at: int) -> str:
    return (date.fromisoformat(start) + timedelta(days=at)).isoformat()
