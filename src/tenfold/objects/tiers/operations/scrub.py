"""Read every shard, repair what is damaged or missing, and remove files that no row names."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import msgspec

from tenfold.objects.blobs.backend import Backend, Found
from tenfold.objects.blobs.layout import Layout, parse_layout, parse_shard_name
from tenfold.objects.blobs.scanning import ShardState
from tenfold.objects.blobs.tier import Tier
from tenfold.objects.catalog.moves import LiveBlob
from tenfold.objects.tiers.mover import Mover
from tenfold.objects.tiers.operations.progress import Progress, for_each_live, pages
from tenfold.objects.tiers.relocation import moves_away

GARBAGE_AGE_MS = 86_400_000
"""Younger files may belong to a write that has not reached its row."""


class ScrubReport(msgspec.Struct):
    """What a scrub found and did."""

    progress: Progress
    damaged: int = 0
    missing: int = 0
    unwritten: int = 0
    unreachable: int = 0
    repaired: int = 0
    lost: list[str] = []
    """Keys of objects with too few intact shards."""
    garbage: int = 0
    garbage_bytes: int = 0


async def scrub(mover: Mover, tier: str = "") -> ScrubReport:
    """Verify every shard of the live blobs, and write bad and missing ones again."""
    report = ScrubReport(Progress())

    async def step(live: LiveBlob) -> None:
        if tier and live.ref.tier != tier:
            return
        states = await mover.store.verify(live.ref)
        await mover.pace.spend(live.ref.size_bytes)
        _count(report, states)
        layout = parse_layout(live.ref.layout)
        good = sum(state.state == "good" for state in states)
        if good < layout.coding.data_shards:
            report.lost.append(live.key)
            bad = "; ".join(f"{one.backend}: {one.problem}" for one in states if one.problem)
            report.progress.fail(live, f"{good} of {layout.coding.data_shards} shards ({bad})")
            return
        targets = _targets(mover.store.tiers.get(live.ref.tier), live.ref.id, layout, states)
        if targets:
            outcome = await mover.move_shards(live, targets)
            report.progress.add(live, outcome)
            report.repaired += len(targets) if outcome.result == "moved" else 0

    await for_each_live(mover.moves, report.progress, step)
    return report


async def remove_garbage(mover: Mover, report: ScrubReport, before_ms: int) -> None:
    """Remove files that no row and no delayed delete names and that are older than `before_ms`."""
    named: set[tuple[str, str]] = set()
    # The files first: what is written between the two lists has a row that is seen, or is young.
    found = [
        (backend, one.name, one.size_bytes)
        for backend in mover.store.backends.values()
        for one in await mover.store.in_worker(lambda b=backend: _old_shards(b, before_ms))
    ]
    async for page in pages(mover.moves):
        for live in page:
            named.update((backend, name) for _, backend, name in mover.store.shards(live.ref))
    for _, ref in mover.moves.due(1 << 62, 1 << 31):
        named.update((backend, name) for _, backend, name in mover.store.shards(ref))
    for backend, name, size_bytes in found:
        if (backend.name, name) not in named:
            with suppress(OSError):
                await mover.store.in_worker(lambda b=backend, n=name: b.delete(n))
                report.garbage += 1
                report.garbage_bytes += size_bytes
    for backend in mover.store.backends.values():
        with suppress(OSError):
            report.garbage += await mover.store.in_worker(
                lambda b=backend: b.remove_partial(before_ms)
            )


def _old_shards(backend: Backend, before_ms: int) -> list[Found]:
    try:
        return [
            found
            for found in backend.walk()
            if found.changed_ms < before_ms and parse_shard_name(found.name) is not None
        ]
    except OSError:
        return []


def _count(report: ScrubReport, states: Sequence[ShardState]) -> None:
    report.damaged += sum(one.state == "damaged" for one in states)
    report.missing += sum(one.state == "missing" for one in states)
    report.unwritten += sum(one.state == "unplaced" for one in states)
    report.unreachable += sum(one.state == "unreachable" for one in states)


def _targets(
    tier: Tier | None, blob: str, layout: Layout, states: Sequence[ShardState]
) -> Mapping[int, str]:
    """Return where to write bad shards again: in their place, or where their backend is not used.

    Shards on a backend that does not answer stay: it may come back. `rebuild` gives them up.
    """
    if tier is None:
        return {}
    accepting = {slot.backend.name for slot in tier.slots if slot.accepting}
    again: dict[int, str] = {}
    leaving: list[str] = []
    for one in states:
        if one.state in ("damaged", "missing"):
            if one.backend in accepting:
                again[one.index] = one.backend
            else:
                leaving.append(one.backend)
    elsewhere = moves_away(tier, blob, layout, leaving)
    return {**elsewhere, **again}
