"""The head of the digest chain in a file beside the journal, so that a missing tail is noticed.

It is written after each commit, so it may be behind the database but is never ahead of it. It is
not synced each time: after a loss of power it may be some seconds old, which only means that less
is checked. Two slots are written in turn, so one is always whole.
"""

import logging
import os
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from tenfold.journal.integrity.chain import SIZE, ChainRow, digest_at, last_export, read_chain
from tenfold.journal.store import Store, last_seq
from tenfold.model.errors import InputError
from tenfold.model.fleet.finding import Finding

SUFFIX = ".head"
SLOT = 128
"""Bytes of a slot, less than what a disk writes at once."""
PARTS = 4
_LOG = logging.getLogger("tenfold.journal")


class Head(NamedTuple):
    """The last event of a journal and its digest."""

    journal: str
    seq: int
    digest: bytes


def head_path(store: Store, state_dir: Path) -> Path:
    """Return the file with the head of a journal: beside its file, or in the state directory."""
    file = store.file
    return state_dir / f"journal{SUFFIX}" if file is None else file.with_suffix(SUFFIX)


class HeadFile:
    """The head file of a writer."""

    def __init__(self, path: Path, head: Head) -> None:
        self._journal = head.journal
        self._slot = 0
        self._failed = False
        half = path.with_name(f".{path.name}")
        half.unlink(missing_ok=True)
        self._file = os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            for slot in (0, 1):
                os.pwrite(self._file, _line(head), slot * SLOT)
            os.fsync(self._file)
            half.replace(path)
            _sync_folder(path.parent)
        except BaseException:
            os.close(self._file)
            raise

    def write(self, seq: int, digest: bytes) -> None:
        """Record a commit; call this when the database has it."""
        try:
            os.pwrite(self._file, _line(Head(self._journal, seq, digest)), self._slot * SLOT)
        except OSError as error:
            # An old head is still true. The events are on disk, so this must not fail the append.
            if not self._failed:
                _LOG.warning("cannot write the head of the journal to its file: %s", error)
            self._failed = True
        else:
            self._failed = False
            self._slot = 1 - self._slot

    def close(self) -> None:
        """Sync and close the file."""
        with suppress(OSError):
            os.fsync(self._file)
        os.close(self._file)


def read_head(path: Path) -> Head | None:
    """Return the newest whole entry of a file; None if it has none."""
    content = path.read_bytes()
    slots = [_parsed(content[at : at + SLOT]) for at in (0, SLOT)]
    return max((head for head in slots if head is not None), key=_seq, default=None)


def check_head(store: Store, path: Path) -> Finding | None:
    """Raise if the journal lacks an event that the file names; None if there is no file.

    A restored backup and a damaged file are warnings.
    """
    try:
        # Before the journal, which is then never behind it.
        head = read_head(path)
    except FileNotFoundError:
        return None
    if head is None:
        return Finding(
            code="head-damaged",
            message=f"`{path}` is damaged, so it cannot show whether the last events are missing",
            hint="the next start of the control plane writes it again; check the disk",
            severity="warning",
        )
    with store.reading() as connection:
        chain = read_chain(connection)
        last = min(last_seq(connection), chain.last_seq)
        if head.seq == 0:
            return None
        is_same = head.journal == chain.journal
        if chain.copied_seq is not None:
            return _restored(chain, head) if not is_same or head.seq > last else None
        if not is_same:
            raise InputError(
                "journal-replaced",
                f"`{path}` belongs to another journal, which ended with event {head.seq:,}",
                f"use that journal; to use this one on purpose, remove `{path}`",
                file=str(path),
            )
        if head.seq > last:
            raise InputError(
                "journal-cut",
                f"the journal ends with event {last:,}, but event {head.seq:,} was "
                f"acknowledged, as `{path}` says",
                "restore the missing events (the write-ahead log, a newer backup or the other "
                f"database server); to continue without them, remove `{path}`",
                file=str(path),
            )
        is_known = head.seq >= max(last_export(connection).seq, chain.first_seq - 1)
        if is_known and digest_at(connection, head.seq) != head.digest:
            raise InputError(
                "journal-replaced",
                f"event {head.seq:,} is not the one that was acknowledged, as `{path}` says",
                f"restore a backup; to continue with this journal on purpose, remove `{path}`",
                file=str(path),
            )
    return None


def _restored(chain: ChainRow, head: Head) -> Finding:
    if head.journal == chain.journal:
        lost = f"events {chain.last_seq + 1:,} to {head.seq:,} are not in it"
    else:
        lost = "it is of another journal than the previous one"
    return Finding(
        code="journal-restored",
        message=f"the journal is a backup made after event {chain.copied_seq:,}: {lost}",
        hint="jobs that were submitted since then must be submitted again",
        severity="warning",
    )


def _seq(head: Head) -> int:
    return head.seq


def _line(head: Head) -> bytes:
    text = f"{head.journal} {head.seq} {head.digest.hex()}"
    return f"{text} {_check(text)}".ljust(SLOT - 1).encode() + b"\n"


def _parsed(slot: bytes) -> Head | None:
    parts = slot.decode("ascii", "replace").split()
    if len(parts) != PARTS or _check(" ".join(parts[:-1])) != parts[-1]:
        return None
    return Head(parts[0], int(parts[1]), bytes.fromhex(parts[2]))


def _check(text: str) -> str:
    return blake2b(text.encode(), digest_size=SIZE // 2).hexdigest()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
