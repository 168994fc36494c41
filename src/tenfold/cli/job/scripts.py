"""What a command on the command line would leave out: standard input."""

import fcntl
import os
import select
import struct
import sys
import termios
from collections.abc import Sequence
from pathlib import Path
from stat import S_ISFIFO, S_ISREG

from tenfold.cli.output import print_note

PIPE_S = 0.2
"""How long the program before a pipe may take to write something."""
SHELLS = frozenset({"bash", "sh", "zsh", "dash", "python", "python3", "cat"})
"""Programs that, without an argument, read standard input."""


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
