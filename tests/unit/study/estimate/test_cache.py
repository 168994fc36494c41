"""`tenfold estimate cache`: what a shared tier saves, what it takes, and when it is too slow."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

FLEET = """
[[pool]]
name = "h100"
accelerator = "H100"
nodes = 4
gpus_per_node = 8

[[tier]]
name = "scratch"
class = "hot"

[[tier]]
name = "memory"
class = "cxl-memory"
"""
MODEL = ["--model", "Llama 3.1 70B", "--precision", "fp8", "--tp", "4"]
PROMPTS = ["--input-tokens", "6000", "--shared-tokens", "4000", "--prefixes", "2000"]
STATED = ["--accelerator", "H100", "--tier-gib", "500", "--tier-gb-per-s", "100"]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "fleet.toml").write_text(FLEET)
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        status = main(["estimate", "cache", *MODEL, *words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def ask(run):
    def call(*words: str) -> dict:
        status, out, err = run(*words, "--json")
        assert (status, err) == (0, "")
        return json.loads(out)

    return call


def test_hits_save_the_time_that_they_would_have_taken(ask):
    found = ask(*STATED, *PROMPTS)
    assert 0 < found["hit_ratio"] < found["hit_ratio_max"] == pytest.approx(2 / 3)
    assert found["kv_bytes_per_token"] == 2 * 8 * 128 * 80
    hit_s = found["hit_ratio"] * found["ttft_s"]
    fetch_s = found["hit_ratio"] * 6000 * found["kv_bytes_per_token"] / 100e9
    assert found["saved_s"] == pytest.approx(hit_s - fetch_s)
    assert found["fetch_pays"] is True


def test_a_larger_tier_hits_more_and_none_hits_what_is_new(ask):
    found = ask(*STATED, *PROMPTS)
    ratios = [one["hit_ratio"] for one in found["sizes"]]
    assert ratios == sorted(ratios)
    assert ratios[-1] <= found["hit_ratio_max"]
    assert ask(*STATED, *PROMPTS, "--target-percent", "70")["target_gib"] is None


def test_the_size_for_a_target_reaches_it(ask):
    gib = ask(*STATED, *PROMPTS, "--target-percent", "50")["target_gib"]
    words = ["--accelerator", "H100", "--tier-gib", str(gib), "--tier-gb-per-s", "100"]
    assert ask(*words, *PROMPTS)["hit_ratio"] == pytest.approx(0.5, rel=1e-3)


def test_a_slow_tier_is_left_aside_and_says_what_would_break_even(ask, run):
    slow = ["--accelerator", "H100", "--tier-gib", "500", "--tier-gb-per-s", "1"]
    found = ask(*slow, *PROMPTS)
    assert found["fetch_pays"] is False
    assert found["saved_s"] == 0
    assert found["qps_break_even"] is None
    even = str(1.01 * found["break_even_gb_per_s"])
    assert ask(*slow[:-1], even, *PROMPTS)["fetch_pays"] is True
    assert "recomputing is faster" in run(*slow, *PROMPTS)[1]


def test_a_load_takes_the_rate_of_the_tier_away(ask):
    idle = ask(*STATED, *PROMPTS)
    load = idle["qps_break_even"]
    assert ask(*STATED, *PROMPTS, "--qps", str(load * 0.99))["fetch_pays"] is True
    crowded = ask(*STATED, *PROMPTS, "--qps", str(load * 1.01))
    assert crowded["fetch_pays"] is False
    assert crowded["saved_s"] == 0
    assert any("no load given" in note for note in idle["notes"])
    assert not any("no load given" in note for note in crowded["notes"])


def test_a_fleet_says_tier_and_accelerator(ask, run):
    found = ask("--fleet", "fleet.toml", *PROMPTS)
    assert found["tier"] == "memory"
    assert found["accelerator"] == "H100-80G-SXM"
    named = ask("--fleet", "fleet.toml", "--tier", "scratch", "--tier-gib", "100", *PROMPTS)
    assert (named["tier"], named["tier_gib"]) == ("scratch", 100)
    # A node has eight ports of 400 Gbit/s, less than its tiers read.
    assert found["fetch_gb_per_s"] == pytest.approx(min(400.0, found["tier_gb_per_s"]))
    status, _, err = run("--fleet", "fleet.toml", "--tier", "attic", *PROMPTS)
    assert status == 2
    assert "`attic`" in err


def test_popular_prefixes_fit_a_smaller_tier(ask):
    even, skewed = (ask(*STATED, *PROMPTS, "--zipf", zipf) for zipf in ("0", "1.2"))
    assert skewed["hit_ratio"] > even["hit_ratio"]
    assumed = ask(*STATED, *PROMPTS)
    assert any("Zipf" in note for note in assumed["notes"])
    assert not any("Zipf" in note for note in even["notes"])


def test_a_trace_of_blocks_is_read_as_it_came(ask, run, tmp_path: Path):
    prompts = [[talk, 1000 + talk, 10_000 + turn] for turn in range(50) for talk in range(20)]
    rows = [json.dumps({"hash_ids": blocks, "input_length": 1400}) for blocks in prompts]
    (tmp_path / "trace.jsonl").write_text("\n".join(rows))
    found = ask(*STATED, "--trace", "trace.jsonl")
    assert found["prompt_tokens"] == 1400
    seen = 20 + 20 + 50
    assert found["hit_ratio_max"] == pytest.approx(1 - seen / 3000)
    assert found["hit_ratio"] == pytest.approx(found["hit_ratio_max"], abs=0.01)
    half = ask(*STATED, "--trace", "trace.jsonl", "--target-percent", "30")
    assert 0 < half["target_gib"] <= seen * 512 * found["kv_bytes_per_token"] / 2**30
    (tmp_path / "none.jsonl").write_text('{"hash_ids": []}\n')
    status, _, err = run(*STATED, "--trace", "none.jsonl")
    assert status == 2
    assert "no blocks" in err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([*STATED], "traffic-not-stated"),
        ([*PROMPTS], "tier-not-stated"),
        ([*STATED, *PROMPTS, "--input-tokens", "100"], "prefix-too-long"),
        ([*STATED, *PROMPTS, "--accelerator", "H9000"], "unknown-accelerator"),
    ],
)
def test_what_is_missing_is_asked_for(run, words: list[str], code: str):
    replaced = dict(zip(words[::2], words[1::2], strict=True))
    status, out, err = run(*(word for pair in replaced.items() for word in pair), "--json")
    assert (status, out) == (2, "")
    assert json.loads(err)["error"]["code"] == code
