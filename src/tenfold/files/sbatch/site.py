"""What a fleet has, as far as options of sbatch name it: types of GPUs, tags, pools and sizes."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

VIRTUAL_PREFIX = "virtual-"
"""What `tenfold up --fleet` puts before the names of pools: a script names the pool itself."""


class NodeSize(Struct, frozen=True):
    """What nodes of one kind have."""

    accelerator: str
    gpus: int
    cpus: float
    memory_gib: float = 0.0
    pool: str = ""


class NodeKind(Struct, frozen=True):
    """The nodes of one pool that keys of a job cannot tell apart."""

    pool: str = ""
    """What `tenfold sinfo` and `tenfold squeue` show as their partition."""
    accelerator: str = ""
    tags: tuple[str, ...] = ()

    def is_named(self, name: str) -> bool:
        """Return whether `-p NAME` means these nodes: by their pool, or by a tag."""
        return name in (self.pool, self.pool.removeprefix(VIRTUAL_PREFIX), *self.tags)


class Site(Struct, frozen=True):
    """What the fleet has, as far as options name it."""

    sizes: tuple[NodeSize, ...] = ()
    kinds: tuple[NodeKind, ...] = ()

    @property
    def types(self) -> tuple[str, ...]:
        """The types of GPUs."""
        return tuple(dict.fromkeys(one.accelerator for one in self.sizes if one.accelerator))

    @property
    def tags(self) -> tuple[str, ...]:
        """The tags of nodes."""
        return tuple(dict.fromkeys(tag for one in self.kinds for tag in one.tags))

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools of nodes."""
        return tuple(dict.fromkeys(one.pool for one in self.kinds if one.pool))


class Selection(Struct, frozen=True):
    """Keys of a job that select nodes."""

    needs: tuple[str, ...] = ()
    avoids: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    def admits(self, kind: NodeKind) -> bool:
        """Return whether a job with these keys may use these nodes."""
        return (
            (not self.types or kind.accelerator in self.types)
            and all(tag in kind.tags for tag in self.needs)
            and not any(tag in kind.tags for tag in self.avoids)
        )

    def text(self) -> str:
        """Return which nodes these are."""
        words = [f"{' or '.join(f'`{one}`' for one in self.types)} GPUs"] * bool(self.types)
        for tags, what in ((self.needs, "the tag"), (self.avoids, "no tag")):
            words += [f"{what} {', '.join(f'`{tag}`' for tag in tags)}"] * bool(tags)
        return f"nodes with {' and '.join(words)}" if words else "all nodes"


def selecting(site: Site, wanted: Sequence[NodeKind]) -> Selection | None:
    """Return the fewest keys that select exactly these nodes; None if no keys do."""
    for one in _selections(site, wanted):
        if all(one.admits(kind) == (kind in wanted) for kind in site.kinds):
            return one
    return None


def _selections(site: Site, wanted: Sequence[NodeKind]) -> Iterator[Selection]:
    shared = tuple(tag for tag in site.tags if all(tag in kind.tags for kind in wanted))
    absent = tuple(tag for tag in site.tags if not any(tag in kind.tags for kind in wanted))
    types = tuple(dict.fromkeys(kind.accelerator for kind in wanted))
    # Nodes without GPUs have no type that a job could name.
    usable = ((), types) if all(types) else ((),)
    yield Selection()
    yield from (Selection(needs=(tag,)) for tag in shared)
    yield from (Selection(types=one) for one in usable[1:])
    yield from (Selection(avoids=(tag,)) for tag in absent)
    for one in usable:
        yield Selection(needs=shared, types=one)
        yield Selection(needs=shared, avoids=absent, types=one)


def matching_types(word: str, types: Sequence[str]) -> list[str]:
    """Return the types that a word names: itself, or those that begin with it."""
    plain = re.sub(r"[^a-z0-9]", "", word.lower())
    names = {kind: re.sub(r"[^a-z0-9]", "", kind.lower()) for kind in types}
    same = [kind for kind, name in names.items() if name == plain]
    return same or [kind for kind, name in names.items() if plain and plain in name]
