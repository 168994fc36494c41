"""Print text, tables and JSON. Everything that the command line prints passes through here.

Text that a user, a job or a file supplied may contain escape sequences. They are escaped, so a
terminal shows them and does not obey them. A test checks that no other module of `cli` writes to
standard output or standard error.
"""

import sys
from collections.abc import Iterable, Sequence
from functools import cache
from os import environ
from typing import TYPE_CHECKING

import msgspec

from tenfold.report.visible import visible, visible_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text


@cache
def console() -> "Console":
    """Return the console for text output; it honours NO_COLOR and the terminal width."""
    # Slow to import, and JSON output does not need it.
    from tenfold.cli.screen import ScreenConsole  # noqa: PLC0415

    width = None if sys.stdout.isatty() or "COLUMNS" in environ else 100
    return ScreenConsole(highlight=False, width=width, soft_wrap=False)


def show(*things: "RenderableType") -> None:
    """Print text and tables; lines of text are never wrapped."""
    from rich.text import Text  # noqa: PLC0415

    for item in things:
        # Brackets in plain strings are not markup. A string is one line, whatever is quoted in it.
        thing = Text(visible_line(item)) if isinstance(item, str) else item
        wrap = isinstance(thing, Text)
        if sys.stdout.isatty():
            console().print(thing, soft_wrap=wrap)
            continue
        # Strip the padding of tables when the output is not a terminal.
        with console().capture() as captured:
            console().print(thing, soft_wrap=wrap)
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def clear_screen() -> None:
    """Clear the terminal and move to its first line; nothing happens if output is piped."""
    if sys.stdout.isatty():
        console().clear()


def print_json(value: object) -> None:
    """Print one indented JSON document; reasons in it include their text."""
    from tenfold.report.reasons.render import with_sentences  # noqa: PLC0415

    value = with_sentences(value)
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    sys.stdout.write(visible(text) + "\n")


def print_json_line(encoded: bytes) -> None:
    """Print JSON on one line."""
    sys.stdout.write(visible(encoded.decode()) + "\n")


def print_line(line: str) -> None:
    """Print a line of text at once, without a console."""
    sys.stdout.write(f"{visible_line(line)}\n")
    sys.stdout.flush()


def print_file(text: str) -> None:
    """Print the content of a file: unchanged, except on a terminal."""
    sys.stdout.write(visible(text) if sys.stdout.isatty() else text)


def print_log(chunks: Iterable[str], *, raw: bool = False, ends_line: bool = True) -> None:
    """Print log chunks as they arrive: unchanged if `raw` or piped, and escaped on a terminal.

    Unless more follows, the last line is ended.
    """
    is_raw = raw or not sys.stdout.isatty()
    last = "\n"
    for chunk in chunks:
        sys.stdout.write(chunk if is_raw else visible(chunk))
        sys.stdout.flush()
        last = chunk or last
    if ends_line and not last.endswith("\n"):
        sys.stdout.write("\n")


def print_bytes(content: bytes, *, error: bool = False, raw: bool = False) -> None:
    """Print bytes of a shell at once: unchanged if `raw` or piped, and escaped on a terminal."""
    stream = sys.stderr if error else sys.stdout
    if not raw and stream.isatty():
        stream.write(visible(content.decode(errors="replace")))
    else:
        stream.flush()
        stream.buffer.write(content)
    stream.flush()


def print_note(text: str) -> None:
    """Print a note to standard error: standard output is data only."""
    complain(f"note: {text}")


def complain(line: str) -> None:
    """Print a line to standard error."""
    sys.stderr.write(f"{visible_line(line)}\n")
    sys.stderr.flush()


def complain_lines(text: str) -> None:
    """Print several lines, such as a traceback, to standard error."""
    sys.stderr.write(visible(text))


def prompt(text: str) -> str:
    """Ask on standard error, and return the answer with its newline; empty at the end of input."""
    sys.stderr.write(visible_line(text))
    sys.stderr.flush()
    return sys.stdin.readline()


def table(title: str, columns: Sequence[str], rows: "Sequence[Sequence[str | Text]]") -> "Table":
    """Return a plain table; columns whose name starts with `>` are right-aligned.

    A cell that is a string is one line. A cell of several lines is a `Text`.
    """
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    named = visible_line(title) or None
    # A header without any name would be a blank line.
    has_names = any(column.lstrip(">") for column in columns)
    grid = Table(title=named, title_justify="left", box=None, pad_edge=False, show_header=has_names)
    for column in columns:
        right = column.startswith(">")
        grid.add_column(
            visible_line(column.lstrip(">")),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
        )
    for row in rows:
        grid.add_row(*(Text(visible_line(cell)) if isinstance(cell, str) else cell for cell in row))
    return grid
