"""Slurm's nodes in each form that Slurm prints them."""

import json

import pytest

from tenfold.files.slurm.nodes import read_slurm_nodes
from tenfold.model.errors import InputError
from tenfold.model.fleet.inventory import InventoryNode

OLD_NODE = {
    "name": "n1",
    "cpus": 64,
    "real_memory": 1048576,
    "gres": "gpu:h100:8(S:0-1)",
    "features": "ib,nvlink",
    "partitions": ["gpu", "debug"],
    "state": "idle",
    "state_flags": [],
    "reason": "",
    "operating_system": "Linux 6.1.0-18-amd64 #1 SMP Debian 6.1.76-1",
    "slurmd_version": "22.05.8",
}
NEW_NODE = {
    **OLD_NODE,
    "cpus": {"set": True, "infinite": False, "number": 64},
    "features": ["ib", "nvlink"],
    "state": ["IDLE"],
    "version": "23.11.10",
}
TEXT = """\
NodeName=n1 Arch=x86_64 CoresPerSocket=1
   CPUAlloc=0 CPUEfctv=64 CPUTot=64 CPULoad=1.41
   AvailableFeatures=ib,nvlink
   ActiveFeatures=ib,nvlink
   Gres=gpu:h100:8(S:0-1)
   NodeAddr=127.0.0.1 NodeHostName=vm Port=17811 Version=22.05.8
   OS=Linux 6.1.0-18-amd64 #1 SMP Debian 6.1.76-1
   RealMemory=1048576 AllocMem=0 FreeMem=23333 Sockets=64 Boards=1
   State=IDLE ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   Partitions=gpu,debug
   CfgTRES=cpu=64,mem=1T,billing=64

NodeName=n2 Arch=x86_64 CoresPerSocket=1
   CPUTot=64
   Gres=(null)
   RealMemory=515000
   State=IDLE+DRAIN ThreadsPerCore=1
   Partitions=gpu
   Reason=fan Gres=gpu:h100:99 State=IDLE [root@2026-01-01T00:00:00]
"""


def read_one(**changes: object) -> InventoryNode:
    text = json.dumps({"nodes": [{**OLD_NODE, **changes}]})
    [node] = read_slurm_nodes(text, "nodes.json").nodes
    return node


def test_a_node_of_slurm_22_reads_whole():
    node = read_one()
    assert (node.name, node.accelerator, node.gpus, node.cpus) == ("n1", "h100", 8, 64)
    assert node.memory_gib == 1024
    assert node.labels == {"features": "ib,nvlink", "partitions": "gpu,debug"}
    assert node.usable
    assert node.software.kernel == "6.1.0-18-amd64"
    assert node.software.orchestrators == ("slurm 22.05.8",)


def test_newer_json_and_text_say_the_same():
    new = json.dumps({"meta": {"slurm": {"cluster": "alpha"}}, "nodes": [NEW_NODE]})
    inventory = read_slurm_nodes(new, "nodes.json")
    assert inventory.name == "alpha"
    told = read_slurm_nodes(TEXT, "nodes.txt").nodes[0]
    assert told == read_one()
    assert inventory.nodes[0].labels == told.labels
    assert inventory.nodes[0].gpus == told.gpus


def test_grouped_sinfo_gives_each_node_once_with_all_its_partitions():
    row = {
        "node": {"state": ["MIXED"]},
        "nodes": {"total": 2, "nodes": ["n1", "n2"]},
        "cpus": {"total": 128, "maximum": 64},
        "memory": {"maximum": 515000},
        "gres": {"total": "gpu:a100:4"},
        "features": {"total": "ib"},
        "reason": {"description": ""},
    }
    rows = [{**row, "partition": {"name": name}} for name in ("gpu", "debug")]
    nodes = read_slurm_nodes(json.dumps({"sinfo": rows}), "sinfo.json").nodes
    assert [node.name for node in nodes] == ["n1", "n2"]
    assert nodes[0].labels == {"features": "ib", "partitions": "gpu,debug"}
    assert (nodes[1].gpus, nodes[1].cpus, nodes[1].accelerator) == (4, 64, "a100")


def test_grouped_sinfo_without_cpus_a_node_divides_the_total():
    row = {"nodes": {"total": 2, "nodes": ["a", "b"]}, "cpus": {"total": 96}, "gres": "gpu:2"}
    nodes = read_slurm_nodes(json.dumps({"sinfo": [row]}), "sinfo.json").nodes
    assert [(node.cpus, node.gpus) for node in nodes] == [(48, 2), (48, 2)]


