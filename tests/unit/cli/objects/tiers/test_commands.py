"""Commands on tiers: what they print, and what they refuse."""

import asyncio
import json
from pathlib import Path

import pytest

from objects_builders import Namespace, flip_bit, noise, shard_file
from tenfold.cli.main import app
from tenfold.model.errors import InputError, NoAnswer, Refused, TenfoldError

TIERS = {
    "hot": {"layout": "replicas = 2", "backends": {"a": "a", "b": "b"}},
    "warm": {"layout": 'erasure = "2+1"', "backends": {f"w{n}": f"w{n}" for n in range(3)}},
}


@pytest.fixture
def made(tmp_path: Path) -> Namespace:
    namespace = Namespace(tmp_path, TIERS)

    async def fill() -> None:
        for number in range(4):
            await namespace.put(f"dir/k{number}", noise(3000, number), "warm")

    asyncio.run(fill())
    return namespace


def run(made: Namespace, *words: str) -> None:
    places = ("--dir", str(made.state), "--tiers", str(made.tier_file))
    app(["objects", *words, *places], result_action="return_value")


def test_tiers_are_listed_with_what_they_hold(made: Namespace, capsys: pytest.CaptureFixture[str]):
    run(made, "tier", "list", "--json")
    hot, warm = json.loads(capsys.readouterr().out)
    assert (hot["name"], hot["blobs"]) == ("hot", 0)
    assert (warm["layout"], warm["blobs"], warm["bytes"]) == ("erasure=2+1", 4, 12_000)
    assert [one["shards"] for one in warm["backends"]] == [4, 4, 4]


def test_why_shows_each_shard(made: Namespace, capsys: pytest.CaptureFixture[str]):
    flip_bit(shard_file(made.store, made.refs()["dir/k2"], 1), 100)
    run(made, "why", "b/dir/k2", "--json")
    place = json.loads(capsys.readouterr().out)
    (blob,) = place["blobs"]
    assert [one["state"] for one in blob["shards"]] == ["good", "damaged", "good"]
    assert sorted(blob["placement"]) == ["w0", "w1", "w2"]


def test_a_scrub_that_finds_a_loss_has_exit_status_1(
    made: Namespace, capsys: pytest.CaptureFixture[str]
):
    ref = made.refs()["dir/k1"]
    flip_bit(shard_file(made.store, ref, 0), 100)
    run(made, "scrub", "--json")
    assert json.loads(capsys.readouterr().out)["repaired"] == 1
    ref = made.refs()["dir/k1"]
    for index in (0, 1):
        shard_file(made.store, ref, index).unlink()
    with pytest.raises(NoAnswer) as caught:
        run(made, "scrub")
    assert "1 objects have too few intact shards, such as `dir/k1`" in caught.value.message
    assert caught.value.code == "objects-lost"


@pytest.mark.parametrize(
    ("words", "error", "code"),
    [
        (("drain", "nowhere"), InputError, "backend-unknown"),
        (("drain", "a"), Refused, "too-few-domains"),
        (("drain", "hot"), InputError, "tier-unknown"),
        (("drain", "hot", "--to", "hot"), InputError, "tier-unknown"),
        (("drain", "a", "--to", "warm"), Refused, "drain-to-tier"),
        (("replace", "a", "w0"), InputError, "backend-unknown"),
        (("rebuild",), InputError, "rebuild-what"),
        (("rebuild", "a", "--catalog"), InputError, "rebuild-what"),
        (("rebuild", "nowhere"), InputError, "backend-unknown"),
        (("scrub", "cold"), InputError, "tier-unknown"),
        (("expand", "cold"), InputError, "tier-unknown"),
        (("rebalance", "--limit", "fast"), InputError, "bad-number"),
        (("why", "b"), InputError, "object-name"),
        (("why", "b/none"), NoAnswer, "object-unknown"),
    ],
)
def test_what_cannot_be_done_is_refused_and_changes_nothing(
    made: Namespace, words: tuple[str, ...], error: type[TenfoldError], code: str
):
    before = made.states.read()
    with pytest.raises(error) as caught:
        run(made, *words)
    assert caught.value.code == code
    assert caught.value.hint
    assert made.states.read() == before


def test_a_folder_without_a_tier_file_is_named(tmp_path: Path):
    with pytest.raises(InputError, match="there is no tier file"):
        app(["objects", "tier", "list", "--dir", str(tmp_path)], result_action="return_value")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--backends", "6"), "layout-unknown"),
        (("--backends", "6", "--erasure", "4+2", "--replicas", "3"), "layout-unknown"),
        (("--backends", "6", "--erasure", "4"), "layout-unknown"),
        (("--backends", "5", "--erasure", "4+2"), "too-few-domains"),
    ],
)
def test_a_layout_that_cannot_be_is_refused(words: tuple[str, ...], code: str):
    rest = ("--capacity-tb", "20", "--failures-per-year", "0.01", "--rebuild-mb-per-s", "100")
    with pytest.raises(InputError) as caught:
        app(["objects", "durability", *words, *rest], result_action="return_value")
    assert caught.value.code == code
