"""Which strings each type takes, by the pattern that the schema shows too."""

from typing import Any

import msgspec
import pytest

from tenfold.model import strings
from tenfold.model.strings import FOLDER_DEPTH_MAX, is_one_line

CONTROLS = [chr(code) for code in (*range(0x20), 0x7F, *range(0x80, 0xA0))]
TYPES = (
    "Line",
    "Name",
    "FolderName",
    "PlainName",
    "Variable",
    "FolderPath",
    "CheckpointDir",
    "Image",
)


def takes(name: str, value: object) -> bool:
    kind: Any = getattr(strings, name)
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


@pytest.mark.parametrize("name", TYPES)
def test_no_control_character_is_taken_anywhere(name: str):
    assert takes(name, "ab")
    for one in CONTROLS:
        assert not any(takes(name, text) for text in (one, f"a{one}b", f"ab{one}")), repr(one)


def test_an_argument_may_have_tabs_and_line_breaks_only():
    taken = [one for one in CONTROLS if takes("Argument", f"a{one}b") and takes("Argument", one)]
    assert taken == ["\t", "\n", "\r"]


def test_a_path_is_as_deep_as_it_may_be():
    assert takes("FolderPath", "/".join("a" * (FOLDER_DEPTH_MAX + 1)))
    assert not takes("FolderPath", "/".join("a" * (FOLDER_DEPTH_MAX + 2)))
    assert not takes("FolderPath", "a" * 256)
    assert not takes("CheckpointDir", "")


def test_lists_and_tables_end():
    assert takes("Tags", ["a"] * 64)
    assert not takes("Tags", ["a"] * 65)
    assert not takes("Environment", {f"A{number}": "" for number in range(4_097)})
    assert not takes("Command", ["a"] * 4_097)


def test_a_name_in_a_union_is_checked_apart():
    assert is_one_line("h100")
    assert not is_one_line("h100\n")
