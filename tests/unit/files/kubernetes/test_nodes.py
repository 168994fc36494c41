"""Kubernetes nodes: devices, labels, quantities, and nodes that take no work."""

import json

import pytest

from tenfold.files.kubernetes.nodes import read_kubernetes_nodes
from tenfold.model.errors import InputError
from tenfold.model.fleet.inventory import Inventory, InventoryNode

INFO = {
    "kubeletVersion": "v1.29.3",
    "containerRuntimeVersion": "containerd://1.7.13",
    "osImage": "Ubuntu 22.04.4 LTS",
    "kernelVersion": "5.15.0-102-generic",
}
READY = [{"type": "Ready", "status": "True"}]


def item(
    name: str = "gpu-1",
    labels: dict[str, str] | None = None,
    capacity: dict[str, object] | None = None,
    spec: dict[str, object] | None = None,
    conditions: list[dict[str, str]] | None = None,
) -> dict[str, object]:
    return {
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec or {},
        "status": {
            "capacity": {"cpu": "64", "memory": "1073741824Ki", **(capacity or {})},
            "conditions": READY if conditions is None else conditions,
            "nodeInfo": INFO,
        },
    }


def read(*items: dict[str, object]) -> Inventory:
    return read_kubernetes_nodes(json.dumps({"kind": "List", "items": items}), "nodes.json")


def read_one(**parts: object) -> InventoryNode:
    [node] = read(item(**parts)).nodes  # pyright: ignore[reportArgumentType]
    return node


def test_the_gpu_operator_names_the_gpu_and_its_software():
    node = read_one(
        labels={
            "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
            "nvidia.com/gpu.count": "8",
            "nvidia.com/cuda.driver.major": "535",
            "nvidia.com/cuda.driver.minor": "104",
            "nvidia.com/cuda.driver.rev": "05",
            "nvidia.com/cuda.runtime.major": "12",
            "nvidia.com/cuda.runtime.minor": "2",
        },
        capacity={"nvidia.com/gpu": "8"},
    )
    assert (node.accelerator, node.gpus, node.cpus) == ("NVIDIA-H100-80GB-HBM3", 8, 64)
    assert node.memory_gib == 1024
    software = node.software
    assert (software.driver, software.cuda) == ("535.104.05", "12.2")
    assert (software.os, software.kernel) == ("Ubuntu 22.04.4 LTS", "5.15.0-102-generic")
    assert software.container_runtimes == ("containerd 1.7.13",)
    assert software.orchestrators == ("kubelet v1.29.3",)


