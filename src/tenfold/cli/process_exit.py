"""How the process ends: at once where much was made that nobody needs any more.

To free a hundred thousand jobs one by one takes as long as to read them, and then the
interpreter takes itself apart on top of that. A command that has said all it has to say may
have what it made kept instead; the kernel takes back the memory of a process in one piece.
"""

import os
import sys
from typing import NoReturn

_held: list[object] = []


def hold_until_exit(*objects: object) -> None:
    """Have these kept to the end of the process, in place of what was kept before."""
    _held[:] = objects


def exit_process(status: int) -> NoReturn:
    """End the process with a status; at once where anything is kept."""
    if _held:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            pass  # The usual way out says so.
        else:
            os._exit(status)
    sys.exit(status)
