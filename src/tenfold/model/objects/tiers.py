"""Tiers as a tier file describes them: backends, weights, failure domains and redundancy."""

from collections import Counter
from typing import Annotated, Literal

from msgspec import Meta, Struct

TierName = Literal["gpu-direct", "hot", "warm", "cold"]
TIER_NAMES: tuple[TierName, ...] = ("gpu-direct", "hot", "warm", "cold")
"""From the fastest to the cheapest."""

BackendName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
Erasure = Annotated[str, Meta(pattern=r"^[1-9][0-9]?\+[1-9]$")]


class BackendSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A place for shards: a directory, or a bucket and prefix of an object store."""

    name: BackendName
    directory: str | None = None
    url: str | None = None
    options: dict[str, str] = {}
    weight: Annotated[float, Meta(gt=0)] = 1.0
    domain: BackendName | None = None

    @property
    def failure_domain(self) -> str:
        """Return what it fails with; by default it fails alone."""
        return self.domain or self.name


class TierSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tier: its backends, and how each blob is spread over them."""

    backends: list[BackendSpec]
    replicas: Annotated[int, Meta(ge=1, le=8)] | None = None
    erasure: Erasure | None = None

    @property
    def data_shards(self) -> int:
        """Return the shards that suffice to read a blob."""
        return int(self.erasure.split("+")[0]) if self.erasure else 1

    @property
    def parity_shards(self) -> int:
        """Return the shards that may be lost."""
        return int(self.erasure.split("+")[1]) if self.erasure else (self.replicas or 1) - 1

    @property
    def shards(self) -> int:
        """Return the shards of a blob."""
        return self.data_shards + self.parity_shards

    def shards_placeable(self) -> int:
        """Return the shards that fit if no domain may hold more than can be lost."""
        domains = Counter(backend.failure_domain for backend in self.backends)
        limit = max(1, self.parity_shards)
        return sum(min(count, limit) for count in domains.values())


class TierFile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tiers of a namespace."""

    tiers: dict[TierName, TierSpec]

    def ordered(self) -> list[tuple[TierName, TierSpec]]:
        """Return the tiers, fastest first."""
        return [(name, self.tiers[name]) for name in TIER_NAMES if name in self.tiers]
