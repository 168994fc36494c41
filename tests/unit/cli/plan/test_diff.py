"""`plan diff`, ranked accelerators and host rules, as a user meets them."""

import json
from pathlib import Path

import pytest

from tenfold.cli.main import main

POOL = '[[pool]]\nname = "a"\naccelerator = "H100"\nnodes = 2\ngpus_per_node = 8\n'
TIER = '[[tier]]\nname = "big"\nclass = "hot"\n'


def test_two_plans_are_compared_by_what_they_require(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(POOL)
    for gpus in (8, 16):
        words = ["plan", "train", "--model", "Llama 3.1 8B", "--fleet", str(fleet)]
        assert main([*words, "--gpus", str(gpus), "--json"]) == 0
        (tmp_path / f"{gpus}.json").write_text(capsys.readouterr().out)
    assert (
        main(["plan", "diff", str(tmp_path / "8.json"), str(tmp_path / "16.json"), "--json"]) == 0
    )
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)["rows"]}
    assert rows["gpus"]["ratio"] == 2
    assert rows["checkpoint_bytes"]["ratio"] == 1
    assert main(["plan", "diff", str(fleet), str(fleet)]) == 2
    assert "plan train --json" in capsys.readouterr().err


def test_accelerators_are_ranked_by_flops_per_watt(capsys: pytest.CaptureFixture[str]):
    assert (
        main(["facts", "list", "--kind", "accelerator", "--sort", "flops-per-watt", "--json"]) == 0
    )
    ratios = [row["tflops_per_w"] or 0 for row in json.loads(capsys.readouterr().out)]
    assert ratios == sorted(ratios, reverse=True)
    assert main(["facts", "list", "--sort", "flops"]) == 2


def test_small_hosts_and_single_shelves_are_warned_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    """R11: the named warnings, and none where the node is large enough."""
    found: list[set[str]] = []
    for cpus, shelves in ((16, 1), (96, 2)):
        fleet = tmp_path / "fleet.toml"
        fleet.write_text(f"{POOL}cpus_per_node = {cpus}\n{TIER}shelves = {shelves}\n")
        main(["fleet", "check", str(fleet), "--json"])
        warnings = json.loads(capsys.readouterr().out)["warnings"]
        found.append({row["code"] for row in warnings})
    assert {"host-cpus-few", "storage-not-parallel"} <= found[0]
    assert not {"host-cpus-few", "storage-not-parallel"} & found[1]
