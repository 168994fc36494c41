"""Where the members of a gang may stand: how near each other, and on which nodes at all."""

from typing import Literal

from msgspec import Struct

Level = Literal["", "scale-up", "rack", "leaf", "pod"]
"""A kind of domain, from the nearest to the widest; empty means anywhere."""
LEVELS: tuple[Level, ...] = ("scale-up", "rack", "leaf", "pod")
TopologyMode = Literal["required", "preferred", "balanced", "spread"]
"""`required`: one domain or none. `preferred`: as few domains as will do, packed.
`balanced`: equal parts on as few domains as will do. `spread`: as many domains as there are."""


class PlacementConstraints(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, gc=False):
    """What a gang asks of the places of its nodes."""

    within: Level = ""
    """The kind of domain that its members are to share, or to be spread over."""
    how: TopologyMode = "preferred"
    needs: tuple[str, ...] = ()
    """Tags that each of its nodes must bear."""
    avoids: tuple[str, ...] = ()
    """Tags that none of its nodes may bear."""

    @property
    def key(self) -> str:
        """What tells this from other wishes, in words."""
        words = [f"{self.how} {self.within}"] if self.within else []
        words += [f"+{tag}" for tag in self.needs]
        words += [f"-{tag}" for tag in self.avoids]
        return " ".join(words)
