"""The log of the spawner and its forks stays small, whatever they write."""

import os
import subprocess
import sys
from pathlib import Path

from tenfold.live.local.spawner.log import BYTES_MOST, ENTRY_BYTES_MOST, NAME, open_log

WRITE = """
import sys
from tenfold.live.local.spawner.log import limit_log, log
home, entries, limits = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "limits"
for number in range(entries):
    log(f"entry {number} " + "x" * 100_000 + f" end of {number}")
    if limits:
        limit_log(home)
"""


def write(home: Path, entries: int, how: str) -> None:
    log = open_log(str(home))
    try:
        subprocess.run(
            [sys.executable, "-c", WRITE, str(home), str(entries), how], stderr=log, check=True
        )
    finally:
        os.close(log)


def test_a_full_log_is_emptied_and_its_end_is_kept(tmp_path: Path):
    write(tmp_path, 400, "limits")
    log, older = tmp_path / NAME, tmp_path / f"{NAME}.1"
    assert log.stat().st_size <= BYTES_MOST + 2 * ENTRY_BYTES_MOST
    assert older.stat().st_size == BYTES_MOST
    ends = [line for line in (older.read_text() + log.read_text()).splitlines() if "end of" in line]
    assert ends[-1].endswith("end of 399")
    assert all(len(line) <= ENTRY_BYTES_MOST + 10 for line in ends)


def test_without_a_spawner_entries_are_dropped_when_the_log_is_full(tmp_path: Path):
    write(tmp_path, 400, "no limits")
    assert (tmp_path / NAME).stat().st_size <= 2 * BYTES_MOST + 2 * ENTRY_BYTES_MOST


def test_the_next_spawner_starts_a_new_log(tmp_path: Path):
    write(tmp_path, 400, "no limits")
    write(tmp_path, 1, "no limits")
    assert (tmp_path / NAME).stat().st_size <= 2 * ENTRY_BYTES_MOST
    assert (tmp_path / f"{NAME}.1").exists()
