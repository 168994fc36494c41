"""The strings and lists that a request or a file may contain: their characters and their length.

Whatever reaches a path, an argument vector, an environment, a file name or a table is checked
against one of these types where it enters: job files, fleet and policy files, HTTP bodies. Code
behind the edge relies on it.

No string may contain NUL or another control character (C0, DEL, C1). Arguments and values of
variables may contain tabs and line breaks, because scripts do. Python's `$` also matches before a
final line break, and JSON Schema has no `\\Z`: patterns end in `$(?!\\n)`.
"""

import re
from typing import Annotated

from msgspec import Meta

CONTROL = r"\x00-\x1f\x7f-\x9f"
"""Control characters, for use in a character class."""
END = r"$(?!\n)"
"""The end of the string, even if it ends in a line break."""

ONE_LINE = rf"^[^{CONTROL}]*{END}"
ARGUMENT = rf"^[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]*{END}"
FOLDER_NAME = rf"^[A-Za-z0-9][A-Za-z0-9._-]*{END}"
VARIABLE = rf"^[A-Za-z_][A-Za-z0-9_]*{END}"
HOST_PREFIX = rf"^[^\[\],{CONTROL}]+{END}"
KEY = rf"^[\x21-\x7e]+{END}"
FOLDER_DEPTH_MAX = 64
"""Folders in a path: creating them one inside another must end."""
PATH = rf"^[^/{CONTROL}]{{0,255}}(?:/[^/{CONTROL}]{{0,255}}){{0,{FOLDER_DEPTH_MAX}}}{END}"

Line = Annotated[str, Meta(max_length=200, pattern=ONE_LINE)]
"""Text on one line; may be empty."""
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=ONE_LINE)]
FolderName = Annotated[str, Meta(min_length=1, max_length=80, pattern=FOLDER_NAME)]
"""Pattern of job and team names: they become folder names."""
PlainName = Annotated[str, Meta(min_length=1, max_length=200, pattern=HOST_PREFIX)]
"""Names that node names are built from, so without the special characters of a host list."""
Argument = Annotated[str, Meta(max_length=131_072, pattern=ARGUMENT)]
"""An argument of a command, or the value of a variable; 128 KiB is the limit of Linux."""
Variable = Annotated[str, Meta(max_length=200, pattern=VARIABLE)]
FolderPath = Annotated[str, Meta(max_length=4_096, pattern=PATH)]
CheckpointDir = Annotated[str, Meta(min_length=1, max_length=4_096, pattern=PATH)]
Image = Annotated[str, Meta(max_length=1_000, pattern=ONE_LINE)]

Command = Annotated[list[Argument], Meta(min_length=1, max_length=4_096)]
Environment = Annotated[dict[Variable, Argument], Meta(max_length=4_096)]
Tags = Annotated[list[Name], Meta(max_length=64)]
"""Each node is compared with every tag; a job needs a few."""
NameOrNames = (
    Annotated[str, Meta(min_length=1, max_length=200)] | Annotated[list[Name], Meta(max_length=20)]
)
"""A single name has no pattern here: msgspec 0.22 reads wrong memory for a string with a pattern in
a union with a list. Readers check it with `is_one_line`."""
JobNames = Annotated[list[Name], Meta(max_length=10_000)]
_ONE_LINE = re.compile(ONE_LINE)


def is_one_line(text: str) -> bool:
    """Tell whether a string has no control character."""
    return _ONE_LINE.search(text) is not None
