"""A node of the running fleet: one machine, what it holds and where it stands."""

from typing import Literal

from msgspec import Struct

from tenfold.model.ids import DomainId, NodeId, PoolId, SiteId

NodeState = Literal["up", "cordoned", "down"]


class Node(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """What does not change while a node is up."""

    id: NodeId
    pool: PoolId
    site: SiteId
    accelerator: str = ""
    gpus: int = 0
    cpus_milli: int = 0
    """0 means that CPUs are not counted here."""
    memory_mib: int = 0
    """0 means that memory is not counted here."""
    rack: str = ""
    leaf: str = ""
    pod: str = ""
    scaleup: str = ""
    """Its scale-up domain, where that is larger than a node."""
    tags: tuple[str, ...] = ()
    """Residency, certifications and use: what a job may need or avoid."""
    watts_idle: int = 0
    watts_per_gpu: int = 0
    rack_watts: int = 0
    """What its rack may draw; 0 means that the rack sets no limit."""
    domains: tuple[DomainId, ...] = ()
    """Every failure domain it stands in, innermost first."""
