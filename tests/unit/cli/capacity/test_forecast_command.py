"""`tenfold capacity forecast`: both layouts of its file, JSON, and errors with a line."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

Printed = pytest.CaptureFixture[str]


def written(folder: Path, text: str) -> str:
    path = folder / "series.csv"
    path.write_text(text)
    return str(path)


def test_a_table_of_times_and_a_row_per_series_give_the_same(tmp_path: Path, capsys: Printed):
    values = [10 + index % 4 + index * 0.1 for index in range(60)]
    long = "id,t,value\n" + "".join(f"h100,{t * 3600},{v}\n" for t, v in enumerate(values))
    wide = '"V1",' + ",".join(f'"V{i + 2}"' for i in range(62)) + "\n"
    wide += "h100," + ",".join(map(str, values)) + ",,\n"
    answers: list[dict[str, dict[str, list[float]]]] = []
    for text in (long, wide):
        words = ["capacity", "forecast", "--in", written(tmp_path, text), "--horizon", "8"]
        assert main([*words, "--json"]) == 0
        answers.append(json.loads(capsys.readouterr().out))
    assert answers[0] == answers[1]
    one = answers[0]["h100"]
    assert {"mean", "lo80", "hi80", "lo95", "hi95"} <= set(one)
    assert len(one["mean"]) == 8
    assert main(["capacity", "forecast", "--in", written(tmp_path, long), "--horizon", "8"]) == 0
    text = capsys.readouterr().out
    assert "h100: 60 values" in text
    assert "95% interval: covers" in text


@pytest.mark.parametrize(
    ("text", "status", "message"),
    [
        ("", 2, "the file is empty"),
        ("id,t\nx,1\n", 2, "no column `value`"),
        ("id,t,value\nx,1,many\n", 2, "`value` must be a number, got `many`"),
        ("id,t,value\nx,soon,1\n", 2, "`t` must be a number or an ISO 8601 time"),
        ("id,t,value\nx,1,1\nx,1,2\n", 2, "does not increase"),
        ("id,t,value\nx,1,1\nx,2,2\nx,3,2\nx,9,2\n", 2, "not evenly spaced"),
        ("id,t,value\nx,1,1\nx,2,2\nx,3,2\n", 1, "a history of 3 values"),
        ("x,1,2,3\nx,1,2,3\n", 2, "given twice"),
    ],
)
def test_a_file_that_cannot_be_forecast_is_refused(
    text: str, status: int, message: str, tmp_path: Path, capsys: Printed
):
    words = ["capacity", "forecast", "--in", written(tmp_path, text), "--horizon", "4"]
    assert main(words) == status
    assert message in capsys.readouterr().err