@pytest.mark.parametrize(
    ("labels", "capacity", "accelerator", "gpus"),
    [
        (
            {"cloud.google.com/gke-accelerator": "nvidia-l4"},
            {"nvidia.com/gpu": "2"},
            "nvidia-l4",
            2,
        ),
        ({"amd.com/gpu.product-name": "MI300X"}, {"amd.com/gpu": 8}, "MI300X", 8),
        (
            {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice"},
            {"google.com/tpu": "4"},
            "tpu-v5-lite-podslice",
            4,
        ),
        (
            {"node.kubernetes.io/instance-type": "trn1n.32xlarge"},
            {"aws.amazon.com/neuron": "16"},
            "trn1",
            16,
        ),
        ({}, {"nvidia.com/gpu": "4"}, None, 4),
        ({}, {"nvidia.com/gpu": "0"}, None, 0),
        (
            {"nvidia.com/gpu.product": "Tesla-T4-SHARED", "nvidia.com/gpu.replicas": "10"},
            {"nvidia.com/gpu": "20"},
            "Tesla-T4",
            2,
        ),
        (
            {
                "nvidia.com/gpu.product": "Tesla-T4-SHARED",
                "nvidia.com/gpu.replicas": "4",
                "nvidia.com/gpu.count": "1",
            },
            {"nvidia.com/gpu.shared": "4"},
            "Tesla-T4",
            1,
        ),
        (
            {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"},
            {"nvidia.com/gpu": "56"},
            "NVIDIA-A100-SXM4-80GB",
            8,
        ),
        (
            {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.20gb"},
            {"nvidia.com/gpu": "16"},
            "NVIDIA-A100-SXM4-80GB",
            4,
        ),
        (
            {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"},
            {"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "56"},
            "NVIDIA-H100-80GB-HBM3",
            8,
        ),
    ],
)
def test_devices_are_counted_as_whole_accelerators(
    labels: dict[str, str], capacity: dict[str, object], accelerator: str | None, gpus: int
):
    node = read_one(labels=labels, capacity=capacity)
    assert (node.accelerator, node.gpus) == (accelerator, gpus)


def test_zone_and_rack_set_the_place_and_custom_labels_are_kept():
    node = read_one(
        labels={
            "topology.kubernetes.io/region": "eu-west",
            "topology.kubernetes.io/zone": "eu-west-1",
            "topology.kubernetes.io/rack": "r7",
            "kubernetes.io/hostname": "gpu-1",
            "feature.node.kubernetes.io/cpu-model.id": "143",
            "node.kubernetes.io/instance-type": "p5.48xlarge",
            "example.org/tier": "gold",
            "team": "vision",
        }
    )
    assert (node.site, node.rack) == ("eu-west-1", "r7")
    assert node.labels == {
        "region": "eu-west",
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "example.org/tier": "gold",
        "team": "vision",
    }


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"spec": {"unschedulable": True}}, "cordoned"),
        (
            {"conditions": [{"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}]},
            "not ready: NodeStatusUnknown",
        ),
        (
            {
                "spec": {
                    "taints": [
                        {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
                    ]
                }
            },
            "tainted node-role.kubernetes.io/control-plane",
        ),
        ({"spec": {"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}}, ""),
        ({}, ""),
    ],
)
def test_cordoned_unready_and_reserved_nodes_are_not_usable(parts: dict[str, object], why: str):
    node = read_one(**parts)
    assert (node.usable, node.why_unusable) == (not why, why)


def test_taints_that_only_choose_the_work_are_labels():
    taints = [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"},
        {"key": "dedicated", "effect": "NoExecute"},
    ]
    node = read_one(spec={"taints": taints})
    assert node.labels["taints"] == "dedicated:NoExecute,nvidia.com/gpu=present:NoSchedule"


@pytest.mark.parametrize(
    ("memory", "gib"),
    [("1048576Ki", 1), ("512Mi", 0.5), ("2Ti", 2048), (1073741824, 1), ("1e9", 1e9 / 2**30)],
)
def test_quantities_have_their_units(memory: object, gib: float):
    assert read_one(capacity={"memory": memory}).memory_gib == pytest.approx(gib)


def test_fractions_of_a_cpu_are_rounded():
    assert read_one(capacity={"cpu": "63500m"}).cpus == 64


def test_a_single_node_reads_too():
    assert read_kubernetes_nodes(json.dumps(item()), "node.json").nodes[0].name == "gpu-1"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "syntax"),
        ("NAME STATUS", "syntax"),
        ("[]", "not-a-table"),
        ("{}", "not-kubernetes-nodes"),
        ('{"items": [{"kind": "Pod", "metadata": {"name": "a"}}]}', "not-kubernetes-nodes"),
        ('{"items": []}', "no-nodes"),
        ('{"items": [{"metadata": {}}]}', "bad-node"),
        (json.dumps({"items": [item(), item()]}), "duplicate-name"),
        (json.dumps({"items": [item(capacity={"memory": "lots"})]}), "wrong-value"),
        (json.dumps({"items": [item(capacity={"memory": "9e99"})]}), "bad-node"),
        (json.dumps({"items": [item(capacity={"nvidia.com/gpu": "-1"})]}), "wrong-value"),
    ],
)
def test_bad_input_names_the_file_and_the_error(text: str, code: str):
    with pytest.raises(InputError) as caught:
        read_kubernetes_nodes(text, "saved.json")
    assert caught.value.code == code
    assert caught.value.file == "saved.json"
    assert caught.value.hint
