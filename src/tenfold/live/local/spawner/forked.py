"""Start of a fork of the spawner: close everything except what it is given."""

import fcntl
import gc
import os
from collections.abc import Callable
from typing import NoReturn

from tenfold.live.local.spawner.log import log

EXIT_BUG = 70
LOCK_FILE, LINK_FILE = 3, 4
"""Descriptors of a fork's lock and link; higher ones are closed."""
_FD_ABOVE = 16
"""Above those: descriptors are moved there first, so none is overwritten."""


def run_forked(kept: list[int], work: Callable[[], None]) -> NoReturn:
    """Run `work` in this fork with only these descriptors open."""
    status = EXIT_BUG
    try:
        gc.disable()
        os.setsid()
        staging = [fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, _FD_ABOVE) for file in kept]
        for number, file in enumerate(staging, start=LOCK_FILE):
            os.dup2(file, number, inheritable=False)
        os.closerange(LOCK_FILE + len(kept), os.sysconf("SC_OPEN_MAX"))
        work()
        status = 0
    except BaseException:
        import traceback  # noqa: PLC0415 - large, and no supervisor that works needs it

        log(traceback.format_exc())
    finally:
        os._exit(status)
