"""How a job came to its end, in words that name the exit code, the signal or who took it back."""

from collections.abc import Sequence
from signal import Signals

from tenfold.journal.rows import AttemptRow

SIGNALLED = 128
"""What is added to the number of a signal to make the exit code of what it ended."""


def failed_words(attempts: Sequence[AttemptRow]) -> str:
    """Return how the last attempt of a job that failed by itself ended."""
    code = attempts[-1].exit_code if attempts else None
    return "the command failed" if code is None else f"the command failed with {exit_words(code)}"


def exit_words(code: int) -> str:
    """Return an exit code, with the signal that it stands for where it stands for one.

    A command that a signal ended and one that gives 128 and its number itself look alike.
    """
    try:
        return f"exit code {code} ({Signals(code - SIGNALLED).name})"
    except ValueError:
        return f"exit code {code}"
