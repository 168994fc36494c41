"""Write shards of a blob anew: copied where the old one reads well, coded from the others if not.

The new files have other names, so the old ones stay valid until the row names the new ones.
"""

from array import array
from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from tenfold.objects.blobs.backend import Backend, ShardWriting
from tenfold.objects.blobs.checksum import crc32c
from tenfold.objects.blobs.erasure import encode_stripe
from tenfold.objects.blobs.layout import Layout, Position, parse_layout, shard_name
from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.blobs.scanning import shard_state
from tenfold.objects.blobs.source import Source
from tenfold.objects.blobs.store import BlobStore
from tenfold.objects.blobs.trailer import DamagedShard, ShardHeader, Trailer, encode_trailer
from tenfold.objects.tiers.pace import Pace


async def rewrite_shards(
    store: BlobStore, ref: BlobRef, targets: Mapping[int, str], pace: Pace
) -> BlobRef:
    """Write shards, by index, to other backends; return the blob as it is then, verified.

    Raises `OSError` if a backend fails, and `BlobUnreadable` if too few shards are left.
    """
    layout = parse_layout(ref.layout)
    description = await store.describe(ref)
    writing = {
        index: _NewShard(ref, layout, index, store.backends[name])
        for index, name in targets.items()
    }
    try:
        left = [new for new in writing.values() if not await _copied(store, new, pace)]
        if left:
            await _code(store, ref, left, pace)
        for new in writing.values():
            await store.in_worker(lambda one=new: one.commit(description))
        changed = _with(ref, layout, writing)
        await _verify(store, changed, targets, pace)
    except BaseException:
        for new in writing.values():
            await store.in_worker(new.remove)
        raise
    return changed


def replaced_shards(old: BlobRef, new: BlobRef) -> BlobRef | None:
    """Return the old blob with only those shards that the new one does not name."""
    before, after = parse_layout(old.layout), parse_layout(new.layout)
    if before.coding != after.coding or old.tier != new.tier:
        return old
    at = tuple(
        position if position is not None and position not in after.at else None
        for position in before.at
    )
    if not any(at):
        return None
    return replace(old, layout=Layout(before.coding, at).text())


class _NewShard:
    """A shard that is being written again."""

    def __init__(self, ref: BlobRef, layout: Layout, index: int, backend: Backend) -> None:
        before = layout.at[index]
        known = [position.moves for position in layout.at if position is not None]
        moves = (before.moves if before is not None else max(known, default=0)) + 1
        self.position = Position(backend.name, moves)
        self.index = index
        self.ref = ref
        self.coding = layout.coding
        self._backend = backend
        self._name = shard_name(ref.id, index, moves)
        self._writing: ShardWriting | None = None
        self._blocks = array("I")
        self._bytes = 0
        self.stripes = array("I")

    def start(self) -> None:
        """Start the file, from the beginning if it was started before."""
        self.abort()
        self._writing = self._backend.create(self._name)
        self._blocks, self._bytes = array("I"), 0

    def write(self, block: bytes) -> None:
        """Append a block."""
        assert self._writing is not None
        self._writing.write(block)
        self._blocks.append(crc32c(block))
        self._bytes += len(block)

    def commit(self, description: bytes) -> None:
        """Append the trailer and make the shard durable."""
        assert self._writing is not None
        ref = self.ref
        header = ShardHeader(
            blob=ref.id,
            tier=ref.tier,
            coding=self.coding.text(),
            index=self.index,
            size_bytes=ref.size_bytes,
            crc32c=ref.crc32c,
        )
        trailer = Trailer(header, self._bytes, self._blocks, self.stripes, description)
        self._writing.write(encode_trailer(trailer))
        self._writing.commit()

    def abort(self) -> None:
        """Drop what was written."""
        if self._writing is not None:
            with suppress(OSError):
                self._writing.abort()

    def remove(self) -> None:
        """Remove the shard, committed or not."""
        self.abort()
        with suppress(OSError):
            self._backend.delete(self._name)


async def _copied(store: BlobStore, new: _NewShard, pace: Pace) -> bool:
    """Copy the old file of the shard, block by block; False if it cannot be read well."""
    source = store.sources(new.ref, parse_layout(new.ref.layout)).get(new.index)
    if source is None:
        return False
    await store.in_worker(new.start)
    try:
        trailer = await store.in_worker(lambda: source.trailer(store.trailers))
        new.stripes = trailer.stripes
        for stripe in range(len(trailer.blocks)):
            block = await store.in_worker(lambda at=stripe: source.block(at, store.trailers))
            await store.in_worker(lambda data=block: new.write(data))
            await pace.spend(len(block))
    except (OSError, DamagedShard):
        return False
    return True


async def _code(store: BlobStore, ref: BlobRef, left: list[_NewShard], pace: Pace) -> None:
    """Read the blob, which verifies it, and code the shards that could not be copied."""
    coding = parse_layout(ref.layout).coding
    for new in left:
        await store.in_worker(new.start)
        new.stripes = array("I")
    reading = await store.open(ref, 0, ref.size_bytes)
    try:
        async for stripe in reading.chunks():
            await store.in_worker(lambda data=stripe: _write_coded(data, left))
            await pace.spend(len(stripe))
    finally:
        await reading.close()
    assert all(len(new.stripes) == coding.stripes(ref.size_bytes) * coding.erasure for new in left)


def _write_coded(stripe: bytes, left: list[_NewShard]) -> None:
    coding = left[0].coding
    check = crc32c(stripe)
    fragments = encode_stripe(coding, stripe) if coding.erasure else []
    for new in left:
        if coding.erasure:
            new.stripes.append(check)
        new.write(fragments[new.index] if coding.erasure else stripe)


def _with(ref: BlobRef, layout: Layout, writing: Mapping[int, _NewShard]) -> BlobRef:
    at = [
        writing[index].position if index in writing else position
        for index, position in enumerate(layout.at)
    ]
    return replace(ref, layout=Layout(layout.coding, tuple(at)).text())


async def _verify(
    store: BlobStore, changed: BlobRef, targets: Mapping[int, str], pace: Pace
) -> None:
    layout = parse_layout(changed.layout)
    sources: Mapping[int, Source] = store.sources(changed, layout)
    for index in targets:
        source = sources[index]
        state = await store.in_worker(
            lambda i=index, one=source: shard_state(changed, layout, i, one)
        )
        await pace.spend(source.data_bytes())
        if state.state != "good":
            raise OSError(f"the new shard on `{state.backend}` is {state.state}: {state.problem}")
