"""Progress of an analysis on standard error: a live count on a terminal, or else a line at times.

The number of runs is not known in advance, so there is a count and no bar.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from tenfold.cli.output import print_note
from tenfold.clock import Stopwatch

NOTE_EVERY_S = 10.0
"""Seconds between lines; an analysis that takes less prints none."""


@contextmanager
def counting(what: str) -> Generator[Callable[[int], None]]:
    """Give a function that reports how many are done, without a total."""
    # It takes longer to import than an analysis without runs takes.
    from rich.progress import (  # noqa: PLC0415
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    from tenfold.cli.screen import ScreenConsole  # noqa: PLC0415

    console = ScreenConsole(stderr=True)
    count = TextColumn("{task.completed:,.0f}")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), count, TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda many: bar.update(task, completed=many)


def noting(what: str, elapsed_s: Callable[[], float] | None = None) -> Callable[[int], None]:
    """Return a function that prints how many are done, at most every few seconds."""
    seconds = elapsed_s or Stopwatch().wall_s
    due_s = NOTE_EVERY_S

    def done(many: int) -> None:
        nonlocal due_s
        now_s = seconds()
        if now_s >= due_s:
            due_s = now_s + NOTE_EVERY_S
            print_note(f"{many:,} {what} done after {now_s:.0f} s")

    return done
