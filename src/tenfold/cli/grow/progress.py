"""Progress of an analysis on standard error, if that is a terminal.

The number of runs is not known in advance, so there is a count and no bar.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from tenfold.cli.screen import ScreenConsole


@contextmanager
def counting(what: str) -> Generator[Callable[[int], None]]:
    """Give a function that reports how many are done, without a total."""
    console = ScreenConsole(stderr=True)
    count = TextColumn("{task.completed:,.0f}")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), count, TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda many: bar.update(task, completed=many)
