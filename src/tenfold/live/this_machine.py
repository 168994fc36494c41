"""Discover this machine: CPUs, memory, GPUs and software.

Nothing here may fail because something is missing: notes say what was not found.
"""

import platform

import psutil

from tenfold.live.gpus import GpuFacts, read_gpus
from tenfold.live.software import (
    container_runtimes,
    cuda_toolkit_version,
    driver_version,
    frameworks,
    nccl_version,
    orchestrators,
    os_name,
    rocm_version,
)
from tenfold.model.fleet.inventory import THIS_MACHINE, Inventory, InventoryNode, SoftwareFacts

GIB = 1024**3


def discover_this_machine() -> Inventory:
    """Return this machine as an inventory of one node."""
    gpus = read_gpus()
    notes = list(gpus.notes)
    accelerator, count = _most(gpus.names)
    if count < len(gpus.names):
        notes.append(f"GPUs other than the {count} `{accelerator}` are not in the pool")
    name = platform.node().partition(".")[0] or "localhost"
    node = InventoryNode(
        name=name,
        accelerator=accelerator,
        gpus=count,
        cpus=psutil.cpu_count(logical=True) or 1,
        memory_gib=psutil.virtual_memory().total / GIB,
        labels={"arch": platform.machine()} if platform.machine() else {},
        software=_software(gpus),
    )
    return Inventory(source=THIS_MACHINE, name=name, nodes=(node,), notes=tuple(notes))


def _most(names: tuple[str, ...]) -> tuple[str | None, int]:
    """Return the most common GPU type: a pool has one type."""
    kinds = list(dict.fromkeys(names))
    if not kinds:
        return None, 0
    most = max(kinds, key=names.count)
    return most, names.count(most)


def _software(gpus: GpuFacts) -> SoftwareFacts:
    return SoftwareFacts(
        os=os_name(),
        kernel=platform.release(),
        driver=gpus.driver or driver_version(),
        cuda=gpus.cuda or cuda_toolkit_version(),
        nccl=nccl_version(),
        rocm=rocm_version(),
        container_runtimes=container_runtimes(),
        orchestrators=orchestrators(),
        frameworks=frameworks(),
    )
