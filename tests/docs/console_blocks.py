"""The blocks of a page: what each is, and how output is compared with what is shown.

A page is a small session (see `page_session.py`). In a `console` block a line `$ ...` is a
command and what follows is its output; a line `...` stands for any lines. `bash` and `python`
blocks run to their end. A line before a block says what else is done with it:

    <!-- file: fleet.toml -->       write it to this file, for later commands of the page
    <!-- append: fleet.toml -->     add it to this file
    <!-- check: policy -->          read it as this kind of file (see `shown_files.py`)
    <!-- not run in tests: needs podman -->   do not run it

A page whose commands need more packages than a small install has says `<!-- needs: openai -->`.
Commands that only prepare the page are in a comment that begins with `<!-- setup`, or with
`<!-- setup python`, and ends with `-->`, each on a line of its own.
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
_MARK = re.compile(r"^\s*<!-- (?P<verb>file|append|check): (?P<name>[\w./-]+) -->\s*$")
_NOT_RUN = re.compile(r"^\s*(?:\*N|<!-- n)ot run in tests: (?P<name>.+?)\.?(?:\*| -->)\s*$")
_SETUP = re.compile(r"^<!-- setup(?: (?P<name>python))?$")
_PROGRESS = re.compile(r"note: [\d,]+ [\w -]+ done after [\d,.]+ s$")
_LONG_DECIMAL = re.compile(r"\d+\.\d{7,}(?:e[+-]?\d+)?")


class Block(NamedTuple):
    """A block: where it begins, its kind and lines, and what the line before it says.

    `verb` is `file`, `append`, `check`, `not-run` or empty; `name` is the file, its kind or the
    reason. The kind of a setup comment is `setup`, and its name `python` or empty.
    """

    line: int
    kind: str
    lines: list[str]
    verb: str
    name: str


class Command(NamedTuple):
    """A command and the output that the page shows for it."""

    text: str
    shown: list[str]


def documents() -> list[Path]:
    """Return every page that may hold commands."""
    pages = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *sorted((ROOT / "examples").glob("*/README.md")), *pages]


def blocks(text: str) -> Iterator[Block]:
    """Yield the fenced blocks and setup comments of a page in order."""
    open_at, kind, lines, mark = 0, "", [], ("", "")
    before = ("", "")
    for number, line in enumerate(text.splitlines(), start=1):
        fence = _FENCE.match(line)
        setup = _SETUP.match(line)
        is_end = line == "-->" if kind == "setup" else fence is not None and not fence["kind"]
        if open_at and is_end:
            yield Block(open_at, kind, lines, *mark)
            open_at, kind, before = 0, "", ("", "")
        elif open_at:
            lines.append(line)
        elif setup:
            open_at, kind, lines, mark = number, "setup", [], ("", setup["name"] or "")
        elif fence:
            open_at, kind, lines, mark = number, fence["kind"], [], before
        elif line.strip():
            before = _mark(line)


def _mark(line: str) -> tuple[str, str]:
    """Return what a line says about the block after it."""
    if named := _MARK.match(line):
        return named["verb"], named["name"]
    if named := _NOT_RUN.match(line):
        return "not-run", named["name"]
    return "", ""


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
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=environment(programs),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=HANG_S,
        check=False,
    )
    return trimmed(done.stdout)


def environment(programs: Path = PROGRAMS) -> dict[str, str]:
    """Return the environment of documented commands: `tenfold` is from `programs`, and warm."""
    kept = {key: value for key, value in os.environ.items() if "TENFOLD" not in key}
    warm = folder_with_tenfold(str(programs / "python"))
    path = os.pathsep.join([str(warm), str(programs), os.environ["PATH"]])
    return {**kept, "PATH": path, "NO_COLOR": "1", "COLUMNS": WIDTH}


def trimmed(text: str) -> list[str]:
    """Return the lines of what a command printed, without empty ones around them.

    Notes on progress are left out: whether there are any depends on how fast the machine is.
    """
    return _trimmed([line.rstrip() for line in text.splitlines() if not _PROGRESS.match(line)])


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
