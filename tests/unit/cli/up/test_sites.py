"""`tenfold up --sites`: what it goes with, and which nodes are virtual."""

from pathlib import Path

import pytest

from tenfold.cli.up.inputs import ExternalInputs, external_inputs, site_inputs
from tenfold.cli.up.options import ExecutorOptions
from tenfold.model.errors import InputError

FLEET = """\
[[site]]
name = "north"
[[site]]
name = "south"
[[pool]]
name = "n"
site = "north"
shape = "DGX-H100"
nodes = 1
[[pool]]
name = "s"
site = "south"
shape = "DGX-H100"
nodes = 1
"""
SITES = """\
[[site]]
name = "north"
engine = "local"
[[site]]
name = "south"
engine = "ray"
address = "http://127.0.0.1:8265"
"""


def files(folder: Path) -> tuple[Path, Path]:
    sites, fleet = folder / "sites.toml", folder / "fleet.toml"
    sites.write_text(SITES)
    fleet.write_text(FLEET)
    return sites, fleet


@pytest.mark.parametrize(
    ("executor", "has_fleet", "code"),
    [("slurm", True, "two-executors"), ("local", False, "needs-fleet")],
)
def test_sites_need_a_fleet_and_no_other_executor(executor, has_fleet: bool, code: str):
    options = ExecutorOptions(executor=executor, sites=Path("sites.toml"))
    with pytest.raises(InputError) as caught:
        options.check(has_fleet=has_fleet)
    assert caught.value.code == code


def test_nodes_of_local_sites_are_virtual_and_others_are_not(tmp_path: Path):
    inputs, engines = site_inputs(*files(tmp_path), "tenfold", None)
    assert [one.engine for one in engines] == ["local", "ray"]
    assert [(node.id, "virtual" in node.tags) for node in inputs.nodes] == [
        ("n-1", True),
        ("s-1", False),
    ]
    assert inputs.summary.endswith("at north (local), south (ray)")


def test_sites_have_nodes_of_their_own(tmp_path: Path):
    with pytest.raises(InputError) as caught:
        site_inputs(*files(tmp_path), "tenfold", 4)
    assert caught.value.code == "two-fleets"


def test_only_the_nodes_of_the_slurm_partition_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """By what `scontrol` prints: `sinfo` refuses `--all` together with a partition."""
    program = tmp_path / "scontrol"
    rows = "".join(
        f"echo 'NodeName={name} Arch=x86_64 CPUTot=8 RealMemory=1000 Gres=gpu:h100:4 State=IDLE "
        f"Partitions={partitions}'\n"
        for name, partitions in (("a1", "gpu,debug"), ("a2", "gpu.old"), ("a3", "gpu"))
    )
    program.write_text(f'#!/bin/sh\n[ "$3" = --json ] && echo "no json" >&2 && exit 1\n{rows}')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    found = external_inputs(ExternalInputs(partition="gpu"), "tenfold", None, tmp_path / "state")
    assert sorted(str(node.id) for node in found.nodes) == ["a1", "a3"]
    with pytest.raises(InputError, match="partition `gup` has no node"):
        external_inputs(ExternalInputs(partition="gup"), "tenfold", None, tmp_path / "state")
