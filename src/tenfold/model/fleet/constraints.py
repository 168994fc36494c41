"""Placement constraints of a gang: how close its nodes must be, and which nodes qualify."""

from typing import Literal

from msgspec import Struct

Level = Literal["", "scale-up", "rack", "leaf", "pod"]
"""A topology level, from the narrowest to the widest; empty means anywhere."""
LEVELS: tuple[Level, ...] = ("scale-up", "rack", "leaf", "pod")
TopologyMode = Literal["required", "preferred", "balanced", "spread"]
"""`required`: all nodes in one domain. `preferred`: as few domains as possible, packed.
`balanced`: equal parts on as few domains as possible. `spread`: as many domains as possible."""


class PlacementConstraints(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """Which nodes a gang may use, and how close together they must be."""

    within: Level = ""
    """The topology level that its nodes share, or are spread over."""
    how: TopologyMode = "preferred"
    needs: tuple[str, ...] = ()
    """Tags that each node must have."""
    avoids: tuple[str, ...] = ()
    """Tags that no node may have."""

    @property
    def key(self) -> str:
        """A short text that is unique to these constraints."""
        words = [f"{self.how} {self.within}"] if self.within else []
        words += [f"+{tag}" for tag in self.needs]
        words += [f"-{tag}" for tag in self.avoids]
        return " ".join(words)
