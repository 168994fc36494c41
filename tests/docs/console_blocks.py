"""Commands and files that the documentation shows, and how to run them.

A page is a small session: it runs in a folder that holds a copy of `examples/` and
`./dev`, block after block. A comment before a fenced block makes a file of it:
`<!-- file: fleet.toml -->` writes it, `<!-- append: fleet.toml -->` adds to it. In a
`console` block a line `$ ...` is a command and what follows is its output; a line `...`
stands for any lines. Long decimals are compared to six digits: the last ones differ from
processor to processor.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from patience import HANG_S
from warm import folder_with_tenfold

ROOT = Path(__file__).parents[2]
PROGRAMS = Path(sys.executable).parent
WIDTH = "100"
ANY_LINES = "..."
_FENCE = re.compile(r"^(?P<indent> *)```(?P<kind>\w*)\s*$")
_MARK = re.compile(r"^\s*<!-- (?P<verb>file|append): (?P<name>[\w./-]+) -->\s*$")
_LONG_DECIMAL = re.compile(r"\d+\.\d{7,}(?:e[+-]?\d+)?")
_RUNS = re.compile(r"^(?:[A-Z_]+=\S+ )*(?:tenfold\b|\./dev help\b)")


class Block(NamedTuple):
    """A fenced block: where it begins, its kind and lines, and the file it makes."""

    line: int
    kind: str
    lines: list[str]
    verb: str
    name: str


class Command(NamedTuple):
    """A command and the output that the page shows for it."""

    text: str
    shown: list[str]

    @property
    def runs(self) -> bool:
        """Tell whether this is a command that the tests may run."""
        return _RUNS.match(self.text) is not None


def documents() -> list[Path]:
    """Return every page that may hold commands."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *sorted((ROOT / "examples").glob("*/README.md")), *pages]


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page in order."""
    open_at, kind, lines, mark = 0, "", [], ("", "")
    before = ("", "")
    for number, line in enumerate(text.splitlines(), start=1):
        fence = _FENCE.match(line)
        if open_at and fence and not fence["kind"]:
            yield Block(open_at, kind, lines, *mark)
            open_at, before = 0, ("", "")
        elif open_at:
            lines.append(line)
        elif fence:
            open_at, kind, lines, mark = number, fence["kind"], [], before
        elif line.strip():
            named = _MARK.match(line)
            before = (named["verb"], named["name"]) if named else ("", "")


def commands(block: Block) -> list[Command]:
    """Return the commands of a `console` block, each with the output shown."""
    found: list[Command] = []
    for line in block.lines:
        if line.startswith("$ "):
            found.append(Command(line[2:], []))
        elif found:
            found[-1].shown.append(line.rstrip())
    return [Command(text, _trimmed(shown)) for text, shown in found]


def prepare(folder: Path) -> None:
    """Make a folder in which the documented commands find what they name."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    shutil.copy(ROOT / "dev", folder / "dev")


def make_file(block: Block, folder: Path) -> None:
    """Write or extend the file that a block stands for."""
    path = folder / block.name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "\n".join(block.lines) + "\n"
    before = path.read_text() + "\n" if block.verb == "append" else ""
    path.write_text(before + text)


def run(command: str, folder: Path, programs: Path = PROGRAMS) -> list[str]:
    """Run a command as a reader would, with `tenfold` from `programs`; return what it prints."""
    environment = {key: value for key, value in os.environ.items() if "TENFOLD" not in key}
    environment |= {
        "PATH": f"{folder_with_tenfold(str(programs / 'python'))}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        "COLUMNS": WIDTH,
    }
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    return _trimmed([line.rstrip() for line in done.stdout.splitlines()])


def matches(shown: list[str], printed: list[str]) -> bool:
    """Tell whether output is as shown, `...` standing for any number of lines."""
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == ANY_LINES else re.escape(_shortened(line)) + r"\n"
        for line in shown
    )
    text = "".join(f"{_shortened(line)}\n" for line in printed)
    return re.fullmatch(pattern, text) is not None


def _shortened(line: str) -> str:
    return _LONG_DECIMAL.sub(lambda found: f"{float(found[0]):.6g}", line)


def _trimmed(lines: list[str]) -> list[str]:
    start, end = 0, len(lines)
    while start < end and not lines[start]:
        start += 1
    while end > start and not lines[end - 1]:
        end -= 1
    return lines[start:end]
