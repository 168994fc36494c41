"""Which shards of a blob should be on another backend, and on which. Pure."""

from collections.abc import Collection, Mapping

from tenfold.objects.blobs.layout import Layout
from tenfold.objects.blobs.tier import Tier


def wanted_moves(tier: Tier, blob: str, layout: Layout) -> dict[int, str]:
    """Return the shards that placement wants elsewhere, or that are missing, by index.

    A shard that is on any backend of the placement stays; so growth moves only what it must.
    """
    wanted = tier.placement(blob)
    held = [position.backend for position in layout.at if position is not None]
    free = [name for name in wanted if name not in held]
    moving = [
        index
        for index, position in enumerate(layout.at)
        if position is None or position.backend not in wanted
    ]
    return dict(zip(moving, free, strict=False))


def moves_away(
    tier: Tier,
    blob: str,
    layout: Layout,
    leaving: Collection[str],
    preferred: Mapping[str, str] | None = None,
) -> dict[int, str]:
    """Return where the shards on leaving backends, and the missing ones, should go, by index.

    `preferred` names a backend for the shards of another; it is used where its domain allows it.
    """
    staying = [
        position.backend
        for position in layout.at
        if position is not None and position.backend not in leaving
    ]
    moves: dict[int, str] = {}
    for index, position in enumerate(layout.at):
        if position is not None and position.backend not in leaving:
            continue
        choices = [
            name
            for name in tier.substitutes(blob, [*staying, *moves.values()])
            if name not in leaving
        ]
        if not choices:
            continue
        best = (preferred or {}).get(position.backend) if position is not None else None
        moves[index] = best if best in choices else choices[0]
    return moves
