"""Copies of the buckets' settings on the backends, so that a rebuilt catalogue has them.

Each bucket has one note, on one backend of every failure domain of the tier that takes new objects.
A note is only replaced while the catalogue has the bucket: an empty catalogue replaces nothing.
"""

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from tenfold.objects.blobs.backend import Backend
from tenfold.objects.blobs.store import BlobStore
from tenfold.objects.blobs.trailer import DamagedShard, open_note, seal_note
from tenfold.objects.catalog.records import Bucket, BucketSettings

_COPIES_MAX = 8


class BucketNote(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept of a bucket beside its objects."""

    team: str
    created_ms: int
    versioning: str
    settings: BucketSettings


class BucketNotes:
    """Keeps the notes as the catalogue is; call `keep` now and then."""

    def __init__(self, store: BlobStore, tier: str) -> None:
        self._store = store
        self._tier = tier
        self._written: dict[tuple[str, str], BucketNote] = {}

    async def keep(self, buckets: Sequence[Bucket], now_ms: int) -> None:
        """Write the notes that are missing or no longer true; what fails is tried next time."""
        self._store.look_for_changes()
        backends = _one_of_each_domain(self._store, self._tier)
        for bucket in buckets:
            note = BucketNote(bucket.team, bucket.created_ms, bucket.versioning, bucket.settings)
            missing = [
                one for one in backends if self._written.get((one.name, bucket.name)) != note
            ]
            if missing:
                name, work = bucket.name, (missing, note)
                done = await self._store.in_worker(lambda n=name, w=work: _write(n, *w, now_ms))
                self._written |= {(one, bucket.name): note for one in done}


def latest_note(backends: Iterable[Backend], bucket: str) -> BucketNote | None:
    """Return the latest note of a bucket that can be read. Blocks."""
    found = [one for one in (_read(backend, bucket) for backend in backends) if one is not None]
    return max(found, key=lambda one: one[0])[1] if found else None


def _one_of_each_domain(store: BlobStore, tier: str) -> list[Backend]:
    slots = store.tier(store.target(tier)).slots
    first = {slot.domain: slot.backend for slot in reversed(slots) if slot.accepting}
    return [first[domain] for domain in sorted(first)][:_COPIES_MAX]


def _write(bucket: str, backends: Sequence[Backend], note: BucketNote, now_ms: int) -> list[str]:
    """Write a note where it is not there already; return the backends that have it now."""
    done: list[str] = []
    sealed = seal_note(now_ms, msgspec.json.encode(note))
    for backend in backends:
        found = _read(backend, bucket)
        try:
            if found is None or found[1] != note:
                backend.put_note(_name(bucket), sealed)
            done.append(backend.name)
        except OSError:
            continue
    return done


def _read(backend: Backend, bucket: str) -> tuple[int, BucketNote] | None:
    try:
        sealed = backend.get_note(_name(bucket))
        if sealed is None:
            return None
        at_ms, data = open_note(sealed)
        return at_ms, msgspec.json.decode(data, type=BucketNote)
    except (OSError, DamagedShard, msgspec.MsgspecError):
        return None


def _name(bucket: str) -> str:
    # Folders of notes are named by hexadecimal digits; names of shards have a dot.
    return hashlib.sha256(f"bucket {bucket}".encode()).hexdigest()[:32]
