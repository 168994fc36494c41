"""Read a TOML or YAML file into plain values, with line numbers on demand.

The TOML parser keeps no positions, so a large valid file costs one fast parse; lines are
looked up only when there is something to report.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

import tomli

from tenfold.files.core import toml_lines
from tenfold.files.core.read_errors import lower_first, read_error
from tenfold.model.errors import InputError
from tenfold.model.fleet import finding

SIZE_MAX_BYTES = 64 * 1024 * 1024
_PIECE_BYTES = 1 << 20
_MANY_DIGITS = re.compile(r"[0-9_]{1000,}")
_TOML_LINE = re.compile(r"""\[[^,{]*\]|[A-Za-z0-9_."' -]+=""")
"""The first line of a TOML document: a table, or a key and a value."""
SUFFIXES = {".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}

Table = dict[str, object]
Locate = Callable[[finding.Path], int | None]


class Document:
    """The values of a file, and a function from a path in them to a line number."""

    def __init__(self, file: str, values: Table, locate: Locate) -> None:
        self.file = file
        self.values = values
        self.line_of = locate


def read_document(path: Path) -> Document:
    """Parse a file by its suffix; a syntax error is reported alone, with its line."""
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None and path.is_file():
        raise InputError(
            "unknown-suffix",
            f"`{path}` does not end in .toml or .yaml",
            "use a TOML or YAML file whose name ends in .toml or .yaml",
            file=str(path),
        )
    text = read_text(path)
    assert kind is not None, "directories and missing files are rejected above"
    return _toml(path, text) if kind == "toml" else _yaml(path, text)


def parse_document(text: str, name: str) -> Document:
    """Parse text that has no suffix, such as standard input: TOML, or YAML, which includes JSON."""
    path = Path(name)
    first = next((line for line in map(str.strip, text.splitlines()) if line[:1] not in "#"), "")
    is_toml = _TOML_LINE.match(first) is not None or not first
    return _toml(path, text) if is_toml else _yaml(path, text)


def read_text(path: Path, size_max_bytes: int = SIZE_MAX_BYTES) -> str:
    """Return the text of a file, or raise an `InputError` that says why it cannot be read."""
    return decode(read_bytes(path, size_max_bytes), path)


def read_bytes(path: Path, size_max_bytes: int = SIZE_MAX_BYTES) -> bytes:
    """Return the bytes of a file, or raise an `InputError` that says why it cannot be read."""
    file = str(path)
    try:
        if path.is_dir():
            raise IsADirectoryError
        size = path.stat().st_size
        content = b""
        if size <= size_max_bytes:
            with path.open("rb") as stream:
                # As much as there is: a read of the limit would ask for all of that memory.
                content = stream.read(size + 1)
                if len(content) > size:
                    content += _rest(stream, size_max_bytes + 1 - len(content))
        size = max(size, len(content))
    except OSError as error:
        raise read_error(file, error) from None
    if size > size_max_bytes:
        raise InputError(
            "file-too-large",
            f"`{file}` is {size / 1e6:,.0f} MB; the limit is {size_max_bytes / 1e6:,.0f} MB",
            "use host lists such as `n[1-1000]` instead of one entry per node",
            file=file,
        )
    return content


def _rest(stream: BinaryIO, bytes_most: int) -> bytes:
    """Return what is left of a file that has grown, or of a pipe, which has no size."""
    pieces, left = list[bytes](), bytes_most
    while left > 0 and (piece := stream.read(min(left, _PIECE_BYTES))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def decode(content: bytes, path: Path) -> str:
    """Return the text of UTF-8 bytes; an error names the first line that is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            "not-utf-8",
            f"not UTF-8 text (byte {error.start:,})",
            f"save it as UTF-8, or convert it with `iconv -t utf-8 {path}`",
            file=str(path),
            line=content.count(b"\n", 0, error.start) + 1,
        ) from None


def _toml(path: Path, text: str) -> Document:
    try:
        values = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        raise InputError(
            "syntax",
            f"not valid TOML: {lower_first(error.msg)}",
            "fix this first; the rest of the file was not checked",
            file=str(path),
            line=error.lineno,
        ) from None
    except RecursionError:
        raise _too_deep(path) from None
    except ValueError:
        raise _too_many_digits(path, text) from None
    return Document(str(path), values, toml_lines.locator(text))


def _yaml(path: Path, text: str) -> Document:
    from tenfold.files.core import yaml_tree  # noqa: PLC0415

    try:
        values, locate = yaml_tree.parse(text)
    except yaml_tree.NestedTooDeep as error:
        raise _too_deep(path, error.line) from None
    except yaml_tree.YamlError as error:
        raise InputError(
            "syntax",
            f"not valid YAML: {error}",
            "fix this first; the rest of the file was not checked",
            file=str(path),
            line=error.line,
        ) from None
    if not isinstance(values, dict):
        raise InputError(
            "not-a-table",
            "no keys and values at the top level",
            "start with a key such as `pool:`",
            file=str(path),
            line=1,
        )
    return Document(str(path), cast(Table, values), locate)


def _too_many_digits(path: Path, text: str) -> InputError:
    """Return the error for an integer that Python refuses to convert, with its line."""
    found = _MANY_DIGITS.search(text)
    return InputError(
        "syntax",
        f"`{path}` contains an integer with thousands of digits",
        "use a number of at most 18 digits; the rest of the file was not checked",
        file=str(path),
        line=None if found is None else text.count("\n", 0, found.start()) + 1,
    )


def _too_deep(path: Path, line: int | None = None) -> InputError:
    return InputError(
        "nested-too-deep",
        f"`{path}` is nested too deeply",
        "flatten the file",
        file=str(path),
        line=line,
    )
