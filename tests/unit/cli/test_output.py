"""Durations and tables as people read them."""

import pytest

from tenfold.cli.output import show, table
from tenfold.cli.sim.render import hours


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (0.01, "<0.1 s"),
        (1.25, "1.2 s"),
        (25.6, "26 s"),
        (80, "80 s"),
        (300, "5.0 min"),
        (1_100, "18 min"),
        (3_599, "1.0 h"),
        (3_600, "1.0 h"),
        (7_068, "2.0 h"),
        (36 * 3_600, "36.0 h"),
        (3.1 * 86_400, "3.1 d"),
    ],
)
def test_a_duration_has_no_more_digits_than_people_would_say(seconds: float, text: str):
    assert hours(seconds) == text


def test_a_table_without_headings_has_no_blank_line(capsys: pytest.CaptureFixture[str]):
    show("before", "", table("", ["", ">"], [["mean wait", "0 s"]]))
    assert capsys.readouterr().out == "before\n\nmean wait  0 s\n"
