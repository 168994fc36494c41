"""What a fleet has, as far as options of sbatch name it: types of GPUs, tags, pools and sizes."""

import re
from collections.abc import Sequence

from msgspec import Struct


class NodeSize(Struct, frozen=True):
    """What nodes of one kind have."""

    accelerator: str
    gpus: int
    cpus: float
    memory_gib: float = 0.0


class Site(Struct, frozen=True):
    """What the fleet has, as far as options name it."""

    sizes: tuple[NodeSize, ...] = ()
    tags: tuple[str, ...] = ()
    pools: tuple[str, ...] = ()
    """What `tenfold sinfo` and `tenfold squeue` show as partitions."""

    @property
    def types(self) -> tuple[str, ...]:
        """The types of GPUs."""
        return tuple(dict.fromkeys(one.accelerator for one in self.sizes if one.accelerator))


def matching_types(word: str, types: Sequence[str]) -> list[str]:
    """Return the types that a word names: itself, or those that begin with it."""
    plain = re.sub(r"[^a-z0-9]", "", word.lower())
    names = {kind: re.sub(r"[^a-z0-9]", "", kind.lower()) for kind in types}
    same = [kind for kind, name in names.items() if name == plain]
    return same or [kind for kind, name in names.items() if plain and plain in name]
