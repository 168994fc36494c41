"""The two times of a forecast, and the time of day beside them, never contradict each other."""

import pytest

from tenfold.cli.job.render import show_waiting
from tenfold.model.ids import JobId, TeamId
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, MINUTE, SECOND, Millis
from tenfold.study.eta.eta import Eta
from tenfold.study.why.why import Why

NOON = 1_795_089_600_000 + 25 * SECOND
"""2026-11-19 12:00:25 UTC."""


@pytest.mark.parametrize(
    ("half", "most", "said"),
    [
        (280 * SECOND, 285 * SECOND, "likely within 5 min (P90), about 2026-11-19 12:06 UTC"),
        (
            2 * MINUTE,
            8 * MINUTE,
            "in about 2 min (P50), within 8 min (P90); P50 is 2026-11-19 12:03 UTC",
        ),
        (HOUR, None, "in about 1h 00m (P50), P90 unknown; P50 is 2026-11-19 13:05 UTC"),
    ],
)
def test_a_forecast_names_one_time_of_day_that_fits(
    half: int, most: int | None, said: str, capsys: pytest.CaptureFixture[str]
):
    eta = Eta(
        p50_ms=Millis(NOON + half),
        p90_ms=None if most is None else Millis(NOON + most),
        basis="five simulations",
    )
    why = Why(
        job_id=JobId("a-1"),
        team=TeamId("red"),
        at_ms=Millis(NOON),
        state="waits",
        reason=Reason("dependency"),
        eta=eta,
    )
    show_waiting(why, is_live=True)
    line = next(one for one in capsys.readouterr().out.splitlines() if "expected" in one)
    assert line == f"expected start: {said}"
