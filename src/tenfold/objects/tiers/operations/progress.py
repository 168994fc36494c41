"""Go over the live blobs of a catalogue and count what became of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec

from tenfold.objects.catalog.moves import LiveBlob, Moves
from tenfold.objects.tiers.mover import Outcome

_AT_ONCE = 4
_PAGE = 500
_PROBLEMS_MAX = 100


class Problem(msgspec.Struct, frozen=True):
    """An object that is not as it should be, and why."""

    key: str
    blob: str
    problem: str


class Progress(msgspec.Struct):
    """What an operation did. Problems beyond the first hundred are only counted."""

    blobs: int = 0
    bytes_looked_at: int = 0
    moved: int = 0
    replaced_meanwhile: int = 0
    bytes_written: int = 0
    failed: int = 0
    problems: list[Problem] = []

    def add(self, live: LiveBlob, outcome: Outcome) -> None:
        """Count the outcome of a move."""
        self.moved += outcome.result == "moved"
        self.replaced_meanwhile += outcome.result == "gone"
        self.bytes_written += outcome.bytes_written
        if outcome.result == "failed":
            self.fail(live, outcome.problem)

    def fail(self, live: LiveBlob, problem: str) -> None:
        """Record an object with a problem."""
        self.failed += 1
        if len(self.problems) < _PROBLEMS_MAX:
            self.problems.append(Problem(live.key, live.ref.id, problem))


Step = Callable[[LiveBlob], Awaitable[None]]


async def for_each_live(moves: Moves, progress: Progress, step: Step) -> None:
    """Run a step for every live blob, some at once."""
    slots = asyncio.Semaphore(_AT_ONCE)

    async def run(live: LiveBlob) -> None:
        async with slots:
            progress.blobs += 1
            progress.bytes_looked_at += live.ref.size_bytes
            await step(live)

    async for page in pages(moves):
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[Any]] = [group.create_task(run(live)) for live in page]
            del tasks


async def pages(moves: Moves) -> AsyncIterator[list[LiveBlob]]:
    """Yield the live blobs, page by page."""
    cursor = ""
    while page := moves.live(cursor, _PAGE):
        cursor = page[-1].cursor
        yield page
        # Let requests of this process in between pages.
        await asyncio.sleep(0)
