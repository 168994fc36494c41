"""Which service a job is a replica of."""

from msgspec import Struct


class ReplicaRef(Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The service and revision of a replica, and the port where it listens."""

    service: str
    revision: str
    port: int
