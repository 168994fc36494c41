"""Logs by the byte: whoever lost a connection goes on where it was, whatever turned meanwhile."""

import os
from pathlib import Path

from litestar import Litestar
from litestar.testing import TestClient

from tenfold.live.local.attempt.logs import SEGMENTS, LogWriter, segment_offsets, segments
from tenfold.server.log_stream import LogReader, tail_offset
from unit.server.fake_executor import FakeProcesses
from unit.server.waiting import job_when

Client = TestClient[Litestar]
PIECE = 10


def writer(folder: Path) -> LogWriter:
    return LogWriter(str(folder), 0, PIECE * SEGMENTS)


def log_reader(folder: Path, offset: int) -> LogReader:
    return LogReader(lambda: segment_offsets(str(folder), 0), offset)


def read(log: LogReader) -> bytes:
    parts: list[bytes] = []
    while chunk := log.read():
        parts.append(chunk)
    return b"".join(parts)


def said(count: int) -> bytes:
    return "".join(f"{number:4d}" for number in range(count)).encode()


def test_a_byte_has_one_number_whatever_piece_it_lies_in(tmp_path: Path):
    whole, log = said(9), writer(tmp_path)
    for at in range(0, len(whole), 3):
        log.write(whole[at : at + 3])
    assert [begin for begin, _ in segment_offsets(str(tmp_path), 0)] == [0, 10, 20, 30]
    for offset in range(len(whole)):
        assert read(log_reader(tmp_path, offset)) == whole[offset:]


def test_a_log_of_one_piece_has_no_other_name(tmp_path: Path):
    writer(tmp_path).write(b"short")
    assert os.listdir(tmp_path) == ["0.log"]
    assert read(log_reader(tmp_path, 2)) == b"ort"


def test_what_was_dropped_is_passed_over_and_its_file_is_gone(tmp_path: Path):
    whole, log = said(25), writer(tmp_path)
    log.write(whole)
    assert [begin for begin, _ in segment_offsets(str(tmp_path), 0)] == [60, 70, 80, 90]
    late = log_reader(tmp_path, 5)
    assert read(late) == whole[60:]
    assert late.offset == len(whole)
    kept = {os.stat(tmp_path / name).st_ino for name in os.listdir(tmp_path)}
    assert len(kept) == SEGMENTS == len(segments(str(tmp_path), 0))


def test_a_reader_keeps_up_with_a_log_that_turns_underneath(tmp_path: Path):
    whole, log, parts = said(60), writer(tmp_path), b""
    reader = log_reader(tmp_path, 0)
    for at in range(0, len(whole), 17):
        log.write(whole[at : at + 17])
        parts += read(reader)
    assert parts == whole


def test_the_end_of_a_log_may_lie_in_several_pieces(tmp_path: Path):
    writer(tmp_path).write(said(9))
    found = segment_offsets(str(tmp_path), 0)
    assert (tail_offset(found, 8), tail_offset(found, 1_000), tail_offset([], 5)) == (28, 0, 0)


def test_a_log_is_given_from_a_byte_on(member: Client, processes: FakeProcesses):
    made = member.post("/api/v1/jobs", json={"command": ["true"]}).json()["id"]
    job_when(member, made, "running")
    processes.write(made, "one\ntwo\nthree\n")
    path = f"/api/v1/jobs/{made}/logs"
    found = member.get(path, params={"offset": 4})
    assert (found.text, found.headers["Log-Offset"]) == ("two\nthree\n", "4")
    assert member.get(path, params={"offset": 4, "tail": 3}).text == "two"
    processes.end(made)
    followed = member.get(path, params={"follow": "true", "tail": 6})
    assert (followed.text, followed.headers["Log-Offset"]) == ("three\n", "8")
    again = member.get(path, params={"follow": "true", "offset": 10})
    assert (again.text, again.headers["Log-Offset"]) == ("ree\n", "10")
    assert member.get(path, params={"offset": -1}).status_code == 400
