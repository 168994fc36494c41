"""The links of the digest chain, and the sum of the read tables."""

from pathlib import Path

from tenfold.journal.integrity.chain import SIZE, link
from tenfold.journal.integrity.head_file import SLOT, Head, HeadFile, read_head
from tenfold.journal.integrity.table_sum import MASK, digest_of, sum_of_values
from tenfold.journal.tables import NODES, SUBMIT_KEYS

BEFORE = bytes(SIZE)


def test_every_part_of_an_event_changes_its_digest():
    first = link(BEFORE, 12, 3, b"JobEnded", b"{}")
    others = [
        link(b"\1" * SIZE, 12, 3, b"JobEnded", b"{}"),
        link(BEFORE, 1, 23, b"JobEnded", b"{}"),
        link(BEFORE, 12, 4, b"JobEnded", b"{}"),
        link(BEFORE, 12, 3, b"JobEnde", b"d{}"),
        link(BEFORE, 12, 3, b"JobEnded", b"{ }"),
    ]
    assert len({first, *others}) == 1 + len(others)
    assert len(first) == SIZE


def test_a_digest_never_changes_as_journals_keep_it():
    found = link(bytes(range(SIZE)), 7, 1_000, b"JobEnded", b'{"type":"JobEnded"}')
    assert found.hex() == "e437cfa00cd064dc6e8cdaba3292ca01"


def test_a_row_counts_the_same_when_it_is_written_and_when_it_is_read():
    values = {"team": "red", "key": "k", "digest": "00", "number": 5, "at_ms": 9}
    read = tuple(values[column.name] for column in SUBMIT_KEYS.columns)
    assert sum_of_values(SUBMIT_KEYS, [values]) == digest_of(SUBMIT_KEYS, read) <= MASK
    assert digest_of(SUBMIT_KEYS, read) != digest_of(NODES, read)
    assert digest_of(SUBMIT_KEYS, read) != digest_of(SUBMIT_KEYS, (*read[:-1], "9"))


def test_the_head_file_keeps_the_last_two_heads(tmp_path: Path):
    path = tmp_path / "journal.head"
    file = HeadFile(path, Head("ab" * SIZE, 1, BEFORE))
    for seq in (2, 3):
        file.write(seq, bytes([seq]) * SIZE)
        assert read_head(path) == Head("ab" * SIZE, seq, bytes([seq]) * SIZE)
    file.close()
    content = path.read_bytes()
    assert len(content) == 2 * SLOT
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(content[:SLOT] + content[SLOT:].replace(b" 3 ", b" 9 "))
    assert read_head(path) == Head("ab" * SIZE, 2, b"\2" * SIZE)