@pytest.mark.parametrize(
    ("gres", "accelerator", "gpus"),
    [
        ("gpu:8", None, 8),
        ("gpu", None, 1),
        ("gpu:h100", "h100", 1),
        ("gpu:h100:2(S:0-1),gpu:h100:2(S:2-3)", "h100", 4),
        ("shard:16,gpu:l40s:4,mps:400", "l40s", 4),
        ("gpu:h100:0", None, 0),
        ("lscratch:1T", None, 0),
        ("gpu_mem:80G", None, 0),
        ("", None, 0),
    ],
)
def test_gres_names_and_counts_gpus(gres: str, accelerator: str | None, gpus: int):
    node = read_one(gres=gres)
    assert (node.accelerator, node.gpus) == (accelerator, gpus)


def test_of_two_kinds_of_gpu_the_fewer_are_noted():
    text = json.dumps({"nodes": [{**OLD_NODE, "gres": "gpu:v100:1,gpu:a100:4"}]})
    inventory = read_slurm_nodes(text, "nodes.json")
    assert inventory.nodes[0].accelerator == "a100"
    assert inventory.notes == ("node `n1` also has 1 `v100`, ignored: a pool has one GPU type",)


@pytest.mark.parametrize(
    ("state", "why"),
    [
        (["IDLE", "DRAIN"], "drain: bad cable"),
        ("down*", "down: bad cable"),
        ("idle*", "not_responding: bad cable"),
        ("IDLE+DRAIN", "drain: bad cable"),
        (["MIXED", "NOT_RESPONDING"], "not_responding: bad cable"),
        (["ALLOCATED"], ""),
        ("idle~", ""),
        (["IDLE", "POWERED_DOWN"], ""),
    ],
)
def test_drained_and_down_nodes_are_not_usable(state: object, why: str):
    node = read_one(state=state, reason="bad cable")
    assert (node.usable, node.why_unusable) == (not why, why)


def test_a_flag_of_slurm_22_drains_too():
    assert not read_one(state="idle", state_flags=["DRAIN"]).usable


def test_a_reason_cannot_pose_as_another_key():
    node = read_slurm_nodes(TEXT, "nodes.txt").nodes[1]
    assert node.gpus == 0
    assert node.why_unusable.startswith("drain: fan Gres=gpu:h100:99 State=IDLE [root@")


def test_text_on_one_line_a_node_reads_as_well():
    lines = [" ".join(block.split()) for block in TEXT.split("\n\n")]
    one_line = read_slurm_nodes("\n".join(lines), "nodes.txt")
    assert one_line.nodes == read_slurm_nodes(TEXT, "nodes.txt").nodes


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "not-slurm-nodes"),
        ("slurm_load_node error: Unable to contact slurm controller", "not-slurm-nodes"),
        ("{", "syntax"),
        ("[1]", "not-a-table"),
        ("{}", "not-slurm-nodes"),
        ('{"nodes": []}', "no-nodes"),
        ('{"nodes": [{"cpus": 4}]}', "bad-node"),
        ('{"nodes": [{"name": "n1", "cpus": "many"}]}', "wrong-value"),
        ('{"nodes": [{"name": "n1", "cpus": -4, "real_memory": -1}]}', "bad-node"),
        ('{"nodes": [{"name": "n1", "gres": "gpu:h100:x"}]}', "wrong-value"),
        ('{"nodes": [{"name": "n1"}, {"name": "n1"}]}', "duplicate-name"),
        ('{"nodes": [{"name": "n[1-2]"}]}', "bad-node"),
        ("NodeName=n1 CPUTot=lots", "wrong-value"),
        ("[" * 100_000, "syntax"),
    ],
)
def test_bad_input_names_the_file_and_the_error(text: str, code: str):
    with pytest.raises(InputError) as caught:
        read_slurm_nodes(text, "saved.json")
    assert caught.value.code == code
    assert caught.value.file == "saved.json"
    assert caught.value.hint


def test_a_reason_says_since_when_as_a_date() -> None:
    text = (
        "NodeName=n1 Arch=x86_64 CPUTot=8 RealMemory=100\n   Gres=gpu:h100:8\n   State=IDLE+DRAIN\n"
        "   Reason=fan [x] is loud [root@1795124934]\n"
    )
    (node,) = read_slurm_nodes(text, "nodes.txt").nodes
    assert node.why_unusable == "drain: fan [x] is loud [root@2026-11-19 21:48:54 UTC]"
