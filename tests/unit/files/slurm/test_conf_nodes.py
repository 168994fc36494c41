"""The nodes of a slurm.conf, and which of Slurm's files was given."""

from pathlib import Path

import pytest

from tenfold.files.slurm.nodes import read_slurm_file
from tenfold.model.errors import InputError
from tenfold.model.fleet.inventory import Inventory

CONF = """\
ClusterName=alpha
SlurmctldHost=ctl
NodeName=DEFAULT CPUs=96 RealMemory=1048576
nodename=hx[01-04] Gres=gpu:h100:8 Feature=ib,rack1 State=UNKNOWN
NodeName=hx[05-08] Gres=gpu:h100:8 Features=ib,rack2 \\
  State=UNKNOWN
NodeName=old1 Gres=gpu:h100:8 State=DOWN Reason=retired
NodeName=login1 Sockets=2 CoresPerSocket=4 ThreadsPerCore=2 CPUs=16 RealMemory=32768
Include more.conf
PartitionName=DEFAULT MaxTime=60
PartitionName=gpu Nodes=hx[01-08] Default=YES
PartitionName=debug Nodes=hx[01-02]
PartitionName=all Nodes=ALL
"""
MORE = "NodeName=fat1 Boards=1 SocketsPerBoard=2 CoresPerSocket=16 ThreadsPerCore=2 RealMemory=1\n"


def read(folder: Path, text: str = CONF) -> Inventory:
    (folder / "more.conf").write_text(MORE)
    (folder / "slurm.conf").write_text(text)
    return read_slurm_file(folder / "slurm.conf", 1 << 20)


def test_a_slurm_conf_gives_its_nodes_its_partitions_and_the_name_of_the_cluster(tmp_path: Path):
    found = read(tmp_path)
    assert (found.name, found.format) == ("alpha", "`slurm.conf`, nodes as configured")
    nodes = {node.name: node for node in found.nodes}
    assert len(nodes) == 11
    first = nodes["hx01"]
    assert (first.accelerator, first.gpus, first.cpus, first.memory_gib) == ("h100", 8, 96, 1024)
    assert first.labels == {"features": "ib,rack1", "partitions": "gpu,debug,all"}
    assert nodes["hx08"].labels == {"features": "ib,rack2", "partitions": "gpu,all"}
    assert nodes["login1"].cpus == 16


def test_a_state_in_a_slurm_conf_counts_only_where_it_says_something(tmp_path: Path):
    nodes = {node.name: node for node in read(tmp_path).nodes}
    assert nodes["hx01"].usable
    assert nodes["old1"].why_unusable == "down: retired"


def test_cpus_are_counted_from_sockets_and_cores(tmp_path: Path):
    text = CONF.replace("NodeName=DEFAULT CPUs=96", "NodeName=DEFAULT")
    nodes = {node.name: node for node in read(tmp_path, text).nodes}
    assert nodes["fat1"].cpus == 64


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("NodeName=hx[01-04 CPUs=8", "unmatched bracket"),
        ("NodeName=hx01 CPUs=many", "`CPUs` is `many`, not a whole number"),
    ],
)
def test_an_error_names_file_and_line(tmp_path: Path, line: str, message: str):
    path = tmp_path / "slurm.conf"
    path.write_text(f"ClusterName=a\n{line}\n")
    with pytest.raises(InputError, match=message) as error:
        read_slurm_file(path, 1 << 20)
    assert (error.value.file, error.value.line) == (str(path), 2)


def test_a_slurm_conf_without_nodes_says_what_to_import_instead(tmp_path: Path):
    path = tmp_path / "slurm.conf"
    path.write_text("ClusterName=a\nPartitionName=gpu Nodes=ALL\n")
    with pytest.raises(InputError, match="without `NodeName` lines") as error:
        read_slurm_file(path, 1 << 20)
    assert "scontrol show nodes --json" in error.value.hint


@pytest.mark.parametrize(
    ("text", "format", "name"),
    [
        ("NodeName=a CPUTot=8 Gres=gpu:1\n", "`scontrol show nodes` output", "slurm"),
        ('{"nodes": [{"name": "a"}]}', "`scontrol show nodes --json` output", "slurm"),
        (
            '{"nodes": [{"name": "a"}], "meta": {"slurm": {"cluster": "beta"}}}',
            "`scontrol show nodes --json` output",
            "beta",
        ),
    ],
)
def test_what_was_read_is_named_and_so_is_the_cluster(
    tmp_path: Path, text: str, format: str, name: str
):
    path = tmp_path / "nodes"
    path.write_text(text)
    found = read_slurm_file(path, 1 << 20)
    assert (found.format, found.name) == (format, name)
