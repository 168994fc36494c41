"""Move blobs to their assigned backends: after a backend was added, or a weight changed."""

from tenfold.objects.blobs.layout import parse_layout
from tenfold.objects.catalog.moves import LiveBlob
from tenfold.objects.tiers.mover import Mover
from tenfold.objects.tiers.operations.progress import Progress, for_each_live
from tenfold.objects.tiers.relocation import wanted_moves


async def rebalance(mover: Mover, tier: str = "") -> Progress:
    """Move shards that placement wants elsewhere and write missing ones, in one tier or in all.

    Blobs with an older coding of their tier are written again with its present one.
    """
    progress = Progress()

    async def step(live: LiveBlob) -> None:
        if tier and live.ref.tier != tier:
            return
        there = mover.store.tiers.get(live.ref.tier)
        if there is None or not there.sites():
            return
        layout = parse_layout(live.ref.layout)
        if layout.coding != there.coding:
            progress.add(live, await mover.move_blob(live, live.ref.tier))
            return
        targets = wanted_moves(there, live.ref.id, layout)
        if targets:
            progress.add(live, await mover.move_shards(live, targets))

    await for_each_live(mover.moves, progress, step)
    return progress
