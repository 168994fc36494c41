"""Nodes as reported by a scheduler, an export or the machine itself."""

from msgspec import Struct

THIS_MACHINE = "this machine"
"""The source of an inventory that was not read from a file."""


class SoftwareFacts(Struct, frozen=True, kw_only=True):
    """Software versions on a node; an empty string means not found."""

    os: str = ""
    kernel: str = ""
    driver: str = ""
    cuda: str = ""
    nccl: str = ""
    rocm: str = ""
    container_runtimes: tuple[str, ...] = ()
    orchestrators: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ()


class InventoryNode(Struct, frozen=True, kw_only=True):
    """One node of an existing cluster, as its source describes it."""

    name: str
    accelerator: str | None = None
    gpus: int = 0
    cpus: int = 1
    memory_gib: float = 0.0
    rack: str | None = None
    site: str | None = None
    labels: dict[str, str] = {}
    usable: bool = True
    why_unusable: str = ""
    software: SoftwareFacts = SoftwareFacts()


class Inventory(Struct, frozen=True, kw_only=True):
    """The nodes that one source reported, with notes on what is missing."""

    source: str
    name: str
    nodes: tuple[InventoryNode, ...]
    notes: tuple[str, ...] = ()
    format: str = ""
    """What the source was read as, where several formats are possible."""
