"""A real control plane over a real Slurm and this machine: jobs go on here while Slurm is gone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.executor.same_job import ask, log_of, shown, tenfold, until_over
from contract.executor.slurm.rig import four_nodes
from engines.slurm import RunningSlurm
from patience import until
from tenfold.live.local.executor import LocalExecutor
from unit.up_process import Up

FLEET = """\
[[site]]
name = "cluster"

[[site]]
name = "here"

[[pool]]
name = "slurm"
site = "cluster"
node_names = "a,b"
accelerator = "H100-80G-SXM"
gpus_per_node = 8
cpus_per_node = 16
memory_gib_per_node = 15
price = { kind = "owned", usd_per_gpu_hour = 1.0 }

[[pool]]
name = "h"
site = "here"
nodes = 1
accelerator = "H100-80G-SXM"
gpus_per_node = 8
price = { kind = "on-demand", usd_per_gpu_hour = 3.0 }
"""
SITES = """\
[[site]]
name = "cluster"
engine = "slurm"
conf = "CONF"
lost_after_s = 5

[[site]]
name = "here"
engine = "local"
"""
JOB = """\
name = "count"
gpus_per_node = 8
grace = "1s"
command = ["sh", "-c", '''
n=$(cat "$TENFOLD_CHECKPOINT_DIR/n" 2>/dev/null || echo 0); echo "from $n on $TENFOLD_NODES"
if [ "$n" -gt 0 ]; then exit 0; fi
echo 7 > "$TENFOLD_CHECKPOINT_DIR/n"; echo saved
while :; do sleep 1000 & wait $!; done''']
checkpoint = { dir = "saves" }
"""

pytestmark = pytest.mark.engine


@pytest.fixture
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSlurm]:
    with four_nodes(tmp_path_factory.mktemp("slurm")) as running:
        yield running


@pytest.fixture
def up(slurm: RunningSlurm, tmp_path: Path) -> Iterator[Up]:
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "sites.toml").write_text(SITES.replace("CONF", slurm.environment["SLURM_CONF"]))
    (tmp_path / "job.toml").write_text(JOB)
    made = Up(tmp_path / "home")
    files = ("--fleet", str(tmp_path / "fleet.toml"), "--sites", str(tmp_path / "sites.toml"))
    made.start(*files, "--team-users", "off")
    yield made
    made.interrupt()
    last = LocalExecutor(str(made.home / "run" / "sites" / "here"))
    last.stop_spawner()
    last.close()


def states(up: Up) -> dict[str, str]:
    return {one["id"]: one["state"] for one in ask(up, "nodes").json()["nodes"]}


def test_a_job_moves_off_a_slurm_that_is_gone_and_ends_there_once_it_is_back(
    up: Up, slurm: RunningSlurm, tmp_path: Path
):
    assert tenfold(up, "job", "submit", str(tmp_path / "job.toml")).returncode == 0
    until(lambda: "saved" in log_of(up, "count-1"), pause_s=0.2)
    assert shown(up, "count-1")["attempts"][0]["nodes"][0] in ("a", "b")
    slurm.daemons.end("slurmctld")
    found = until_over(up, "count-1")
    assert found["state"] == "succeeded"
    assert [one["nodes"] for one in found["attempts"]][1] == ["h-1"]
    assert log_of(up, "count-1").startswith("from 7 on h-1")
    assert states(up) == {"a": "down", "b": "down", "h-1": "up"}
    slurm.daemons.start("slurmctld", "slurmctld", "-D")
    until(lambda: set(states(up).values()) == {"up"}, pause_s=0.5)
    assert not slurm.ask("squeue", "--noheader", "--states=running")
