"""Print text, tables and JSON to standard output."""

import sys
from collections.abc import Sequence
from functools import cache
from os import environ
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text


@cache
def console() -> "Console":
    """Return the console for text output; it honours NO_COLOR and the terminal width."""
    # Slow to import, and JSON output does not need it.
    from rich.console import Console  # noqa: PLC0415

    width = None if sys.stdout.isatty() or "COLUMNS" in environ else 100
    return Console(highlight=False, width=width, soft_wrap=False)


def show(*things: "RenderableType") -> None:
    """Print text and tables; lines of text are never wrapped."""
    from rich.text import Text  # noqa: PLC0415

    for item in things:
        # Brackets in plain strings are not markup.
        thing = Text(item) if isinstance(item, str) else item
        wrap = isinstance(thing, Text)
        if sys.stdout.isatty():
            console().print(thing, soft_wrap=wrap)
            continue
        # Strip the padding of tables when the output is not a terminal.
        with console().capture() as captured:
            console().print(thing, soft_wrap=wrap)
        sys.stdout.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def print_json(value: object) -> None:
    """Print one indented JSON document; reasons in it include their text."""
    from tenfold.report.reasons.render import with_sentences  # noqa: PLC0415

    value = with_sentences(value)
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    sys.stdout.write(text + "\n")


def table(title: str, columns: Sequence[str], rows: "Sequence[Sequence[str | Text]]") -> "Table":
    """Return a plain table; columns whose name starts with `>` are right-aligned."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    grid = Table(title=title or None, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        right = column.startswith(">")
        grid.add_column(
            column.lstrip(">"),
            justify="right" if right else "left",
            no_wrap=right,
            overflow="fold",
        )
    for row in rows:
        grid.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return grid
