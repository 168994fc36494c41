"""Read the nodes of a Kubernetes cluster from `kubectl get nodes -o json`.

A device plugin may advertise one GPU several times (time slicing) or in slices (MIG), so
capacity is not the number of GPUs; labels of the GPU operator give the real count.
"""

import re

from tenfold.files.core.document import Table
from tenfold.files.core.export_json import read_json, table_at, tables_at, text_at
from tenfold.files.inventory.checks import check_inventory
from tenfold.files.kubernetes.labels import (
    kept_labels,
    place_of,
    software_of,
    taint_text,
    texts_of,
)
from tenfold.files.kubernetes.quantities import quantity_at
from tenfold.model.errors import InputError
from tenfold.model.fleet.inventory import Inventory, InventoryNode

COMMAND = "kubectl get nodes -o json"
RESOURCES = {
    "nvidia.com/gpu": ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator"),
    "nvidia.com/gpu.shared": ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator"),
    "amd.com/gpu": ("amd.com/gpu.product-name", "beta.amd.com/gpu.product-name"),
    "google.com/tpu": ("cloud.google.com/gke-tpu-accelerator",),
    "aws.amazon.com/neuron": (),
    "habana.ai/gaudi": (),
}
INSTANCE_TYPES = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_BLOCKING_TAINTS = (
    "node.kubernetes.io/not-ready",
    "node.kubernetes.io/unreachable",
    "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/out-of-service",
    "node.cloudprovider.kubernetes.io/shutdown",
    "node.cloudprovider.kubernetes.io/uninitialized",
    "node-role.kubernetes.io/control-plane",
    "node-role.kubernetes.io/master",
    "ToBeDeletedByClusterAutoscaler",
)
_MIG = re.compile(r"-MIG-(?P<slices>[1-7])g\.(?P<gb>\d{1,3})gb.*\Z")
_PRODUCT_GB = re.compile(r"(\d{1,3})GB")
_MIG_PER_GPU = {1: 7, 2: 3, 3: 2, 4: 1}


def read_kubernetes_nodes(text: str, file: str) -> Inventory:
    """Return the nodes in the output of `kubectl get nodes -o json`."""
    values = read_json(text, file, COMMAND)
    single = text_at(values, "kind") == "Node"
    if not single and not isinstance(values.get("items"), list):
        raise InputError(
            "not-kubernetes-nodes",
            f"`{file}` is JSON, but not a node or a list of nodes",
            f"export it with `{COMMAND}`",
            file=file,
        )
    items = [values] if single else tables_at(values, "items")
    for item in items:
        if text_at(item, "kind") not in ("", "Node"):
            raise InputError(
                "not-kubernetes-nodes",
                f"`{file}` lists objects of kind `{text_at(item, 'kind')[:40]}`, not nodes",
                f"export it with `{COMMAND}`",
                file=file,
            )
    notes: list[str] = []
    nodes = tuple(_node(item, file, notes) for item in items)
    check_inventory(nodes, file)
    return Inventory(source=file, name="kubernetes", nodes=nodes, notes=tuple(notes))


def _node(item: Table, file: str, notes: list[str]) -> InventoryNode:
    metadata, status = table_at(item, "metadata"), table_at(item, "status")
    name = text_at(metadata, "name")
    labels = texts_of(table_at(metadata, "labels"))
    capacity = table_at(status, "capacity")
    site, rack = place_of(labels)
    if not name:
        raise InputError(
            "bad-node",
            f"`{file}` lists a node without `metadata.name`",
            f"export it again with `{COMMAND}`",
            file=file,
        )
    accelerator, gpus = _gpus(capacity, labels, name, file, notes)
    why = _why_unusable(item)
    return InventoryNode(
        name=name,
        accelerator=accelerator,
        gpus=gpus,
        cpus=max(1, round(quantity_at(capacity, "cpu", f"node `{name}`", file))),
        memory_gib=quantity_at(capacity, "memory", f"node `{name}`", file) / 1024**3,
        rack=rack,
        site=site,
        labels=kept_labels(labels, taint_text(_taints(item))),
        usable=not why,
        why_unusable=why,
        software=software_of(labels, table_at(status, "nodeInfo")),
    )


