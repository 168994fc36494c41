"""What the text of an analysis says, beyond its tables."""

import pytest
from msgspec.structs import replace

from growth_builders import fleet, given
from tenfold.cli.grow.render import show_grow
from tenfold.model.growth.growth import GrowSpec, GrowthLimits, LeadTime, Pace
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.answer import GrowAnswer
from tenfold.study.grow.question import GrowQuestion

QUESTION = GrowQuestion(axis="nodes", to=(4.0,))


def ordered() -> GrowAnswer:
    """A fleet whose power ends late enough for an order placed today."""
    times = (LeadTime(thing="site-power", weeks_p50=1, weeks_p90=2),)
    pace = Pace(today="2026-11-15", doubles_in_months=12)
    grow = GrowSpec(limits=GrowthLimits(), lead_times=times, pace=pace)
    return analyse(given(fleet(), grow), QUESTION)


def test_lead_time_is_ok_where_every_order_is_in_time(capsys: pytest.CaptureFixture[str]):
    show_grow(ordered(), QUESTION)
    assert "Lead time" in capsys.readouterr().out


def test_lead_time_is_not_ok_where_an_order_is_late(capsys: pytest.CaptureFixture[str]):
    """It is judged for computed layers only; waits are fixed by nodes that may come too late."""
    answer = ordered()
    [first, *rest] = answer.rows
    show_grow(replace(answer, rows=(replace(first, late=True), *rest)), QUESTION)
    said = capsys.readouterr().out
    assert "OK at every factor checked" not in said or "Lead time" not in said
