"""`tenfold capacity forecast`: both layouts of its file, JSON, and errors with a line."""

import json
import time
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
        ("id,t,value\nx,1,1\nx,1,2\n", 2, "has two rows at the same time"),
        ("id,t,value\nx,1,1\nx,2,\nx,3,2\n", 2, "lacks 1 of 3 values"),
        ("id,t,value\nx,1,\nx,2,\n", 2, "series `x` has no values"),
        ("id,time,value\nx,1,1\n", 2, "no column `t`"),
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


def hourly(skipped: set[int], names: str = "a", blank: set[int] | None = None) -> str:
    rows = [
        f"{name},{hour * 3600},{'' if hour in (blank or set()) else 100 + hour % 24}\n"
        for name in names
        for hour in range(240)
        if hour not in skipped
    ]
    return "id,t,value\n" + "".join(rows)


def forecast_of(text: str, folder: Path, capsys: Printed) -> tuple[int, str, str]:
    words = ["capacity", "forecast", "--in", written(folder, text), "--horizon", "24", "--json"]
    status = main(words)
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_few_missing_values_are_interpolated_and_counted(tmp_path: Path, capsys: Printed):
    status, out, err = forecast_of(hourly({30, 31}, blank={100}), tmp_path, capsys)
    assert status == 0
    assert "series `a`: interpolated 3 missing of 240" in err
    whole = json.loads(forecast_of(hourly(set()), tmp_path, capsys)[1])["a"]["mean"]
    assert json.loads(out)["a"]["mean"] == pytest.approx(whole, rel=0.05)
    status, _, err = forecast_of(hourly(set(range(30, 50))), tmp_path, capsys)
    assert status == 2
    assert "not evenly spaced" in err
    status, _, err = forecast_of(hourly(set(range(30, 200, 9))), tmp_path, capsys)
    assert status == 2
    assert "lacks 19 of 240 values" in err


def test_rows_may_be_in_any_order(tmp_path: Path, capsys: Printed):
    header, *rows = hourly(set(), "ab").splitlines()
    shuffled = "\n".join([header, *reversed(rows)]) + "\n"
    first = json.loads(forecast_of("\n".join([header, *rows]), tmp_path, capsys)[1])
    assert json.loads(forecast_of(shuffled, tmp_path, capsys)[1]) == first


def test_times_without_a_zone_do_not_depend_on_the_zone_of_the_machine(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    rows = [f"a,2026-03-{28 + hour // 24}T{hour % 24:02d}:00:00,{hour}\n" for hour in range(96)]
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        status, _, err = forecast_of("id,t,value\n" + "".join(rows), tmp_path, capsys)
    finally:
        monkeypatch.undo()
        time.tzset()
    assert (status, err) == (0, ""), "an hour of 29 March does not exist in Berlin"


def test_a_series_that_is_too_short_does_not_keep_others_from_being_forecast(
    tmp_path: Path, capsys: Printed
):
    text = hourly(set()) + "new,0,1\nnew,3600,2\nnewer,0,1\nnewer,3600,2\n"
    status, out, err = forecast_of(text, tmp_path, capsys)
    assert status == 1
    assert list(json.loads(out)) == ["a"]
    assert "series `new`: a history of 2 values is too short" in err
    assert "1 more series is too short" in err


def test_json_has_the_coverage_of_the_intervals(tmp_path: Path, capsys: Printed):
    one = json.loads(forecast_of(hourly(set()), tmp_path, capsys)[1])["a"]
    for level in ("coverage80", "coverage95"):
        assert len(one[level]) == 4
        assert all(0 <= share <= 1 for share in one[level])
