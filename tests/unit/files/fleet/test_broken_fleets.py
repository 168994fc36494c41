"""Every planted fault is named, on its line, and nothing else is.

Each file under `broken_fleets` marks the lines where a finding is due with `#!` and its
codes; `code@5` puts one on another line, `code@0` on the file as a whole.
"""

import re
from pathlib import Path

import pytest

from tenfold.cli.fleet.check import check_files

FOLDER = Path(__file__).parent / "broken_fleets"
FILES = sorted(FOLDER.iterdir())


def planted(file: Path) -> list[tuple[int, str]]:
    marks: list[tuple[int, str]] = []
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        _, mark, codes = line.partition("#!")
        for word in codes.split() if mark else []:
            code, _, place = word.partition("@")
            marks.append((int(place) if place else number, code))
    return sorted(marks)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_planted_error_is_reported_and_nothing_else(file: Path):
    [check] = check_files([file], None)
    found = [(one.line or 0, one.code) for one in (*check.faults, *check.warnings)]
    assert sorted(found) == planted(file)
    lint = file.name.startswith("lint-")
    assert bool(check.warnings) == lint
    assert bool(check.faults) != lint


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_every_finding_says_what_to_do_in_one_sentence(file: Path):
    [check] = check_files([file], None)
    for one in (*check.faults, *check.warnings):
        assert one.hint
        assert one.message
        assert "\n" not in one.message + one.hint
        assert not one.message.endswith(".")
        assert not re.search(r"(?i)\binvalid\b|\bsimply\b", one.message + one.hint)


def test_there_are_enough_kinds_of_broken_file():
    assert len(FILES) >= 25
    assert len({code for file in FILES for _, code in planted(file)}) >= 25
