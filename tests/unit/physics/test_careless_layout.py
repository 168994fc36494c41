"""A layout that hangs on one switch is flagged where it is written, and a spread one is not."""

from pathlib import Path

import pytest

from tenfold.compose.fleet import check_fleet, load_facts
from tenfold.files.fleet.read import load_fleet
from tenfold.physics.blast import blast_radius
from tenfold.physics.layout import lay_out

POOL = """
[[pool]]
name = "h100"
accelerator = "H100"
nodes = 16
gpus_per_node = 8
nodes_per_rack = 4
"""
ONE_LEAF = '[[fabric]]\nname = "tree"\nnodes_per_leaf = 16\n'
STATED = '[[domain]]\nname = "the-switch"\nkind = "leaf"\nmembers = ["h100"]\n'
SPREAD = '[[fabric]]\nname = "tree"\nnodes_per_leaf = 4\n'
ONE_SPINE = '[[fabric]]\nname = "tree"\nnodes_per_leaf = 4\nspines = 1\n'


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (ONE_LEAF + POOL, 1, "losing leaf `tree-leaf-1` takes down all GPUs"),
        (SPREAD + POOL + STATED, 11, "losing leaf `the-switch` takes down all GPUs"),
        (ONE_SPINE + POOL, 4, "losing it stops every job larger than a leaf"),
    ],
)
def test_all_on_one_switch_is_flagged(text: str, line: int, said: str, tmp_path: Path):
    file = tmp_path / "fleet.toml"
    file.write_text(text)
    [found] = check_fleet(file).warnings
    assert found.code == "single-point"
    assert said in found.message
    assert found.line == line


def test_racks_on_switches_of_their_own_are_not(tmp_path: Path):
    file = tmp_path / "fleet.toml"
    file.write_text(SPREAD + POOL)
    assert check_fleet(file).warnings == ()


def test_what_is_flagged_really_takes_everything(tmp_path: Path):
    file = tmp_path / "fleet.toml"
    file.write_text(ONE_LEAF + POOL)
    facts = load_facts()
    rows = blast_radius(lay_out(load_fleet(file, facts)), facts)
    [leaf] = [row for row in rows if row.kind == "leaf"]
    assert (leaf.gpus, leaf.gang_gpus_left) == (128, 0)
