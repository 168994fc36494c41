"""Import from a Slurm that really runs, started from a fleet file."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from engines.slurm import RunningSlurm, SlurmNode, running_slurm
from patience import HANG_S
from tenfold.cli.fleet.importing import Target, import_slurm
from tenfold.compose.fleet import load_fleet
from tenfold.files.slurm.nodes import read_slurm_nodes
from tenfold.model.errors import InputError, Unreachable
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.spec import FleetSpec

FLEET = Path(__file__).parent / "fleets" / "slurm-four-nodes.toml"

pytestmark = pytest.mark.engine


def slurm_nodes(spec: FleetSpec) -> list[SlurmNode]:
    """The nodes of a fleet as a `slurm.conf` would state them."""
    return [
        SlurmNode(
            name=name,
            cpus=pool.cpus_per_node,
            memory_mib=pool.memory_bytes_per_node // 1024**2,
            gpu_type="h100",
            gpus=pool.gpus_per_node,
            features=pool.labels["features"],
        )
        for pool in spec.pools
        for name in hostlist.expand(pool.node_names)
    ]


def slurm_partitions(spec: FleetSpec) -> list[str]:
    return [
        f"PartitionName={pool.labels['partitions']} Nodes={pool.node_names} Default=YES State=UP"
        for pool in spec.pools
    ]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSlurm]:
    spec = load_fleet(FLEET)
    folder = tmp_path_factory.mktemp("slurm")
    with running_slurm(folder, slurm_nodes(spec), partitions=slurm_partitions(spec)) as running:
        yield running


@pytest.fixture
def here(slurm: RunningSlurm, monkeypatch: pytest.MonkeyPatch) -> RunningSlurm:
    monkeypatch.setenv("SLURM_CONF", slurm.environment["SLURM_CONF"])
    return slurm


def test_a_running_slurm_imports_as_the_fleet_it_was_started_from(
    here: RunningSlurm, tmp_path: Path
):
    out = tmp_path / "imported.toml"
    imported = import_slurm(None, Target(name="slurm-four-nodes", out=out))
    print(f"\nSlurm {here.ask('sinfo', '--version').strip()}; imported:\n{imported.toml}")
    assert load_fleet(out) == load_fleet(FLEET)
    assert imported.summary.gpus == 32
    assert imported.notes == ("detected `scontrol show nodes` output",)


def test_what_sinfo_prints_as_json_is_the_same_inventory(here: RunningSlurm):
    live = read_slurm_nodes(here.ask("scontrol", "show", "nodes"), "nodes")
    told = read_slurm_nodes(here.ask("sinfo", "--json"), "nodes")
    assert told.nodes == live.nodes


def test_a_drained_node_is_left_out_and_counted(here: RunningSlurm):
    here.ask("scontrol", "update", "nodename=n4", "state=drain", "reason=bad cable")
    try:
        imported = import_slurm(None)
    finally:
        here.ask("scontrol", "update", "nodename=n4", "state=resume")
    assert imported.summary.nodes == 3
    assert "skipped 1 of 4 nodes as unusable" in imported.notes
    assert any("n4 (drain: bad cable" in note for note in imported.notes)


def test_an_existing_file_is_not_written_over(here: RunningSlurm, tmp_path: Path):
    out = tmp_path / "fleet.toml"
    out.write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        import_slurm(None, Target(out=out))
    assert out.read_text() == "mine"
    import_slurm(None, Target(out=out, force=True))
    assert "[[pool]]" in out.read_text()


def test_a_controller_that_is_gone_is_unreachable(
    here: RunningSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    conf = Path(here.environment["SLURM_CONF"]).read_text()
    port = next(line for line in conf.splitlines() if line.startswith("SlurmctldPort="))
    gone = tmp_path / "slurm.conf"
    gone.write_text(conf.replace(port, "SlurmctldPort=1\nMessageTimeout=2"))
    monkeypatch.setenv("SLURM_CONF", str(gone))
    with pytest.raises(Unreachable) as caught:
        import_slurm(None)
    assert caught.value.exit_status == 4
    assert "sinfo" in caught.value.hint or "scontrol ping" in caught.value.hint


def test_every_daemon_ends_with_the_context(tmp_path: Path):
    spec = load_fleet(FLEET)
    before = psutil.Process().children(recursive=True)
    with running_slurm(tmp_path, slurm_nodes(spec)[:1]):
        daemons = [one for one in psutil.Process().children(recursive=True) if one not in before]
        assert len(daemons) >= 3
    gone, alive = psutil.wait_procs(daemons, timeout=HANG_S)
    assert alive == []
    assert len(gone) == len(daemons)


def test_without_the_command_slurm_is_unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unreachable, match="`scontrol` is not installed"):
        import_slurm(None)
