"""Powered-down nodes of a real Slurm as a provider: its own power saving switches them."""

from collections.abc import Generator
from pathlib import Path

import pytest

from engines.slurm import RunningSlurm, SlurmNode, running_slurm
from patience import until
from tenfold.live.providers.provider import NoCapacity
from tenfold.live.providers.slurm import SlurmProvider
from tenfold.live.slurm.commands import SlurmCommands

pytestmark = pytest.mark.engine

NODES = [SlurmNode(name=f"n{at}", cpus=1, memory_mib=100) for at in (1, 2)]
POWER_SAVING = [
    "SuspendProgram=/bin/true",
    "ResumeProgram=/bin/true",
    "SuspendTime=86400",
    "SuspendTimeout=1",
    "ResumeTimeout=300",
]


@pytest.fixture
def slurm(tmp_path: Path) -> Generator[RunningSlurm]:
    yield from _running(tmp_path)


def _running(folder: Path) -> Generator[RunningSlurm]:
    with running_slurm(folder, NODES, POWER_SAVING) as slurm:
        yield slurm


def state_of(slurm: RunningSlurm, node: str) -> str:
    return slurm.ask("sinfo", "--noheader", "--nodes", node, "--format", "%T").strip()


def test_nodes_are_powered_down_and_up_again(slurm: RunningSlurm):
    provider = SlurmProvider(SlurmCommands(slurm.environment), ["all"])
    assert [one.state for one in provider.instances()] == ["running", "running"]
    with pytest.raises(NoCapacity, match="0 of 1 nodes are switched off"):
        provider.rent("all", 1)

    provider.release(["n1"])
    until(lambda: state_of(slurm, "n1").endswith("~"), explain=lambda: state_of(slurm, "n1"))
    assert [one.id for one in provider.instances()] == ["n2"]
    provider.release(["n1"])

    assert provider.rent("all", 1) == ("n1",)
    (starting,) = [one for one in provider.instances() if one.id == "n1"]
    assert (starting.state, starting.zone) == ("starting", "all")
    # A node that boots reports that it did; here its daemon says so in its place.
    slurm.daemons.end("n1")
    slurm.daemons.start("n1", "slurmd", "-D", "-b", "-N", "n1")
    until(
        lambda: all(one.state == "running" for one in provider.instances()),
        explain=lambda: state_of(slurm, "n1"),
    )


def test_a_partition_that_is_not_ours_is_left_alone(slurm: RunningSlurm):
    provider = SlurmProvider(SlurmCommands(slurm.environment), ["other"])
    assert provider.instances() == ()
    provider.release(["n1"])
    assert state_of(slurm, "n1") == "idle"
