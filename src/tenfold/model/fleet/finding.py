"""Findings: the errors and warnings that a check of a file reports.

A finding names its place in the document as a path of keys and positions; the reader of
the file turns the path into a line number.
"""

from typing import Literal

from msgspec import Struct

Path = tuple[str | int, ...]
Severity = Literal["fault", "warning"]


class Finding(Struct, frozen=True, kw_only=True):
    """One error or warning in a file, with a hint on how to fix it."""

    code: str
    message: str
    hint: str
    path: Path = ()
    severity: Severity = "fault"
    file: str = ""
    line: int | None = None

    @property
    def level(self) -> str:
        """The severity as printed: `error` or `warning`."""
        return "error" if self.severity == "fault" else self.severity

    @property
    def field(self) -> str:
        """The path as people write it: `pool[2].nodes`."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text
