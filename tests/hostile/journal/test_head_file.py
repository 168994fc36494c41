"""A head file that cannot be written stops nothing."""

import os
from contextlib import closing
from pathlib import Path
from typing import Any

from hostile.journal.damage import live
from journal_builders import JOINED, submitted
from tenfold.journal.integrity.head_file import HeadFile, read_head
from tenfold.journal.store import open_store
from tenfold.journal.verify import verify


def test_a_head_file_that_cannot_be_written_does_not_stop_the_journal(tmp_path: Path):
    path, head = tmp_path / "journal.db", tmp_path / "journal.head"
    journal = live(str(path), head)
    journal.append(JOINED)
    writer: Any = journal._writer  # pyright: ignore[reportPrivateUsage]
    head_file: HeadFile = writer._head_file
    descriptor: int = head_file._file  # pyright: ignore[reportPrivateUsage]
    full = os.open("/dev/full", os.O_WRONLY)
    kept = os.dup(descriptor)
    os.dup2(full, descriptor)
    journal.append([submitted(1)])
    os.dup2(kept, descriptor)
    journal.append([submitted(2)])
    for one in (kept, full):
        os.close(one)
    journal.close()
    with closing(open_store(path)) as store:
        assert verify(store, head).findings == ()
    found = read_head(head)
    assert found is not None
    assert found.seq == 4


def test_a_folder_that_cannot_be_written_keeps_the_old_head_and_starts(tmp_path: Path):
    path, head = tmp_path / "journal.db", tmp_path / "heads" / "journal.head"
    head.parent.mkdir()
    journal = live(str(path), head)
    journal.append(JOINED)
    journal.close()
    # A folder in the place of the new file: root may write anywhere else.
    (head.parent / ".journal.head").mkdir()
    journal = live(str(path), head)
    journal.append([submitted(1)])
    journal.close()
    found = read_head(head)
    assert found is not None
    assert found.seq == 2
    with closing(open_store(path)) as store:
        assert verify(store, head).findings == ()
