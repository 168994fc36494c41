"""A node of the running fleet: its hardware and its place in the topology."""

from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from tenfold.model.ids import DomainId, NodeId, PoolId, SiteId

NodeState = Literal["up", "cordoned", "down"]
RecordedState = Literal["up", "cordoned", "down", "left"]
"""Of a node that ever joined."""


class Node(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """The properties of a node that do not change while it is up."""

    id: NodeId
    pool: PoolId
    site: SiteId
    accelerator: str = ""
    gpus: int = 0
    cpus_milli: int = 0
    """0 means that CPUs are not tracked."""
    memory_mib: int = 0
    """0 means that memory is not tracked."""
    rack: str = ""
    leaf: str = ""
    pod: str = ""
    scaleup: str = ""
    """Its scale-up domain, if larger than the node."""
    tags: tuple[str, ...] = ()
    """Residency, certifications and use: what a job may require or avoid."""
    watts_idle: int = 0
    watts_per_gpu: int = 0
    rack_watts: int = 0
    """The power limit of its rack; 0 means no limit."""
    rack_watts_always: bool | UnsetType = UNSET
    """Set where `rack_watts` holds under every policy. For nodes without it, of journals of earlier
    versions, only the policy `governed` applies it."""
    domains: tuple[DomainId, ...] = ()
    """The failure domains that contain it, innermost first."""
