"""End the process quickly when a command holds many objects.

Freeing a hundred thousand jobs one by one takes as long as reading them, and interpreter
shutdown adds to that. A command that has printed its output may hold its objects until the
process exits; the kernel then frees the memory at once.
"""

import os
import sys
from typing import NoReturn

_held: list[object] = []


def hold_until_exit(*objects: object) -> None:
    """Hold these objects until the process exits, instead of those held before."""
    _held[:] = objects


def exit_process(status: int) -> NoReturn:
    """Exit with a status; skip interpreter shutdown if objects are held."""
    if _held:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            pass  # `sys.exit` reports it.
        else:
            os._exit(status)
    sys.exit(status)
