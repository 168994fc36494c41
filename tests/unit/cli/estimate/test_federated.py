"""`tenfold estimate federated`: on the example fleets, as text and as JSON."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

EXAMPLES = Path(__file__).parents[4] / "examples"
EDGE = EXAMPLES / "edge-sites" / "fleet.toml"
BANK = EXAMPLES / "bank-three-sites" / "fleet.toml"
SHOPS = ("--site", "shop-north", "--site", "shop-east", "--site", "shop-south")
SMALL = ("--model", "GPT-2 124M", "--seq", "512", "--batch", "48", "--local-steps", "50")


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]):
    def call(fleet: Path, *words: object) -> tuple[int, str, str]:
        asked = ["estimate", "federated", "--fleet", str(fleet), *[str(word) for word in words]]
        status = main(asked)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


def answer_of(ask, fleet: Path, *words: object) -> dict:
    status, out, err = ask(fleet, *words, "--json")
    assert (status, err) == (0, "")
    return json.loads(out)


def test_three_shops_take_the_links_of_the_fleet_file(ask):
    answer = answer_of(ask, EDGE, *SHOPS, *SMALL)
    assert answer["coordinator"] == "depot"
    ways = {one["site"]: one["way"] for one in answer["sites"]}
    assert ways["shop-south"]["bytes_per_s"] == 2.5e6
    assert ways["shop-south"]["latency_s"] == 0.045
    assert ways["shop-south"]["over"] == ["depot - shop-south"]
    assert ways["shop-south"]["usd_per_gb"] == 0.5
    parts = answer["round"]["breakdown_s"]
    assert sum(parts.values()) == pytest.approx(answer["round"]["round_s"])
    sent = 3 * 2 * answer["model_bytes"]
    assert answer["round"]["wan_bytes_per_round"] == pytest.approx(sent)
    assert answer["synchronous"]["slower"] > 1
    assert any("--weight-bits" in line for line in answer["assumptions"])


def test_text_has_the_round_its_sites_and_what_was_assumed(ask):
    status, out, _ = ask(EDGE, *SHOPS, *SMALL, "--quorum", "2")
    assert status == 0
    assert "it completes after 2 of 3 site updates" in out
    assert "compression" in out
    assert "assumed:" in out


def test_sites_beyond_another_share_its_link(ask):
    answer = answer_of(
        ask, BANK, "--coordinator", "dublin", "--params", "1e9", "--local-steps", "10",
        "--step-s", "frankfurt=1", "--step-s", "zurich=1", "--step-s", "dublin=1",
    )  # fmt: skip
    ways = {one["site"]: one["way"] for one in answer["sites"]}
    assert ways["dublin"]["bytes_per_s"] is None
    assert ways["zurich"]["over"] == ["frankfurt - zurich", "frankfurt - dublin"]
    assert ways["zurich"]["bytes_per_s"] == 5e9
    assert ways["frankfurt"]["bytes_per_s"] == 6.25e9
    assert ways["zurich"]["usd_per_gb"] == pytest.approx(0.05)
    assert any("split it evenly" in line for line in answer["assumptions"])


def test_a_straggler_measured_steps_and_weights_are_taken(ask):
    words = (*SHOPS, "--params", "11M", "--local-steps", "10", "--weight-bits", "32")
    steps = [word for name in ("north", "east", "south") for word in ("--step-s", f"shop-{name}=1")]
    plain = answer_of(ask, EDGE, *words, *steps)
    assert plain["model_bytes"] == 44e6
    assert {one["step_basis"] for one in plain["sites"]} == {"stated"}
    samples = [f"--samples=shop-{name}" for name in ("north=3", "east=1", "south=1")]
    slow = answer_of(ask, EDGE, *words, *steps, *samples, "--slow", "shop-north=50")
    assert slow["round"]["round_s"] > plain["round"]["round_s"]
    times = {one["site"]: one["time"] for one in slow["sites"]}
    assert times["shop-north"]["closes"] == 1
    assert times["shop-north"]["weight"] == pytest.approx(0.6)


def test_a_deadline_that_no_quorum_meets_ends_with_1(ask):
    status, out, _ = ask(EDGE, *SHOPS, *SMALL, "--deadline", "1m", "--json")
    assert status == 1
    answer = json.loads(out)
    assert answer["round"] is None
    assert answer["reasons"][0]["code"] == "deadline-before-quorum"
    assert ask(EDGE, *SHOPS, *SMALL, "--deadline", "1m")[0] == 1


def test_a_model_that_fits_no_board_ends_with_1(ask):
    words = ("--model", "Llama 2 7B", "--local-steps", "5", "--site", "shop-east", "--json")
    status, out, _ = ask(EDGE, *words)
    assert status == 1
    assert json.loads(out)["reasons"][0]["code"] == "does-not-fit"


def test_sites_without_a_link_need_a_stated_assumption(ask, tmp_path: Path):
    fleet = tmp_path / "fleet.toml"
    pools = "".join(
        f'[[site]]\nname = "{name}"\n[[pool]]\nname = "{name}"\nsite = "{name}"\n'
        'accelerator = "H100"\nnodes = 1\ngpus_per_node = 8\n'
        for name in ("a", "b")
    )
    fleet.write_text(pools)
    status, _, err = ask(fleet, *SMALL, "--json")
    assert status == 2
    error = json.loads(err)["error"]
    assert error["code"] == "no-route"
    assert "--wan-gbps" in error["hint"]
    answer = answer_of(ask, fleet, *SMALL, "--wan-gbps", "0.8")
    assert answer["sites"][1]["way"] == {
        "bytes_per_s": 1e8,
        "latency_s": 0.0,
        "usd_per_gb": 0.0,
        "over": ["assumed"],
    }
    assert any("no link in the fleet file" in line for line in answer["assumptions"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--site", "moon", *SMALL), "unknown-site"),
        (("--coordinator", "moon", *SMALL), "unknown-site"),
        (("--site", "shop-east", *SMALL, "--slow", "depot=2"), "unknown-site"),
        ((*SHOPS, *SMALL, "--quorum", "4"), "bad-quorum"),
        ((*SHOPS, *SMALL, "--per-round", "2", "--quorum", "3"), "bad-quorum"),
        ((*SHOPS, "--local-steps", "5"), "missing-model"),
        ((*SHOPS, "--local-steps", "5", "--params", "1M"), "missing-step-time"),
        ((*SHOPS, *SMALL, "--samples", "shop-east=9"), "missing-samples"),
        ((*SHOPS, *SMALL, "--step-s", "shop-east"), "bad-site-value"),
        ((*SHOPS, *SMALL, "--slow", "shop-east=-1"), "bad-site-value"),
        ((*SHOPS, "--local-steps", "5", "--model", "nothing"), "unknown-model"),
        ((*SHOPS, *SMALL, "--deadline", "soon"), "bad-duration"),
    ],
)
def test_what_cannot_be_asked_says_why(ask, words: tuple[str, ...], code: str):
    status, out, err = ask(EDGE, *words, "--json")
    assert (status, out) == (2, "")
    error = json.loads(err)["error"]
    assert error["code"] == code
    assert error["hint"]
