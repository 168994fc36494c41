"""When a job that can wait is let in, against hours chosen by hand."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from tenfold.decide.shift.release import release_at
from tenfold.files.traces.grid_intensity import read_intensity
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.facts.intensity import MICROS, curve_of
from tenfold.model.job.job import Job
from tenfold.model.units import DAY, HOUR, MINUTE, Millis
from tenfold.testing.builders import job

NOON = curve_of([300] * 11 + [100] * 3 + [300] * 10)


def waiting(limit_h: float = 2, deadline_h: float = 24) -> Job:
    return replace(
        job(1, 8),
        limit_ms=Millis(round(limit_h * HOUR)),
        deadline_ms=Millis(round(deadline_h * HOUR)),
    )


def test_a_job_is_held_for_the_first_of_the_best_hours():
    assert release_at(waiting(), Millis(0), NOON) == 11 * HOUR


def test_a_job_longer_than_the_good_hours_covers_them_whole_and_as_early_as_it_may():
    assert release_at(waiting(limit_h=5), Millis(0), NOON) == 9 * HOUR


def test_a_job_without_a_deadline_is_not_held():
    assert release_at(replace(waiting(), deadline_ms=None), Millis(7), NOON) == 7


def test_a_job_without_a_limit_is_held_by_an_estimate_or_not_at_all():
    unknown = replace(waiting(), limit_ms=None)
    assert release_at(unknown, Millis(0), NOON) == 0
    assert release_at(unknown, Millis(0), NOON, Millis(HOUR)) == 11 * HOUR


def test_the_slack_before_the_deadline_is_never_used_up():
    assert release_at(waiting(deadline_h=13), Millis(0), NOON) == 10 * HOUR
    assert release_at(waiting(deadline_h=13), Millis(0), NOON, slack=3) == 0
    assert release_at(waiting(deadline_h=2), Millis(0), NOON) == 0


def test_the_best_moment_may_lie_within_an_hour():
    late = release_at(waiting(limit_h=0.5, deadline_h=11.5), Millis(0), NOON)
    assert late == 10 * HOUR + 45 * MINUTE


def test_a_flat_curve_holds_nothing_and_a_second_day_is_not_better_than_the_first():
    assert release_at(waiting(), Millis(5), curve_of([200] * 24)) == 5
    assert release_at(waiting(deadline_h=100), Millis(12 * HOUR), NOON) == 12 * HOUR
    assert release_at(waiting(deadline_h=100), Millis(14 * HOUR), NOON) == DAY + 11 * HOUR


def test_a_curve_repeats_before_and_after_its_hours():
    day = NOON.area(0, DAY)
    assert day == (21 * 300 + 3 * 100) * MICROS * HOUR
    assert NOON.area(3 * DAY, 4 * DAY) == NOON.area(-DAY, 0) == day
    assert NOON.area(-90 * MINUTE, 0) == 300 * MICROS * 90 * MINUTE
    assert NOON.area(10 * HOUR + 30 * MINUTE, 11 * HOUR + 30 * MINUTE) == 200 * MICROS * HOUR


def read(tmp_path: Path, text: str):
    path = tmp_path / "grid.csv"
    path.write_text(text)
    return read_intensity(path)


def test_a_curve_may_have_comments_and_prices_below_nothing(tmp_path: Path):
    both = read(tmp_path, "# may\nhour,co2_g_per_kwh,usd_per_kwh\n0,310.5,0.07\n\n1,90,-0.01\n")
    assert both.co2_g_per_kwh == curve_of([310.5, 90])
    assert both.usd_per_kwh == curve_of([0.07, -0.01])
    assert read(tmp_path, "hour,co2_g_per_kwh\n0,1\n").usd_per_kwh is None


def test_every_bad_line_of_a_curve_is_reported(tmp_path: Path):
    rows = "0,310,0.07\n2,300,0.07\n2,x,0.07\n3,300,70\n4,1,1,1\n5,-1,\n"
    with pytest.raises(InvalidFile) as caught:
        read(tmp_path, f"hour,co2_g_per_kwh,usd_per_kwh\n{rows}")
    found = [(each.line, each.field, each.code) for each in caught.value.findings]
    assert found == [
        (3, "hour", "wrong-value"),
        (4, "co2_g_per_kwh", "wrong-value"),
        (5, "usd_per_kwh", "wrong-value"),
        (6, "", "too-many-cells"),
        (7, "hour", "wrong-value"),
        (7, "co2_g_per_kwh", "wrong-value"),
        (7, "usd_per_kwh", "wrong-value"),
    ]
    assert "divide values per megawatt-hour by 1,000" in caught.value.findings[2].hint


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hour,usd_per_kwh\n0,1\n", "has no column `co2_g_per_kwh`"),
        ("hour,co2_g_per_kwh,price\n0,1,1\n", "has an unknown column `price`"),
        ("hour,co2_g_per_kwh,hour\n0,1,0\n", "has a duplicate column"),
        ("hour,co2_g_per_kwh\n", "has no rows"),
        ("", "has no rows"),
    ],
)
def test_a_header_that_cannot_be_is_refused(tmp_path: Path, text: str, said: str):
    with pytest.raises(InputError, match=said) as caught:
        read(tmp_path, text)
    assert caught.value.code == "csv-header"
