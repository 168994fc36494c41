"""A threshold of a benchmark that nobody checked is missed, not passed over."""

from pathlib import Path

import pytest
import tomli

from benchmarks import __main__ as bench
from benchmarks.verdict import Thresholds, Verdict

LISTED = tomli.loads((Path(bench.__file__).parent / "thresholds.toml").read_text())


def test_every_benchmark_has_thresholds_and_every_threshold_a_benchmark():
    assert sorted(LISTED) == sorted(bench.BENCHMARKS)
    assert all(LISTED.values())


def test_a_threshold_that_no_measurement_is_held_against_is_missed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def forgetful(thresholds: dict[str, float]) -> list[Verdict]:
        return [Verdict("help", 1.0, thresholds["help_over_python"])]

    monkeypatch.setitem(bench.BENCHMARKS, "startup", forgetful)
    assert bench.main(["startup"]) == 0
    both = {"help_over_python": 2.0, "memory_mib": 1.0}
    held, missed = bench.verdicts_of("startup", both)
    assert (held.held, missed.held) == (True, False)
    assert "startup: `memory_mib`, measurements held against it: 0 (at least 1)" in missed.line()
    assert "held   help" in capsys.readouterr().out


def test_a_benchmark_whose_data_are_not_here_misses_all_its_thresholds(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(bench.BENCHMARKS, "eta", lambda _: [])
    assert bench.main(["eta"]) == 1


def test_thresholds_with_a_default_count_once_they_are_there():
    thresholds = Thresholds({"points": 3.0})
    assert thresholds.get("factor", 2.0) == 2.0
    assert [one.held for one in thresholds.unchecked("fit")] == [False]
    assert thresholds.get("points") == 3.0
    assert thresholds.unchecked("fit") == []
