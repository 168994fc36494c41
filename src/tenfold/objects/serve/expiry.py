"""Which versions a lifecycle configuration deletes now: pure, from the versions of whole keys."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from tenfold.objects.catalog.listing import Entry
from tenfold.objects.catalog.records import LifecycleRule, ObjectRecord, Upload


class Due(Struct, frozen=True):
    """A version to delete: for good, or by a delete marker in front of it."""

    record: ObjectRecord
    for_good: bool


class DueMove(Struct, frozen=True):
    """A version that belongs into another storage class."""

    record: ObjectRecord
    storage_class: str


def due_moves(
    rules: Sequence[LifecycleRule], entries: Sequence[Entry], now_ms: int, day_ms: int
) -> Iterator[DueMove]:
    """Yield the versions whose storage class changes, each with the last class that is due."""
    for _, group in groupby(entries, key=lambda entry: entry.record.key):
        newer_ms = 0
        for place, entry in enumerate(group):
            since_ms = entry.record.modified_ms if entry.is_current else newer_ms
            newer_ms = entry.record.modified_ms
            found = _class_due(rules, entry, (place, since_ms), (now_ms, day_ms))
            if found and found != entry.record.storage_class and not entry.record.is_marker:
                yield DueMove(entry.record, found)


def _class_due(
    rules: Sequence[LifecycleRule], entry: Entry, age: tuple[int, int], time: tuple[int, int]
) -> str:
    place, since_ms = age
    now_ms, day_ms = time
    best: tuple[int, str] = (-1, "")
    for rule in rules:
        if not _selects(rule, entry.record):
            continue
        for one in rule.transitions if entry.is_current else rule.noncurrent_transitions:
            at_ms = one.at_ms or due_at(since_ms, one.days, day_ms)
            is_due = at_ms <= now_ms and (entry.is_current or place > one.kept)
            if is_due and at_ms > best[0]:
                best = (at_ms, one.storage_class)
    return best[1]


def due_versions(
    rules: Sequence[LifecycleRule], entries: Sequence[Entry], now_ms: int, day_ms: int
) -> Iterator[Due]:
    """Yield what is due among the versions of some keys, newest first within a key."""
    for _, group in groupby(entries, key=lambda entry: entry.record.key):
        versions = list(group)
        for rule in rules:
            found = list(_due(rule, versions, now_ms, day_ms))
            yield from found
            gone = {id(due.record) for due in found if due.for_good}
            versions = [entry for entry in versions if id(entry.record) not in gone]
            if any(not due.for_good for due in found):
                # What is current changes with the marker; the next pass sees it.
                break


def upload_is_due(rule: LifecycleRule, upload: Upload, now_ms: int, day_ms: int) -> bool:
    """Return whether a rule gives up an upload."""
    if not rule.abort_upload_days or not upload.record.key.startswith(rule.prefix):
        return False
    return due_at(upload.started_ms, rule.abort_upload_days, day_ms) <= now_ms


def due_at(start_ms: int, days: int, day_ms: int) -> int:
    """Return the midnight at which something is that many days old, as S3 counts."""
    return -(-(start_ms + days * day_ms) // day_ms) * day_ms


def _due(rule: LifecycleRule, versions: Sequence[Entry], now_ms: int, day_ms: int) -> Iterator[Due]:
    current = versions[0] if versions and versions[0].is_current else None
    if current is not None:
        yield from _due_current(rule, current.record, len(versions), (now_ms, day_ms))
    if not rule.noncurrent_days:
        return
    old = [entry for entry in versions if not entry.is_current]
    for place, entry in enumerate(old):
        # A version stopped being current when the next newer one was written.
        at = versions.index(entry)
        since_ms = versions[at - 1].record.modified_ms if at else entry.record.modified_ms
        is_old = due_at(since_ms, rule.noncurrent_days, day_ms) <= now_ms
        if is_old and place >= rule.noncurrent_kept and _selects(rule, entry.record):
            yield Due(entry.record, for_good=True)


def _due_current(
    rule: LifecycleRule, record: ObjectRecord, count: int, time: tuple[int, int]
) -> Iterator[Due]:
    now_ms, day_ms = time
    if record.is_marker:
        # A marker without anything behind it hides nothing.
        is_alone = count == 1 and (rule.expire_lone_markers or rule.expire_days)
        if is_alone and record.key.startswith(rule.prefix):
            yield Due(record, for_good=True)
        return
    if not _selects(rule, record):
        return
    by_age = rule.expire_days and due_at(record.modified_ms, rule.expire_days, day_ms) <= now_ms
    by_date = rule.expire_at_ms and rule.expire_at_ms <= now_ms
    if by_age or by_date:
        yield Due(record, for_good=False)


def _selects(rule: LifecycleRule, record: ObjectRecord) -> bool:
    size = record.size_bytes
    return (
        record.key.startswith(rule.prefix)
        and all(record.tags.get(key) == value for key, value in rule.tags.items())
        and (rule.size_bytes_over < 0 or size > rule.size_bytes_over)
        and (rule.size_bytes_under < 0 or size < rule.size_bytes_under)
    )
