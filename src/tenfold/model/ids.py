"""Ids as distinct types, so a rack id cannot be passed as a node id."""

from typing import Annotated, NewType

from msgspec import Meta

SiteId = NewType("SiteId", str)
PoolId = NewType("PoolId", str)
NodeId = NewType("NodeId", str)
RackId = NewType("RackId", str)
FabricId = NewType("FabricId", str)
DomainId = NewType("DomainId", str)
TierId = NewType("TierId", str)
TeamId = NewType("TeamId", str)
JobId = NewType("JobId", str)
ServiceId = NewType("ServiceId", str)
AcceleratorId = NewType("AcceleratorId", str)

Name = Annotated[str, Meta(min_length=1, max_length=200)]
FolderName = Annotated[
    str, Meta(min_length=1, max_length=80, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
]
"""Pattern of job and team names: they become folder names."""
