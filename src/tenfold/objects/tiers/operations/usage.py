"""What each tier and backend holds, and where the shards of an object are."""

from typing import TYPE_CHECKING

import msgspec

from tenfold.objects.blobs.layout import parse_layout
from tenfold.objects.blobs.scanning import ShardState
from tenfold.objects.blobs.source import shard_data_bytes
from tenfold.objects.catalog.buckets import find_bucket
from tenfold.objects.catalog.moves import Moves
from tenfold.objects.catalog.versions import find_version
from tenfold.objects.tiers.backend_states import BackendStates, Use
from tenfold.objects.tiers.operations.progress import pages

if TYPE_CHECKING:
    from tenfold.objects.blobs.store import BlobStore
    from tenfold.objects.catalog.catalog import Catalog


class BackendUsage(msgspec.Struct):
    """A backend and what live blobs have on it."""

    name: str
    domain: str
    weight: float
    use: Use
    present: bool
    shards: int = 0
    stored_bytes: int = 0


class TierUsage(msgspec.Struct):
    """A tier and what is in it."""

    name: str
    layout: str
    backends: list[BackendUsage]
    new_blobs_go_to: str
    blobs: int = 0
    bytes: int = 0
    missing_shards: int = 0


async def usage(store: "BlobStore", states: BackendStates, moves: Moves) -> list[TierUsage]:
    """Return the tiers, fastest first, with what live blobs hold."""
    known = states.read()
    tiers = {
        tier.name: TierUsage(
            tier.name,
            tier.coding.text().partition(";")[0],
            [
                BackendUsage(
                    slot.backend.name,
                    slot.domain,
                    slot.weight,
                    known[slot.backend.name].use,
                    not hasattr(slot.backend, "problem"),
                )
                for slot in tier.slots
            ],
            store.target(tier.name),
        )
        for tier in store.tiers.values()
    }
    backends = {one.name: one for tier in tiers.values() for one in tier.backends}
    async for page in pages(moves):
        for live in page:
            layout = parse_layout(live.ref.layout)
            tier = tiers.get(live.ref.tier)
            if tier is not None:
                tier.blobs += 1
                tier.bytes += live.ref.size_bytes
                tier.missing_shards += sum(one is None for one in layout.at)
            for position in layout.at:
                if position is not None and position.backend in backends:
                    backend = backends[position.backend]
                    backend.shards += 1
                    backend.stored_bytes += shard_data_bytes(layout.coding, live.ref.size_bytes)
    return list(tiers.values())


class BlobPlace(msgspec.Struct):
    """A blob of an object and the state of each shard."""

    blob: str
    tier: str
    layout: str
    size_bytes: int
    placement: list[str]
    """Where placement wants the shards now, in any order."""
    shards: list[ShardState]


class ObjectPlace(msgspec.Struct):
    """An object, where it is, and the rule that put it there."""

    bucket: str
    key: str
    version: str
    storage_class: str
    modified_ms: int
    blobs: list[BlobPlace]


async def locate(
    store: "BlobStore", catalog: "Catalog", bucket: str, key: str, version: str = ""
) -> ObjectPlace | None:
    """Return where an object is, after reading all of its shards; None if there is none."""
    found = find_bucket(catalog.reader, bucket)
    record = None if found is None else find_version(catalog.reader, found.id, key, version)
    if record is None or record.is_marker:
        return None
    blobs: list[BlobPlace] = []
    for part in record.parts:
        tier = store.tiers.get(part.ref.tier)
        blobs.append(
            BlobPlace(
                part.ref.id,
                part.ref.tier,
                parse_layout(part.ref.layout).coding.text().partition(";")[0],
                part.ref.size_bytes,
                [] if tier is None else tier.placement(part.ref.id),
                await store.verify(part.ref),
            )
        )
    return ObjectPlace(bucket, key, record.version, record.storage_class, record.modified_ms, blobs)
