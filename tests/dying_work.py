"""Work for processes that a test starts: some of it ends the process that does it."""

import os
import signal


def square_or_die(number: int) -> int:
    """Return the square; a 3 kills its process as a machine out of memory would."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


def say_dead(number: int, why: str) -> int:
    """Stand in for a result that never came."""
    assert "killed" in why
    return -number
