"""Rebuild what was lost: the shards of a backend, or the catalogue from the shards."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from tenfold.model.errors import InputError, Refused
from tenfold.objects.blobs.layout import parse_layout
from tenfold.objects.blobs.refs import BlobRef
from tenfold.objects.blobs.scanning import FoundBlob
from tenfold.objects.blobs.store import BlobStore
from tenfold.objects.catalog.moves import Description, LiveBlob, Moves
from tenfold.objects.catalog.records import Bucket, ObjectRecord, Part
from tenfold.objects.tiers.backend_states import BackendStates
from tenfold.objects.tiers.bucket_notes import latest_note
from tenfold.objects.tiers.mover import Mover
from tenfold.objects.tiers.opened import AbsentBackend, new_mark
from tenfold.objects.tiers.operations.progress import Progress, for_each_live


def accept_new_disk(store: BlobStore, states: BackendStates, name: str) -> None:
    """Use the empty place at a backend's directory or URL instead of the one that was lost."""
    backend = store.backends.get(name)
    if backend is None:
        raise InputError(
            "backend-unknown",
            f"backend `{name}` is not in the tier file",
            f"use one of {', '.join(f'`{one}`' for one in sorted(store.backends))}",
        )
    if not isinstance(backend, AbsentBackend):
        return
    if backend.present.identity() is not None:
        raise Refused(
            "backend-in-use",
            f"backend `{name}` has the marker of another backend",
            "mount an empty disk there, or correct its location in the tier file",
        )
    with states.changing() as known:
        mark, identity = new_mark(name)
        backend.present.identify(mark)
        known[name] = replace(known[name], identity=identity)
    store.look_for_changes(at_once=True)


async def rebuild_backend(mover: Mover, name: str) -> Progress:
    """Write the shards that a backend should hold and does not, from the others."""
    progress = Progress()

    async def step(live: LiveBlob) -> None:
        at = parse_layout(live.ref.layout).at
        mine = [
            index
            for index, position in enumerate(at)
            if position is not None and position.backend == name
        ]
        if not mine:
            return
        states = await mover.store.verify(live.ref)
        targets = {index: name for index in mine if states[index].state in ("missing", "damaged")}
        if targets:
            progress.add(live, await mover.move_shards(live, targets))

    await for_each_live(mover.moves, progress, step)
    return progress


class CatalogReport(msgspec.Struct):
    """What a rebuild of the catalogue found."""

    blobs: int = 0
    inserted: int = 0
    known: int = 0
    parts_of_uploads: int = 0
    unreadable: list[str] = []
    undescribed: list[str] = []
    backends_not_read: list[str] = []


async def rebuild_catalog(store: BlobStore, moves: Moves) -> CatalogReport:
    """Insert a row for every object that the shards describe and the catalogue lacks.

    Objects that were deleted within the last minutes may come back: their shards are still there.
    """
    report = CatalogReport()
    report.backends_not_read = await store.in_worker(lambda: _not_readable(store))
    found = await store.in_worker(lambda: list(store.walk()))
    refs = {one.ref.id: one.ref for one in found if one.readable}
    described: dict[tuple[str, str, str], tuple[Description, FoundBlob]] = {}
    for one in found:
        report.blobs += 1
        if not one.readable:
            report.unreadable.append(one.ref.id)
            continue
        description = _description(one)
        if description is None:
            report.undescribed.append(one.ref.id)
        elif description.is_part:
            report.parts_of_uploads += 1
        else:
            name = (description.bucket, description.record.key, description.record.version)
            described[name] = max(
                described.get(name, (description, one)), (description, one), key=_age
            )
    known_before = set(moves.bucket_names())
    for description, one in sorted(described.values(), key=_age):
        record = _record(description.record, one.ref, refs)
        whole = replace(description, record=record)
        if await moves.insert(whole, one.changed_ms):
            report.inserted += 1
        else:
            report.known += 1
    for name in moves.bucket_names():
        if name not in known_before:
            await _restore_bucket(store, moves, name)
    return report


async def _restore_bucket(store: BlobStore, moves: Moves, name: str) -> None:
    backends = store.backends.values()
    note = await store.in_worker(lambda: latest_note(backends, name))
    if note is not None:
        bucket = Bucket(
            id=0,
            name=name,
            team=note.team,
            created_ms=note.created_ms,
            versioning=note.versioning,
            settings=note.settings,
        )
        await moves.restore_bucket(bucket)


def _age(pair: tuple[Description, FoundBlob]) -> tuple[int, int]:
    """Return what is greater for the later of two contents of one version."""
    return pair[0].record.modified_ms, pair[1].changed_ms


def _not_readable(store: BlobStore) -> list[str]:
    names: list[str] = []
    for name, backend in store.backends.items():
        try:
            next(iter(backend.walk()), None)
        except OSError:
            names.append(name)
    return names


def _description(found: FoundBlob) -> Description | None:
    try:
        return msgspec.json.decode(found.description, type=Description)
    except msgspec.MsgspecError:
        return None


def _record(record: ObjectRecord, ref: BlobRef, refs: dict[str, BlobRef]) -> ObjectRecord:
    """Return a row with the blobs where they are now; blobs keep their id when they move."""
    if not record.parts and not record.is_marker and not record.is_multipart:
        part = Part(1, record.size_bytes, record.etag, ref, modified_ms=record.modified_ms)
        return replace(record, parts=(part,))
    parts = tuple(replace(part, ref=refs.get(part.ref.id, part.ref)) for part in record.parts)
    manifest = None if _is_among(ref, parts) else ref
    return replace(record, parts=parts, manifest=manifest)


def _is_among(ref: BlobRef, parts: Sequence[Part]) -> bool:
    return any(part.ref.id == ref.id for part in parts)
