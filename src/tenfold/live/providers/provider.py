"""The contract of a provider: rent nodes, list them, give them back.

- `rent` is all or nothing. It raises `NoCapacity` if the zone has none, so that another zone can
  be tried, and `Unreachable` if nobody knows what happened; `instances` then tells.
- `instances` lists what is paid for, also what another process rented under the same name.
- `release` may be repeated: an instance that is gone already is no error.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

from tenfold.model.errors import Unreachable

InstanceState = Literal["starting", "running", "stopping"]


class Instance(Struct, frozen=True, kw_only=True):
    """A rented node, as the provider sees it."""

    id: str
    zone: str
    state: InstanceState
    address: str = ""
    """Where it answers, once it runs."""


class NoCapacity(Unreachable):
    """A zone has no capacity now."""

    def __init__(self, zone: str, said: str) -> None:
        super().__init__(
            "no-capacity",
            f"zone `{zone}` has no capacity: {said}",
            "try another zone, or this one later",
        )


class Provider(Protocol):
    """Rents out nodes."""

    name: str

    def rent(self, zone: str, nodes: int) -> tuple[str, ...]:
        """Rent nodes in a zone and return their ids."""
        ...

    def instances(self) -> tuple[Instance, ...]:
        """Return every node that is rented, in order of id."""
        ...

    def release(self, ids: Sequence[str]) -> None:
        """Give nodes back."""
        ...
