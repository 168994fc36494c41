"""Move a blob: copy, verify, swap the row if it still names the old blob, delete the old one later.

A crash at any step leaves the row with a blob that is whole, and at worst files that no row names;
scrub removes those. Only one process moves at a time: `mover_lock`.
"""

import fcntl
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from tenfold.model.errors import Refused, TenfoldError
from tenfold.objects.blobs.layout import parse_layout
from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.blobs.source import shard_data_bytes
from tenfold.objects.blobs.store import BlobStore
from tenfold.objects.blobs.trailer import DamagedShard
from tenfold.objects.catalog.moves import LiveBlob, Moves
from tenfold.objects.tiers.pace import Pace
from tenfold.objects.tiers.rewriting import replaced_shards, rewrite_shards

GRACE_MS = 600_000
"""How long a replaced blob stays: longer than a reader takes from its row to its open files."""

Result = Literal["moved", "gone", "failed"]


class Outcome(msgspec.Struct, frozen=True):
    """What became of a move; `gone` says that the object was replaced or deleted meanwhile."""

    result: Result
    ref: BlobRef
    bytes_written: int = 0
    problem: str = ""


class Mover:
    """Moves blobs of a catalogue."""

    def __init__(
        self,
        store: BlobStore,
        moves: Moves,
        pace: Pace,
        now_ms: Callable[[], int],
        grace_ms: int = GRACE_MS,
    ) -> None:
        self.store = store
        self.moves = moves
        self.pace = pace
        self.now_ms = now_ms
        self._grace_ms = grace_ms

    async def move_shards(self, live: LiveBlob, targets: Mapping[int, str]) -> Outcome:
        """Move or rebuild shards of a blob, by index, on other backends of its tier."""
        try:
            changed = await rewrite_shards(self.store, live.ref, targets, self.pace)
        except (OSError, DamagedShard, TenfoldError) as error:
            return Outcome("failed", live.ref, problem=str(error))
        return await self._swap(live, changed)

    async def move_blob(self, live: LiveBlob, tier: str) -> Outcome:
        """Move a blob to another tier."""
        try:
            copy = await self._copy(live.ref, tier)
        except (OSError, DamagedShard, TenfoldError) as error:
            return Outcome("failed", live.ref, problem=str(error))
        return await self._swap(live, copy)

    async def _copy(self, ref: BlobRef, tier: str) -> BlobRef:
        description = await self.store.describe(ref)
        writer = self.store.create_copy(ref, tier)
        reading = await self.store.open(ref, 0, ref.size_bytes)
        try:
            async for chunk in reading.chunks():
                await writer.write(chunk)
                await self.pace.spend(len(chunk))
        except BaseException:
            await writer.abort()
            raise
        finally:
            await reading.close()
        copy = await writer.commit(description)
        try:
            await self._verify(ref, copy)
        except BaseException:
            await self.store.delete(copy)
            raise
        return copy

    async def _verify(self, ref: BlobRef, copy: BlobRef) -> None:
        if (copy.size_bytes, copy.crc32c) != (ref.size_bytes, ref.crc32c):
            raise DamagedShard("the copy does not match the checksum of the blob")
        for state in await self.store.verify(copy):
            if state.state not in ("good", "unplaced"):
                raise DamagedShard(f"the copy on `{state.backend}` is {state.state}")
        await self.pace.spend(copy.size_bytes)

    async def _swap(self, live: LiveBlob, new: BlobRef) -> Outcome:
        name = (live.bucket, live.key, live.version)
        dead = replaced_shards(live.ref, new)
        due_ms = self.now_ms() + self._grace_ms
        if not await self.moves.swap(name, live.ref, new, dead, due_ms):
            added = replaced_shards(new, live.ref)
            if added is not None:
                await self.store.delete(added)
            return Outcome("gone", live.ref)
        await self._describe_again(live.ref, new)
        return Outcome("moved", new, bytes_written=bytes_added(live.ref, new))

    async def _describe_again(self, old: BlobRef, new: BlobRef) -> None:
        """Carry over a description that was changed while the blob was copied."""
        try:
            latest = await self.store.describe(old)
            if latest != await self.store.describe(new):
                await self.store.redescribe(new, latest)
        except (OSError, DamagedShard):
            return


def bytes_added(old: BlobRef, new: BlobRef) -> int:
    """Return the bytes of data shards and parity that a move wrote."""

    written = replaced_shards(new, old)
    if written is None:
        return 0
    layout = parse_layout(written.layout)
    shards = sum(position is not None for position in layout.at)
    return shards * shard_data_bytes(layout.coding, new.size_bytes)


async def delete_due(store: BlobStore, moves: Moves, now_ms: int) -> int:
    """Delete the blobs whose delay is over; return how many. What fails stays in the queue."""
    deleted = 0
    while due := moves.due(now_ms):
        done: list[int] = []
        for number, ref in due:
            try:
                await store.delete(ref)
            except OSError:
                continue
            done.append(number)
        if not done:
            break
        await moves.buried(done)
        deleted += len(done)
    return deleted


@contextmanager
def mover_lock(state_folder: Path) -> Generator[None]:
    """Hold the right to move blobs; raise if another process has it."""
    state_folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(state_folder / "mover.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Refused(
                "mover-busy",
                "another process is moving or scrubbing objects in this store",
                "wait until it is done; every such command can be stopped and run again",
            ) from error
        yield
    finally:
        os.close(descriptor)
