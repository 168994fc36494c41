"""What a command on the command line would leave out: `#SBATCH` lines, and standard input."""

import fcntl
import os
import re
import select
import shlex
import struct
import sys
import termios
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from stat import S_ISFIFO, S_ISREG
from typing import NamedTuple

from tenfold.cli.output import print_note

SCRIPT_BYTES = 64 << 10
"""Bytes of a script in which `#SBATCH` lines are looked for."""
PIPE_S = 0.2
"""How long the program before a pipe may take to write something."""
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "python", "python3", "cat"})
"""Programs that, without an argument, read standard input."""
_SHORT = {
    "J": "job-name",
    "A": "account",
    "N": "nodes",
    "G": "gpus",
    "c": "cpus-per-task",
    "t": "time",
    "a": "array",
    "d": "dependency",
    "D": "chdir",
    "C": "constraint",
}
_OPTIONS = {
    "job-name": ("name", "--name"),
    "account": ("team", "--team"),
    "nodes": ("nodes", "--nodes"),
    "gpus": ("gpus", "--gpus"),
    "gpus-per-node": ("gpus_per_node", "--gpus-per-node"),
    "gres": ("gpus_per_node", "--gpus-per-node"),
    "cpus-per-task": ("cpus_per_node", "--cpus"),
    "mem": ("memory_gib_per_node", "--mem"),
    "time": ("time_limit", "--time-limit"),
    "array": ("array", "--array"),
    "dependency": ("after", "--after"),
    "chdir": ("workdir", "--workdir"),
    "constraint": ("needs", "--needs"),
}
"""By Slurm's option, the key of a job file and the option of Tenfold."""
_RANGE = re.compile(r"0-(\d{1,6})\Z")
_GPUS = re.compile(r"(?:gpu:)?(?:[\w.-]+:)?(\d+)\Z")


class Directive(NamedTuple):
    """One option of an `#SBATCH` line."""

    text: str
    """As it is written."""
    key: str
    """The key of a job file that has the same meaning; empty if there is none."""
    option: str
    """The option of Tenfold with its value; empty if there is none."""


def array_size(text: str) -> int | None:
    """Return the size of an array that Slurm's range `0-19` has; None for other texts."""
    match = _RANGE.match(text.strip())
    return None if match is None else int(match[1]) + 1


def note_directives(words: Sequence[str], keys: Mapping[str, object]) -> None:
    """Print which `#SBATCH` options of a script are ignored, and the options to use instead."""
    for word in words[:3]:
        found = [one for one in directives(_head(word)) if not one.key or one.key not in keys]
        if not found:
            continue
        ignored = ", ".join(one.text for one in found)
        options = " ".join(dict.fromkeys(one.option for one in found if one.option))
        use = f"; use `{options}` before `--`" if options else ""
        print_note(f"the #SBATCH lines of `{word}` are ignored: {ignored}{use}")
        return


def directives(text: str) -> Iterator[Directive]:
    """Yield the options of the `#SBATCH` lines before the first command, as Slurm reads them."""
    for line in text.splitlines():
        if line.strip() and not line.startswith("#"):
            return
        if line.startswith("#SBATCH"):
            try:
                words = shlex.split(line.removeprefix("#SBATCH"), comments=True)
            except ValueError:
                words = line.removeprefix("#SBATCH").split()
            yield from _directives(words)


def _directives(words: list[str]) -> Iterator[Directive]:
    while words:
        word = words.pop(0)
        if word.startswith("--"):
            name, _, value = word[2:].partition("=")
        else:
            name, value = _SHORT.get(word[1:2], word), word[2:].removeprefix("=")
        if not value and words and not words[0].startswith("-"):
            value = words.pop(0)
            word = f"{word} {value}"
        key, option = _OPTIONS.get(name, ("", ""))
        translated = _value(name, value)
        yield Directive(word, key, f"{option} {shlex.quote(translated)}" if translated else "")


def _value(name: str, value: str) -> str:
    """Return the value as Tenfold's option has it; empty if it has no such value."""
    if name not in _OPTIONS:
        return ""
    if name == "array":
        size = array_size(value)
        return "" if size is None else str(size)
    if name == "dependency":
        return value.removeprefix("afterok:") if value.startswith("afterok:") else ""
    if name in ("gpus", "gpus-per-node", "gres"):
        match = _GPUS.match(value)
        return "" if match is None else match[1]
    if name == "mem" and value.isdigit():
        return f"{value}M"
    return value


def _head(word: str) -> str:
    """Return the beginning of a script; empty if the word is no readable file."""
    try:
        if not Path(word).is_file():
            return ""
        with Path(word).open("rb") as file:
            return file.read(SCRIPT_BYTES).decode(errors="replace")
    except (OSError, ValueError):
        return ""


def note_standard_input(words: Sequence[str], *, always: bool) -> None:
    """Print that the job does not get the standard input, if there is something to read.

    Without `always`, only for a command that would read nothing else.
    """
    reads = len(words) == 1 and Path(words[0]).name in SHELLS
    if (always or reads) and _has_input():
        print_note(
            "standard input is not connected to the job; save it in a file, and name the file in"
            " the command"
        )


def _has_input() -> bool:
    try:
        file = sys.stdin.fileno()
        mode = os.fstat(file).st_mode
        if S_ISREG(mode):
            return os.fstat(file).st_size > os.lseek(file, 0, os.SEEK_CUR)
        if not S_ISFIFO(mode) or not select.select([file], [], [], PIPE_S)[0]:
            return False
        (size,) = struct.unpack("i", fcntl.ioctl(file, termios.FIONREAD, b"\0" * 4))
    except (OSError, ValueError):
        return False
    return size > 0
