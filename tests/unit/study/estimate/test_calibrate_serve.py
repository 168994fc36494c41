"""Observed runs move serving estimates: by their own engine, from rates or from waits."""

import json
from functools import cache
from pathlib import Path

import pytest

from tenfold.cli.main import main
from tenfold.facts.loader import load_catalogue
from tenfold.model.errors import InputError
from tenfold.model.estimate import ServeEstimate, ServeRow
from tenfold.study.estimate.serve import estimate_serve

CATALOGUE = load_catalogue()
BASE = {
    "id": "a",
    "model": "Llama 3.1 8B",
    "accelerator": "H100",
    "engine": "our-engine 2",
    "input_tokens": 1000,
    "output_tokens": 200,
}
RATE, FIRST, NEXT = "output_tokens_per_s", "ttft_s", "tpot_s"


def row(**fields: object) -> ServeRow:
    return ServeRow(**{**BASE, **fields})  # pyright: ignore


@cache
def answer(asked: ServeRow, *observed: ServeRow) -> ServeEstimate:
    [found] = estimate_serve([asked], CATALOGUE, observed)
    assert isinstance(found, ServeEstimate)
    return found


def figure(found: ServeEstimate, name: str) -> float:
    return float(getattr(found, name))


def width(found: ServeEstimate) -> float:
    low, high = found.interval_tokens_per_s
    return high / low


def slower(times: float, **fields: object) -> ServeRow:
    """A run `times` as slow as its estimate."""
    rate = figure(answer(row(**fields)), RATE)
    return row(**fields, output_tokens_per_s=rate / times)


def test_observed_runs_move_the_rate_and_narrow_the_interval():
    before = answer(row())
    once = answer(row(), slower(1.4))
    thrice = answer(row(), slower(1.4), slower(1.4, input_tokens=500), slower(1.4, batch=64))
    rates = [figure(one, RATE) for one in (before, once, thrice)]
    assert rates[0] / 1.4 < rates[2] < rates[1] < rates[0]
    assert rates[2] == pytest.approx(rates[0] / 1.4, rel=0.05)
    assert width(thrice) <= width(once) < width(before)
    assert any("3 observed runs" in note for note in thrice.notes)


def test_a_run_that_is_as_estimated_changes_no_rate():
    assert figure(answer(row(), slower(1.0)), RATE) == pytest.approx(
        figure(answer(row()), RATE), rel=1e-6
    )


@pytest.mark.parametrize("name", [FIRST, NEXT])
def test_waits_of_a_loaded_replica_teach_its_speed(name: str):
    loaded = {"mode": "online", "qps": 5.0}
    before = answer(row(**loaded))
    seen = row(**loaded, **{name: 1.3 * figure(before, name)})
    after = answer(row(**loaded), seen)
    assert figure(before, name) < figure(after, name) < 1.3 * figure(before, name)
    assert figure(after, RATE) == pytest.approx(figure(before, RATE))
    assert figure(answer(row(), seen), RATE) < figure(answer(row()), RATE)


def test_a_run_teaches_its_own_engine_and_generation_only():
    seen = slower(1.4)
    for other in ({"engine": "vllm 0.9"}, {"accelerator": "A100-80G-SXM"}):
        assert answer(row(**other), seen) == answer(row(**other))
    assert figure(answer(row(accelerator="H200"), seen), RATE) < figure(
        answer(row(accelerator="H200")), RATE
    )


def test_a_load_that_is_met_says_nothing_of_speed():
    met = row(mode="online", qps=1.0, output_tokens_per_s=199.0)
    with pytest.raises(InputError) as caught:
        answer(row(), met)
    assert caught.value.code == "run-teaches-nothing"
    assert caught.value.line == 1
    beside = row(mode="online", qps=1.0, output_tokens_per_s=199.0, tpot_s=0.02)
    assert figure(answer(row(), beside), RATE) != figure(answer(row()), RATE)


@pytest.mark.parametrize("rate", [1e-3, 1e9])
def test_a_run_beyond_any_speed_is_refused(rate: float):
    with pytest.raises(InputError, match="cannot be used"):
        answer(row(), row(output_tokens_per_s=rate))


def test_the_command_reads_observed_runs_and_wants_a_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    asked, seen = tmp_path / "rows.jsonl", tmp_path / "seen.jsonl"
    asked.write_text(json.dumps(BASE))
    words = ["estimate", "serve", "--in", str(asked)]
    assert main(words) == 0
    before = json.loads(capsys.readouterr().out)
    seen.write_text(json.dumps({**BASE, RATE: before[RATE] / 1.4}))
    assert main([*words, "--calibrate", str(seen)]) == 0
    assert json.loads(capsys.readouterr().out)[RATE] < before[RATE]
    assert main([*words, "--calibrate", str(asked)]) == 2
    assert "observed run 1 has none of" in capsys.readouterr().err
