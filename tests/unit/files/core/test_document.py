"""Files that cannot be read, and the lines of those that can."""

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tenfold.files.core.document import read_document
from tenfold.model.errors import InputError

NOBODY = 65_534


def fault(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_document(path)
    error = caught.value
    assert error.hint
    assert "\n" not in error.message
    assert error.exit_status == 2
    return error


def test_a_directory_is_named_as_one(tmp_path: Path):
    folder = tmp_path / "fleet.toml"
    folder.mkdir()
    assert fault(folder).code == "is-a-directory"


def test_a_missing_file_is_named(tmp_path: Path):
    assert fault(tmp_path / "none.toml").code == "no-such-file"


def test_an_unknown_suffix_is_reported(tmp_path: Path):
    (tmp_path / "fleet.json").touch()
    assert fault(tmp_path / "fleet.json").code == "unknown-suffix"


@pytest.fixture
def nobody() -> Iterator[None]:
    """Root may read everything: as root, be somebody else for the length of a test."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    yield
    os.seteuid(before)


@pytest.fixture
def closed() -> Iterator[Path]:
    """A file that nobody may read, in a folder that everybody may enter."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "fleet.toml"
        path.write_text("")
        path.chmod(0)
        yield path


def test_a_file_without_permission_says_so(closed: Path, nobody: None):
    assert fault(closed).code == "no-permission"


def test_no_permission_is_told_apart_from_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Root reads everything, so the refusal of the system is played here."""
    path = tmp_path / "fleet.toml"
    path.write_text("")

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert fault(path).code == "no-permission"


def test_a_file_over_the_size_limit_is_rejected_unread(tmp_path: Path):
    path = tmp_path / "fleet.toml"
    with path.open("wb") as stream:
        stream.truncate(200 * 1024 * 1024)
    error = fault(path)
    assert error.code == "file-too-large"
    assert "210 MB" in error.message


def test_text_that_is_not_utf_8_names_the_line(tmp_path: Path):
    path = tmp_path / "fleet.toml"
    path.write_bytes(b'name = "a"\nregion = "M\xfcnchen"\n')
    error = fault(path)
    assert (error.code, error.line) == ("not-utf-8", 2)


def test_a_byte_order_mark_is_accepted(tmp_path: Path):
    path = tmp_path / "fleet.toml"
    path.write_bytes(b"\xef\xbb\xbfa = 1\n")
    assert read_document(path).values == {"a": 1}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a: &a [*a]", "itself"),
        ("a: &a [1]\nb: &b [" + "*a," * 9 + "]", ""),
        ("a: {b: 1, b: 2}", "duplicate key"),
        ("? [1, 2]\n: 3", "plain text"),
        ("- 1\n- 2", "keys and values"),
        ("a: [1", "YAML"),
        ("a: !!python/object:os.system {}", ""),
    ],
)
def test_odd_yaml_is_read_or_reported(tmp_path: Path, text: str, word: str):
    path = tmp_path / "fleet.yaml"
    path.write_text(text)
    if word:
        assert word in fault(path).message
    else:
        read_document(path)


def test_a_yaml_bomb_is_rejected(tmp_path: Path):
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for level in range(1, 10):
        inner = ", ".join([f"*a{level - 1}"] * 10)
        lines.append(f"a{level}: &a{level} [{inner}]")
    path = tmp_path / "fleet.yaml"
    path.write_text("\n".join(lines))
    assert "too many values" in fault(path).message


def test_deep_nesting_is_rejected(tmp_path: Path):
    path = tmp_path / "fleet.toml"
    path.write_text("a = " + "[" * 20_000 + "]" * 20_000)
    assert fault(path).code in ("nested-too-deep", "syntax")


TOML = '''\
# A comment with = and [brackets].
title = "a # b"

[[pool]]
name = "one"
text = """
[[pool]]
name = "not this"
"""
list = [
    1,
    { x = 1, y = [2,
        3] },
]
"odd key" = 'x = "1"'
price.kind = "owned"

[[pool]]
name = "two"

[pool.price]
kind = "spot"

[[pool.rack]]
name = "r1"
'''


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("pool",), 4),
        (("pool", 0), 4),
        (("pool", 0, "name"), 5),
        (("pool", 0, "text"), 6),
        (("pool", 0, "list", 0), 11),
        (("pool", 0, "list", 1), 12),
        (("pool", 0, "list", 1, "x"), 12),
        (("pool", 0, "list", 1, "y", 1), 13),
        (("pool", 0, "odd key"), 15),
        (("pool", 0, "price", "kind"), 16),
        (("pool", 1), 18),
        (("pool", 1, "name"), 19),
        (("pool", 1, "price", "kind"), 22),
        (("pool", 1, "rack", 0, "name"), 25),
        (("pool", 1, "missing"), 18),
        (("nothing",), None),
    ],
)
def test_the_line_of_a_toml_value_is_found(tmp_path: Path, path: tuple[str | int, ...], line: int):
    file = tmp_path / "fleet.toml"
    file.write_text(TOML)
    assert read_document(file).line_of(path) == line


def test_the_line_of_a_yaml_value_is_found(tmp_path: Path):
    file = tmp_path / "fleet.yaml"
    file.write_text("name: x\npool:\n  - name: a\n    price:\n      kind: spot\n  - name: b\n")
    document = read_document(file)
    assert document.line_of(("pool", 0, "price", "kind")) == 5
    assert document.line_of(("pool", 1, "missing")) == 6
