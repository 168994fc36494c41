"""A journal that is broken off at any write holds what was acknowledged, and no half of anything.

Here a sample of the points; `python -m benchmarks.journal_faults` takes every one.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

pytest.importorskip("apsw", reason="no apsw here: pip install apsw")

from benchmarks.journal_disk import noted_disk
from benchmarks.journal_faults import (
    NAME,
    Written,
    appended,
    history,
    written,
    wrong_after,
)
from tenfold.journal.append import open_journal
from tenfold.journal.store import open_store

POINTS = 100
SEED = Random().randrange(1 << 32)


@pytest.fixture(scope="module")
def batches() -> list[list[object]]:
    return history()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, batches: list) -> Written:
    return written(tmp_path_factory.mktemp("noted"), batches)


def test_whatever_write_a_crash_takes_what_was_acknowledged_is_there(run: Written):
    print(f"seed {SEED}")
    dice = Random(SEED)
    points = dice.sample(range(len(run.ops) + 1), POINTS)
    broken = {point: wrong for point in points if (wrong := wrong_after(run, point, SEED))}
    assert broken == {}, f"seed {SEED}"


def test_a_run_is_long_enough_to_be_worth_breaking(run: Written):
    assert wrong_after(run, len(run.ops), SEED) == ""
    kinds = [op.kind for op in run.ops]
    assert kinds.count("write") > 300
    assert {op.file for op in run.ops if op.kind == "write"} >= {NAME, f"{NAME}-wal"}


def test_a_journal_that_does_not_wait_for_the_disk_is_caught(tmp_path: Path, batches: list):
    careless = written(tmp_path, batches, synchronous="NORMAL")
    points = range(len(careless.ops) // 2, len(careless.ops), 3)
    assert any("acknowledged" in wrong_after(careless, point, 1) for point in points)


@pytest.mark.parametrize("number", range(12))
def test_a_disk_that_is_full_for_a_while_loses_and_doubles_nothing(
    tmp_path: Path, run: Written, batches: list, number: int
):
    dice = Random(f"{SEED}-{number}")
    first = dice.randrange(_opened(run), len(run.ops))
    full = range(first, first + dice.randint(1, 3))
    with noted_disk(tmp_path / NAME) as (disk, connect):
        store = open_store(tmp_path / NAME, connect=connect)
        writer = open_journal(store, "full", 0)
        disk.refuses = _within(full)
        appended(writer, batches, disk)
        store.close()
    whole = Written(disk.ops, run.events, run.ends)
    assert whole.acknowledged(len(disk.ops)) == len(run.events)
    assert wrong_after(whole, len(disk.ops), SEED) == "", f"seed {SEED}"


def _opened(run: Written) -> int:
    """The operation with which the first append was acknowledged."""
    return next(at for at, op in enumerate(run.ops) if op.kind == "mark")


def _within(numbers: range) -> Callable[[int], bool]:
    return lambda number: number in numbers
