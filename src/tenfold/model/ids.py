"""Ids as distinct types, so a rack id cannot be passed as a node id."""

from typing import NewType

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
