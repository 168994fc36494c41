"""Progress on standard error, where somebody looks at it; nothing is left of it at the end."""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.decision import Decision
from tenfold.model.units import Millis

CYCLES = 2_048
"""Cycles between two looks: a bar that moves ten times a second needs no more."""


@contextmanager
def progress(what: str, total: int) -> Generator[Callable[[int], None]]:
    """Give a function that says how many are done."""
    console = Console(stderr=True)
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
    """A witness of a run that says how many jobs are over."""

    def __init__(self, done: Callable[[int], None]) -> None:
        self._done = done
        self._left = CYCLES

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Count cycles, and look at the fleet once in a while."""
        self._left -= 1
        if self._left == 0:
            self._left = CYCLES
            self._done(fleet.ended)
