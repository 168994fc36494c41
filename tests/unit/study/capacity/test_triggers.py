"""Triggers replayed over histories: what was known on each day, and how early they warn."""

import pytest

from tenfold.decide.capacity.triggers import TriggerRule
from tenfold.model.capacity.drivers import Driver, Levels
from tenfold.model.capacity.history import JobSpan
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Shape
from tenfold.model.units import DAY, HOUR, Millis
from tenfold.study.capacity.triggers import TriggerQuestion, evaluate, figures

START = "2026-01-01"
SOON = TriggerRule(name="soon", kind="forecast", above=0.95, cool_down_days=400, evidence="test")
BUSY = TriggerRule(name="busy", kind="utilisation", above=0.9, cool_down_days=400, evidence="test")


def history(days: int, gpus: int, growth: float, capacity: int) -> tuple[list[JobSpan], Millis]:
    """Return a job for each day and GPU in demand; beyond the capacity jobs wait for a day."""
    spans: list[JobSpan] = []
    for day in range(days):
        for number in range(round(gpus * (1 + growth) ** day)):
            shape = Shape(key="1", gpus=1)
            at = Millis(day * DAY)
            job = Job(id=JobId(f"{day}-{number}"), shape=shape, submitted_ms=at)
            start = at if number < capacity else Millis(at + DAY)
            spans.append(
                JobSpan(job=job, wanted_ms=at, runs=((start, Millis(start + DAY)),), left=0)
            )
    return spans, Millis(days * DAY)


def question(gpus: float, lead_days: float = 30.0, *drivers: Driver) -> TriggerQuestion:
    return TriggerQuestion(gpus=gpus, lead_days=lead_days, start=START, drivers=drivers)


def test_a_forecast_warns_before_demand_exceeds_the_fleet_and_utilisation_later():
    spans, end = history(120, 20, 0.01, 50)
    early = evaluate([SOON], spans, end, question(50))
    late = evaluate([BUSY], spans, end, question(50))
    assert early.saturated == late.saturated != ""
    assert early.warned_days is not None
    assert late.warned_days is not None
    assert early.warned_days >= 0.75 * 30, "most of the lead time: a forecast is damped"
    assert early.warned_days > late.warned_days


def test_a_steady_fleet_raises_no_false_alarm():
    spans, end = history(120, 30, 0.0, 50)
    found = evaluate([SOON, BUSY], spans, end, question(50))
    assert (found.firings, found.saturated, found.warned_days) == ((), "", None)


def test_each_day_knows_only_its_past():
    spans, end = history(60, 20, 0.01, 50)
    whole, _ = figures(spans, end, question(50), with_forecast=True)
    first = [span for span in spans if span.wanted_ms < 40 * DAY]
    part, _ = figures(first, Millis(40 * DAY), question(50), with_forecast=True)
    assert [day.forecast for day in whole[:40]] == [day.forecast for day in part]
    assert [day.utilisation for day in whole[:40]] == [day.utilisation for day in part]


def test_waits_are_seen_while_they_go_on():
    job = Job(id=JobId("a"), shape=Shape(key="1", gpus=1), submitted_ms=Millis(0))
    runs = ((Millis(3 * DAY), Millis(4 * DAY)),)
    span = JobSpan(job=job, wanted_ms=Millis(0), runs=runs, left=0)
    days, _ = figures([span], Millis(5 * DAY), question(1), with_forecast=False)
    assert [day.queue for day in days[:4]] == pytest.approx([24, 48, 72, 72])
    assert days[0].queue == DAY / HOUR


def test_what_is_committed_within_the_lead_time_counts_against_free_gpus():
    soon = Driver(
        name="a",
        group="roadmap",
        kind="gpus",
        amount=Levels(base=40),
        begins="2026-01-25",
        probability=0.5,
    )
    spans, end = history(10, 20, 0.0, 50)
    days, _ = figures(spans, end, question(50, 20.0, soon), with_forecast=False)
    assert days[0].pipeline == 0
    assert days[9].pipeline == pytest.approx(0.5 * 40 / 30)


def test_a_proposal_names_its_evidence_and_the_days():
    spans, end = history(120, 20, 0.01, 50)
    (proposal,) = evaluate([BUSY], spans, end, question(50)).proposals
    assert proposal.evidence == "test"
    assert proposal.id == f"proposal-busy-{proposal.day}"
    assert "above 0.9 since" in proposal.sentence
