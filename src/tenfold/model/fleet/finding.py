"""What a check found: a fault that must be mended, or a warning worth reading.

A finding names where in the document it stands as a path of keys and positions;
whoever has the text turns that into a line.
"""

from typing import Literal

from msgspec import Struct

Path = tuple[str | int, ...]
Severity = Literal["fault", "warning"]


class Finding(Struct, frozen=True, kw_only=True):
    """One thing wrong in a file, with what to do about it."""

    code: str
    message: str
    hint: str
    path: Path = ()
    severity: Severity = "fault"
    file: str = ""
    line: int | None = None

    @property
    def field(self) -> str:
        """The path as people write it: `pool[2].nodes`."""
        text = ""
        for part in self.path:
            text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
        return text
