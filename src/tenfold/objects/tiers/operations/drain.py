"""Take backends, or a whole tier, out of use: new blobs go elsewhere, then the others follow."""

import asyncio
from collections.abc import Collection, Mapping

from msgspec.structs import replace

from tenfold.model.errors import InputError, Refused
from tenfold.objects.blobs.layout import parse_layout
from tenfold.objects.blobs.store import BlobStore
from tenfold.objects.blobs.tier import Tier
from tenfold.objects.catalog.moves import LiveBlob
from tenfold.objects.tiers.backend_states import BackendStates
from tenfold.objects.tiers.mover import Mover
from tenfold.objects.tiers.operations.progress import Progress, for_each_live, pages
from tenfold.objects.tiers.relocation import moves_away

SETTLE_S = 1.0
"""How long other processes may take to see that a backend is being drained."""
_PASSES_MAX = 20
_PARTIAL_MS = 3_600_000


def begin_drain(mover: Mover, states: BackendStates, names: Collection[str], to: str = "") -> None:
    """Record that no process may place new shards on these backends."""
    if to:
        _check_takes_over(mover.store.tier(to))
    with states.changing() as known:
        for name in names:
            if name not in known:
                raise InputError(
                    "backend-unknown",
                    f"there is no backend `{name}`",
                    f"use one of {', '.join(f'`{one}`' for one in sorted(known))}",
                )
            known[name] = replace(known[name], use="draining", to=to)
    mover.store.look_for_changes(at_once=True)


def refuse_impossible(mover: Mover, names: Collection[str]) -> None:
    """Raise if the shards of a tier cannot be placed without these backends."""
    for tier in mover.store.tiers.values():
        leaving = [slot.backend.name for slot in tier.slots if slot.backend.name in names]
        if not leaving:
            continue
        slots = tuple(slot for slot in tier.slots if slot.backend.name not in names)
        left = replace(tier, slots=slots)
        placeable = len(left.placement("0" * 32))
        if placeable < tier.coding.shards:
            raise Refused(
                "too-few-domains",
                f"without {', '.join(f'`{name}`' for name in leaving)}, tier `{tier.name}` can "
                f"place only {placeable} of the {tier.coding.shards} shards of each blob",
                "add a backend in another failure domain first, or drain the whole tier with "
                f"`tenfold objects drain {tier.name} --to TIER`",
            )


async def drain_backends(
    mover: Mover, names: Collection[str], preferred: Mapping[str, str] | None = None
) -> Progress:
    """Move every shard off these backends. `preferred` names where the shards of one should go."""
    progress = Progress()

    async def step(live: LiveBlob) -> None:
        layout = parse_layout(live.ref.layout)
        if not _is_on(live, names):
            return
        tier = mover.store.tiers[live.ref.tier]
        targets = moves_away(tier, live.ref.id, layout, names, preferred)
        left = [
            index
            for index, position in enumerate(layout.at)
            if position is not None and position.backend in names and index not in targets
        ]
        if left:
            progress.fail(live, "no other backend may take its shard")
            return
        progress.add(live, await mover.move_shards(live, targets))

    await for_each_live(mover.moves, progress, step)
    return progress


async def drain_tier(mover: Mover, tier: str, to: str) -> Progress:
    """Move every blob of a tier to another."""
    progress = Progress()

    async def step(live: LiveBlob) -> None:
        if live.ref.tier == tier:
            progress.add(live, await mover.move_blob(live, to))

    await for_each_live(mover.moves, progress, step)
    return progress


async def finish_drain(
    mover: Mover, states: BackendStates, names: Collection[str], settle_s: float = SETTLE_S
) -> int:
    """Record backends as drained if nothing is on them; return how many blobs still are."""
    await asyncio.sleep(settle_s)
    left = await blobs_on(mover, names) + await writes_to(mover, names)
    if left:
        return left
    with states.changing() as known:
        for name in names:
            known[name] = replace(known[name], use="drained")
    return 0


async def drain_fully(
    mover: Mover,
    states: BackendStates,
    names: Collection[str],
    *,
    tiers: tuple[str, str] | None = None,
    preferred: Mapping[str, str] | None = None,
    settle_s: float = SETTLE_S,
) -> tuple[Progress, int]:
    """Drain until nothing is left, or until a pass moves nothing; return what is left.

    `tiers` are a whole tier and the one that takes it over. Blobs that were being written when the
    drain began appear in a later pass.
    """
    total = Progress()
    left = 0
    for _ in range(_PASSES_MAX):
        if tiers is None:
            done = await drain_backends(mover, names, preferred)
        else:
            done = await drain_tier(mover, *tiers)
        _add(total, done)
        left = await finish_drain(mover, states, names, settle_s)
        if not left or not (done.moved or done.replaced_meanwhile or settle_s):
            break
        if not done.moved and done.failed:
            break
    return total, left


async def blobs_on(mover: Mover, names: Collection[str]) -> int:
    """Return how many live blobs have a shard on these backends."""
    count = 0
    async for page in pages(mover.moves):
        count += sum(_is_on(live, names) for live in page)
    return count


async def writes_to(mover: Mover, names: Collection[str]) -> int:
    """Return how many shards are being written to these backends now."""
    count = 0
    since_ms = mover.now_ms() - _PARTIAL_MS
    for name in names:
        backend = mover.store.backends.get(name)
        if backend is None:
            continue
        try:
            count += await mover.store.in_worker(lambda b=backend: b.partials(since_ms))
        except OSError:
            # A dead disk takes no writes.
            continue
    return count


def _check_takes_over(tier: Tier) -> None:
    """Raise if a tier cannot take new blobs: two tiers that drain into each other lose writes."""
    if len(tier.placement("0" * 32)) < tier.coding.shards:
        raise Refused(
            "tier-not-in-use",
            f"tier `{tier.name}` cannot take over: too many of its backends are drained too",
            f"put them back into use first: tenfold objects expand {tier.name}",
        )


def _is_on(live: LiveBlob, names: Collection[str]) -> bool:
    at = parse_layout(live.ref.layout).at
    return any(position is not None and position.backend in names for position in at)


def _add(total: Progress, done: Progress) -> None:
    total.blobs = done.blobs
    total.bytes_looked_at = done.bytes_looked_at
    total.moved += done.moved
    total.replaced_meanwhile += done.replaced_meanwhile
    total.bytes_written += done.bytes_written
    total.failed = done.failed
    total.problems = done.problems


def reuse_drained(store: BlobStore, states: BackendStates, tier: str = "") -> list[str]:
    """Use drained backends of the tier file again, in one tier or in all; return their names."""
    used: list[str] = []
    with states.changing() as known:
        for there in store.tiers.values():
            for slot in there.slots:
                name = slot.backend.name
                if known[name].use != "active" and tier in ("", there.name):
                    known[name] = replace(known[name], use="active", to="")
                    used.append(name)
    store.look_for_changes(at_once=True)
    return used
