"""Other histories that the same demand could have left: blocks of days, drawn with replacement.

A history is one sample of its demand. A history drawn from its own days differs from it about as
much as it differs from the demand itself. A block keeps its hour of the day, and quiet days of the
week are drawn in place of quiet ones: nights and weekends stay where they are.
"""

from collections.abc import Sequence
from functools import cached_property
from math import expm1, sqrt

from msgspec.structs import replace

from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import DAY, Millis
from tenfold.sim.measure.window import Window, work_of
from tenfold.sim.seeded import seeded_fraction
from tenfold.sim.workload.scale import copy_marker

WEEK_DAYS = 7
WEEKS_LEAST = 8
"""From this many weeks on whole weeks are drawn, because days of one week are alike."""
DAYS_LEAST = 3
PARTS = 8
"""A history of fewer days is drawn in this many parts."""
QUIET = 0.6
"""Days of the week with less than this share of the usual jobs are drawn among themselves."""
Z80 = 1.2816
"""Standard deviations to either side of an 80% interval, if the deviation is known exactly."""


class Blocks:
    """The blocks of a history, and the histories that can be drawn from them."""

    def __init__(self, jobs: Sequence[Job], window: Window | None = None) -> None:
        self._first = jobs[0].submitted_ms
        span = jobs[-1].submitted_ms - self._first + 1
        self.block_ms = _block_ms(span, window)
        count = max(2, round(span / self.block_ms))
        self._members: list[list[Job]] = [[] for _ in range(count)]
        for job in jobs:
            block = (job.submitted_ms - self._first) // self.block_ms
            self._members[min(count - 1, block)].append(job)
        self._work = [sum(work_of(job) for job in members) for members in self._members]
        self._groups = self._alike()
        self._window = self._places(window)
        self._marker = f"{copy_marker(jobs)}drawn"

    @property
    def count(self) -> int:
        """How many blocks there are."""
        return len(self._members)

    @property
    def freedom(self) -> int:
        """Degrees of freedom of a deviation between blocks."""
        return max(1, self.count - len(self._groups))

    @cached_property
    def load_deviation(self) -> float:
        """Relative standard deviation of the load of histories of this length."""
        whole = sum(self._work)
        variance = sum(
            len(group) * _variance([self._work[place] for place in group]) for group in self._groups
        )
        return sqrt(variance) / whole if whole else 0.0

    def history(self, seed: int, times: int = 1) -> list[Job]:
        """Return a history drawn from the blocks, `times` as long, in order of submission."""
        jobs = [
            _moved(job, (place - block) * self.block_ms, f"{self._marker}{place}")
            for place, block in enumerate(self._draw(seed, times))
            for job in self._members[block]
        ]
        jobs.sort(key=lambda job: job.submitted_ms)
        return [replace(job, seq=seq) for seq, job in enumerate(jobs)]

    def load(self, seed: int) -> float:
        """Return the work of a drawn history over that of the real one, within the window."""
        drawn = self._draw(seed)
        work = sum(self._work[drawn[place]] for place in self._window)
        return max(1, work) / max(1, sum(self._work[place] for place in self._window))

    def _draw(self, seed: int, times: int = 1) -> list[int]:
        """Return the block that takes each place."""
        drawn: list[int] = []
        for place in range(times * self.count):
            # One group: any block. Two: quiet and usual days of the week, which keep their places.
            like = place if place < self.count else place % WEEK_DAYS
            group = next((one for one in self._groups if like in one), self._groups[0])
            drawn.append(group[int(seeded_fraction(seed, "block", place) * len(group))])
        return drawn

    def _places(self, window: Window | None) -> list[int]:
        if window is None:
            return list(range(self.count))
        since, until = (at - self._first for at in (window.from_ms, window.until_ms))
        inside = [
            place
            for place in range(self.count)
            if place * self.block_ms < until and (place + 1) * self.block_ms > since
        ]
        return inside or list(range(self.count))

    def _alike(self) -> list[list[int]]:
        """Return groups of blocks that may take each other's place."""
        everything = list(range(self.count))
        if self.block_ms != DAY or self.count < 2 * WEEK_DAYS:
            return [everything]
        days = [everything[day::WEEK_DAYS] for day in range(WEEK_DAYS)]
        jobs = [sum(len(self._members[place]) for place in day) / len(day) for day in days]
        usual = sorted(jobs)[WEEK_DAYS // 2]
        quiet = [many < QUIET * usual for many in jobs]
        groups = (
            [place for place in everything if quiet[place % WEEK_DAYS]],
            [place for place in everything if not quiet[place % WEEK_DAYS]],
        )
        return [group for group in groups if group]


def load_spread(jobs: Sequence[Job]) -> float:
    """Return how far the load of a history may be off that of its demand, at 80%."""
    if len(jobs) < 2:
        return 1.0
    blocks = Blocks(jobs)
    return expm1(deviations_80(blocks.freedom) * blocks.load_deviation)


def deviations_80(freedom: int) -> float:
    """Return the deviations of an 80% interval if the deviation itself is estimated (Student)."""
    return Z80 + 0.847 / freedom + 0.571 / freedom**2


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((one - mean) ** 2 for one in values) / max(1, len(values) - 1)


def _block_ms(span_ms: int, window: Window | None) -> int:
    """Return weeks or days; parts of a window of days must be days."""
    days = span_ms / DAY
    if days >= WEEKS_LEAST * WEEK_DAYS and window is None:
        return WEEK_DAYS * DAY
    return DAY if days >= DAYS_LEAST else max(1, span_ms // PARTS)


def _moved(job: Job, moved_ms: int, suffix: str) -> Job:
    """Return a job of a drawn block; it waits for no job, because that may not be there."""
    terms, deadline = job.terms, job.deadline_ms
    if terms is not None and (terms.array or terms.after):
        terms = replace(terms, array=terms.array and terms.array + suffix, after=())
    return replace(
        job,
        id=JobId(job.id + suffix),
        submitted_ms=Millis(job.submitted_ms + moved_ms),
        deadline_ms=None if deadline is None else Millis(deadline + moved_ms),
        terms=terms,
    )
