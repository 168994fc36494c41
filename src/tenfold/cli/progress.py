"""Show a transient progress bar on standard error if it is a terminal."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tenfold.cli.screen import ScreenConsole
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.decision import Decision
from tenfold.model.units import Millis

CYCLES = 2_048
"""Cycles between updates: enough for about ten updates a second."""


@contextmanager
def progress(what: str, total: int) -> Generator[Callable[[int], None]]:
    """Yield a function that sets the number of completed items."""
    console = ScreenConsole(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=max(1, total))

        def done(count: int) -> None:
            bar.update(task, completed=count)

        yield done


class JobsDone:
    """A witness that reports how many jobs of a run have ended."""

    def __init__(self, done: Callable[[int], None]) -> None:
        self._done = done
        self._left = CYCLES

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Count cycles and update the bar every `CYCLES`."""
        self._left -= 1
        if self._left == 0:
            self._left = CYCLES
            self._done(fleet.ended)
