"""Progress of a climb on standard error, where somebody looks at it.

How many runs a ladder takes is known only at its top, so there is a count and no bar.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn


@contextmanager
def counting(what: str) -> Generator[Callable[[int], None]]:
    """Give a function that says how many are done, where nobody knows of how many."""
    console = Console(stderr=True)
    count = TextColumn("{task.completed:,.0f}")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), count, TimeElapsedColumn())
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(what, total=None)
        yield lambda many: bar.update(task, completed=many)
