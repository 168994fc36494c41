"""Find the line number of a TOML value.

The parser keeps no positions, so this scans text that is known to be valid TOML once, when
the first line number is needed. It follows headers, keys, multi-line strings, nested arrays
and inline tables, and does not validate.
"""

from collections.abc import Callable
from functools import cache

from tenfold.model.fleet import finding


def locator(text: str) -> Callable[[finding.Path], int | None]:
    """Return a function from a path of keys and positions to a line of `text`."""

    @cache
    def lines() -> dict[finding.Path, int]:
        return _LineScanner(text).run()

    def line_of(path: finding.Path) -> int | None:
        known = lines()
        # A missing key has no line; use that of its table.
        while path and path not in known:
            path = path[:-1]
        return known.get(path)

    return line_of


class _LineScanner:
    """One pass over the text that records the line of every key and array element."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.line = 1
        self.lines: dict[finding.Path, int] = {}
        self.counts: dict[finding.Path, int] = {}

    def run(self) -> dict[finding.Path, int]:
        table: finding.Path = ()
        while self._skip_blank():
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.lines

    def _header(self) -> finding.Path:
        array = self.text.startswith("[[", self.at)
        self._advance(2 if array else 1)
        keys = self._keys("]")
        self._advance(2 if array else 1)
        path: finding.Path = ()
        for key in keys[:-1]:
            path = self._into_last((*path, key))
        path = (*path, keys[-1])
        self.lines.setdefault(path, self.line)
        if array:
            count = self.counts.get(path, 0)
            self.counts[path] = count + 1
            path = (*path, count)
            self.lines[path] = self.line
        return path

    def _into_last(self, path: finding.Path) -> finding.Path:
        """Return the path of the last element if a header names an array of tables."""
        return (*path, self.counts[path] - 1) if path in self.counts else path

    def _pair(self, table: finding.Path) -> None:
        line = self.line
        path: finding.Path = table
        for key in self._keys("="):
            path = (*path, key)
            self.lines.setdefault(path, line)
        self._advance(1)
        self._skip_blank()
        self._value(path)

    def _keys(self, end: str) -> list[str]:
        keys: list[str] = []
        while True:
            self._skip_blank()
            if self.text[self.at] in "\"'":
                keys.append(self._string())
            else:
                start = self.at
                while self.text[self.at] not in f".{end} \t":
                    self.at += 1
                keys.append(self.text[start : self.at])
            self._skip_blank()
            if self.text[self.at] != ".":
                return keys
            self._advance(1)

    def _value(self, path: finding.Path) -> None:
        letter = self.text[self.at]
        if letter in "\"'":
            self._string()
        elif letter == "[":
            self._array(path)
        elif letter == "{":
            self._inline_table(path)
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1

    def _array(self, path: finding.Path) -> None:
        self._advance(1)
        position = 0
        while self._skip_blank() and self.text[self.at] != "]":
            if self.text[self.at] == ",":
                self._advance(1)
                continue
            self.lines[(*path, position)] = self.line
            self._value((*path, position))
            position += 1
        self._advance(1)

    def _inline_table(self, path: finding.Path) -> None:
        self._advance(1)
        while self._skip_blank() and self.text[self.at] != "}":
            if self.text[self.at] == ",":
                self._advance(1)
            else:
                self._pair(path)
        self._advance(1)

    def _string(self) -> str:
        quote = self.text[self.at]
        fence = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        start = self.at + len(fence)
        end = start
        while not self.text.startswith(fence, end):
            end += 2 if quote == '"' and self.text[end] == "\\" else 1
        # A fence may be preceded by up to two quotes that belong to the string.
        while len(fence) == 3 and self.text.startswith(quote, end + 3):
            end += 1
        self._advance(end + len(fence) - self.at)
        return self.text[start:end]

    def _skip_blank(self) -> bool:
        """Skip whitespace and comments; return False at the end of the text."""
        while self.at < len(self.text):
            letter = self.text[self.at]
            if letter == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif letter in " \t\r\n":
                self._advance(1)
            else:
                return True
        return False

    def _advance(self, count: int) -> None:
        self.line += self.text.count("\n", self.at, self.at + count)
        self.at += count
