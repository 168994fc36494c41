"""A tier as the blob layer uses it: its coding, and its backends with their weight and domain."""

from collections.abc import Sequence

import msgspec

from tenfold.objects.blobs.backend import Backend
from tenfold.objects.blobs.layout import Coding
from tenfold.objects.blobs.placement import Site, choose, substitutes


class Slot(msgspec.Struct, frozen=True):
    """A backend in a tier. New shards go to it only while `accepting`."""

    backend: Backend
    domain: str
    weight: float = 1.0
    accepting: bool = True

    @property
    def site(self) -> Site:
        """Return what placement needs to know."""
        return Site(self.backend.name, self.domain, self.weight if self.accepting else 0.0)


class Tier(msgspec.Struct, frozen=True):
    """A named set of backends with one coding."""

    name: str
    coding: Coding
    slots: tuple[Slot, ...]

    @property
    def per_domain_max(self) -> int:
        """Return how many shards of one blob a domain may hold, so that its loss loses nothing."""
        return max(1, self.coding.parity_shards)

    @property
    def written_min(self) -> int:
        """Return the shards that a write needs: it must survive the loss of one more."""
        return self.coding.data_shards + min(1, self.coding.parity_shards)

    def sites(self) -> list[Site]:
        """Return the backends that take new shards."""
        return [slot.site for slot in self.slots if slot.accepting]

    def placement(self, blob: str) -> list[str]:
        """Return the backends for the shards of a new blob."""
        return choose(blob, self.coding.shards, self.sites(), self.per_domain_max)

    def substitutes(self, blob: str, used: Sequence[str]) -> list[str]:
        """Return backends that may take a shard that another did not, best first."""
        accepting = {site.name for site in self.sites()}
        all_sites = [slot.site for slot in self.slots]
        ranked = substitutes(blob, all_sites, used, self.per_domain_max)
        return [name for name in ranked if name in accepting]