def _gpus(
    capacity: Table, labels: dict[str, str], name: str, file: str, notes: list[str]
) -> tuple[str | None, int]:
    counts = {
        resource: round(quantity_at(capacity, resource, f"node `{name}`", file))
        for resource in RESOURCES
    }
    advertised = [resource for resource, count in counts.items() if count]
    if not advertised:
        # With the mixed MIG strategy, slices are separate resources and no GPU is advertised.
        count = _label_count(labels, "nvidia.com/gpu.count")
        mixed = any(key.startswith("nvidia.com/mig-") for key in capacity)
        return (labels.get("nvidia.com/gpu.product"), count) if mixed and count else (None, 0)
    resource = advertised[0]
    if len(advertised) > 1 and not resource.startswith("nvidia.com/"):
        notes.append(
            f"node `{name}` also has {', '.join(advertised[1:])}, ignored: a pool has one GPU type"
        )
    if not resource.startswith("nvidia.com/"):
        return _product_name(resource, labels), counts[resource]
    product = _product_name(resource, labels)
    count = sum(counts[key] for key in advertised if key.startswith("nvidia.com/"))
    return _whole_gpus(product, count, labels, name, notes)


def _product_name(resource: str, labels: dict[str, str]) -> str | None:
    for key in RESOURCES[resource]:
        if labels.get(key):
            return labels[key]
    instance = next((labels[key] for key in INSTANCE_TYPES if labels.get(key)), "")
    if resource == "aws.amazon.com/neuron":
        # The instance family identifies the part: `trn1.32xlarge` has Trainium1.
        family = re.match(r"[a-z]+[0-9]+", instance)
        return None if family is None else family[0]
    return "gaudi" if resource == "habana.ai/gaudi" else None


def _whole_gpus(
    product: str | None, count: int, labels: dict[str, str], name: str, notes: list[str]
) -> tuple[str | None, int]:
    """Return the physical GPU behind a plugin's resource, and the number of GPUs."""
    replicas = max(1, _label_count(labels, "nvidia.com/gpu.replicas"))
    base_product = None if product is None else product.removesuffix("-SHARED")
    slices = None if base_product is None else _MIG.search(base_product)
    if base_product is not None and slices is not None:
        base_product = base_product[: slices.start()]
        per_gpu = _MIG_PER_GPU.get(int(slices["slices"]), 1)
        memory = _PRODUCT_GB.search(base_product)
        if memory is not None and int(slices["gb"]):
            per_gpu = max(1, min(per_gpu, int(memory[1]) // int(slices["gb"])))
        gpus = -(-count // (per_gpu * replicas))
        notes.append(f"node `{name}` has {count} MIG slices, counted as {_gpu_count(gpus)}")
        return base_product, gpus
    stated = _label_count(labels, "nvidia.com/gpu.count")
    shared = base_product != product or replicas > 1
    if shared and count > 1:
        gpus = stated or -(-count // replicas)
        if gpus != count:
            notes.append(f"node `{name}` advertises {count} shares of {_gpu_count(gpus)}")
        return base_product, gpus
    return base_product, max(stated, count)


def _gpu_count(gpus: int) -> str:
    return "1 GPU" if gpus == 1 else f"{gpus} GPUs"


def _label_count(labels: dict[str, str], key: str) -> int:
    text = labels.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 9 else 0


def _taints(item: Table) -> list[Table]:
    return tables_at(table_at(item, "spec"), "taints")


def _why_unusable(item: Table) -> str:
    reasons: list[str] = []
    if table_at(item, "spec").get("unschedulable") is True:
        reasons.append("cordoned")
    for condition in tables_at(table_at(item, "status"), "conditions"):
        if text_at(condition, "type") == "Ready" and text_at(condition, "status") != "True":
            reason = text_at(condition, "reason")
            reasons.append(f"not ready: {reason}" if reason else "not ready")
    for taint in _taints(item):
        key = text_at(taint, "key")
        blocks = text_at(taint, "effect") in ("NoSchedule", "NoExecute")
        if blocks and key in _BLOCKING_TAINTS and not reasons:
            reasons.append(f"tainted {key}")
    return ", ".join(reasons)
