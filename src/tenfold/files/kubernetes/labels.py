"""Read topology, software versions and scheduling labels from the labels of a Kubernetes node.

A node has dozens of labels that repeat its hardware or are unique to it; only labels that
people use for scheduling are kept.
"""

from collections.abc import Sequence

from tenfold.files.core.document import Table
from tenfold.files.core.export_json import text_at
from tenfold.model.fleet.inventory import SoftwareFacts

_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")
_REGIONS = ("topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region")
_RACKS = (
    "topology.kubernetes.io/rack",
    "topology.rook.io/rack",
    "failure-domain.beta.kubernetes.io/rack",
    "kubernetes.io/rack",
    "rack",
)
_KEPT = (
    "node.kubernetes.io/instance-type",
    "cloud.google.com/gke-nodepool",
    "cloud.google.com/gke-tpu-topology",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "nvidia.com/mig.config",
    "nvidia.com/gpu.sharing-strategy",
)
# Prefixes of labels set by clouds and operators; other labels are set by the cluster's admins.
_MACHINE_MADE = (
    "k8s.io",
    "kubernetes.io",
    "nvidia.com",
    "amd.com",
    "google.com",
    "amazonaws.com",
    "azure.com",
    "k8s.aws",
    "projectcalico.org",
    "cilium.io",
)


def texts_of(table: Table) -> dict[str, str]:
    """Return the labels whose values are strings."""
    return {key: value for key, value in table.items() if isinstance(value, str)}


def place_of(labels: dict[str, str]) -> tuple[str | None, str | None]:
    """Return the site (zone, else region) and the rack from labels."""
    return _first(labels, (*_ZONES, *_REGIONS)), _first(labels, _RACKS)


def kept_labels(labels: dict[str, str], taints: str) -> dict[str, str]:
    """Return the labels used for scheduling, with the region and taints."""
    kept = {key: value for key, value in labels.items() if _is_kept(key) and value}
    region = _first(labels, _REGIONS)
    if region:
        kept["region"] = region
    if taints:
        kept["taints"] = taints
    return kept


def _is_kept(key: str) -> bool:
    if key in _KEPT:
        return True
    if key in _RACKS:
        return False
    prefix = key.rpartition("/")[0]
    return not any(prefix == made or prefix.endswith(f".{made}") for made in _MACHINE_MADE)


def taint_text(taints: Sequence[Table]) -> str:
    """Return taints as `kubectl` writes them, sorted."""
    texts: list[str] = []
    for taint in taints:
        value = text_at(taint, "value")
        key = text_at(taint, "key") + (f"={value}" if value else "")
        texts.append(f"{key}:{text_at(taint, 'effect')}")
    return ",".join(sorted(texts))


def software_of(labels: dict[str, str], system: Table) -> SoftwareFacts:
    """Return the versions that the kubelet and the GPU operator report."""
    kubelet = text_at(system, "kubeletVersion")
    runtime = text_at(system, "containerRuntimeVersion").replace("://", " ")
    return SoftwareFacts(
        os=text_at(system, "osImage"),
        kernel=text_at(system, "kernelVersion"),
        driver=labels.get("nvidia.com/cuda.driver-version.full")
        or _dotted(labels, "nvidia.com/cuda.driver"),
        cuda=labels.get("nvidia.com/cuda.runtime-version.full")
        or _dotted(labels, "nvidia.com/cuda.runtime"),
        rocm=labels.get("amd.com/gpu.driver-version", ""),
        container_runtimes=(runtime,) if runtime else (),
        orchestrators=(f"kubelet {kubelet}",) if kubelet else (),
    )


def _dotted(labels: dict[str, str], stem: str) -> str:
    parts = (labels.get(f"{stem}.{part}", "") for part in ("major", "minor", "rev"))
    return ".".join(part for part in parts if part)


def _first(labels: dict[str, str], keys: Sequence[str]) -> str | None:
    return next((labels[key] for key in keys if labels.get(key)), None)
