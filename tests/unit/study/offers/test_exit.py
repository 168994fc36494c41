"""Leaving a provider: what moves, what stays, and a score whose parts can be checked by hand."""

import pytest

from price_builders import ROOT
from tenfold.model.errors import InputError
from tenfold.study.offers.exit import ExitQuestion, exit_report

JANUARY = ROOT / "examples" / "offers" / "january.csv"


def question(**more: object) -> ExitQuestion:
    return ExitQuestion(
        **{
            "leaving": "northern",
            "catalogue": (JANUARY,),
            "accelerator": ("H100",),
            "gpus": 8,
            "data_gb": 108_000.0,
            **more,
        }  # pyright: ignore[reportArgumentType]
    )


def test_data_takes_days_at_the_rate_of_the_link_and_dollars_at_the_price_of_egress():
    answer = exit_report(question(), {})
    data, both, jobs = answer.lines
    assert data.days == 1.0
    assert data.usd == pytest.approx(108_000 * 0.05)
    assert both.usd == pytest.approx(8 * 24 * 2.25)
    assert (jobs.leaves, jobs.usd) == ("moves", 0)
    assert answer.days == 1.0


def test_a_commitment_is_paid_and_does_not_leave():
    answer = exit_report(question(commitment_months=6.0, commitment_usd_per_month=1_000.0), {})
    line = next(one for one in answer.lines if one.item.startswith("commitment"))
    assert (line.leaves, line.usd) == ("stays", 6_000.0)
    assert answer.usd == sum(one.usd for one in answer.lines)


def test_rework_is_stated_and_never_invented():
    free = exit_report(question(), {})
    assert any("not included: rework" in note for note in free.notes)
    bound = exit_report(question(), {"queues": 45.0})
    assert bound.days == free.days + 45
    assert bound.score < free.score
    assert not any("not included: rework" in note for note in bound.notes)


def test_the_score_is_the_mean_of_its_parts():
    answer = exit_report(question(), {})
    assert answer.score == pytest.approx(
        100 * sum(one.score for one in answer.parts) / len(answer.parts)
    )
    by_part = {one.part: one.score for one in answer.parts}
    assert by_part["accelerator"] == pytest.approx(2 / 3)
    assert by_part["data"] == pytest.approx(29 / 30)
    assert answer.alternatives == (("atoll", 1.9), ("dune", 2.6))


def test_a_fleet_file_says_what_is_there():
    fleet = ROOT / "examples" / "startup-cloud" / "fleet.yaml"
    answer = exit_report(ExitQuestion(leaving="aws", fleet=fleet), {})
    assert answer.lines[0].item != "data, 0 GB"
    assert answer.usd_per_month_now > 0


def test_without_an_accelerator_nothing_can_be_compared():
    with pytest.raises(InputError) as found:
        exit_report(ExitQuestion(leaving="aws"), {})
    assert found.value.code == "missing-workload"
