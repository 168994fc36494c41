"""Gaps in a history: days or weeks without records, against the history's own rhythm.

A dump with missing weeks makes a fleet look idle: its work is spread over time in which jobs ran
that nobody wrote down. A gap is found by the hours in which jobs would have been submitted,
by hour of the week in the rest of the history: nights and weekends that are always quiet count
for nothing. It must also be far longer than any ordinary pause of the same history. Gaps are cut
out in whole days, and everything is computed from the time that is covered.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.units import DAY, HOUR, Millis
from tenfold.report.figures import count
from tenfold.study.grow.inputs import GrowInputs

JOBS_LEAST = 20
GAP_MS_LEAST = DAY
ACTIVE_HOURS_LEAST = 6.0
"""Hours with submissions that a gap should have had."""
LONGER_LEAST = 3.0
"""How many times longer than an ordinary pause a gap is, by such hours."""
GAPS_LEAST, GAP_EVERY_MS = 2, 14 * DAY
"""Pauses that come more often than this are the rhythm of the history."""
WEEK_HOURS = 168
DAY_HOURS = 24
WEEKS_FOR_RHYTHM = 2
PASSES = 4
NAMED_MOST = 3


class Gap(NamedTuple):
    """Time without records, from one submission to the next."""

    from_ms: int
    until_ms: int

    @property
    def cut_ms(self) -> int:
        """What is cut out: whole days, so that the hour of the day stays."""
        return (self.until_ms - self.from_ms) // DAY * DAY


def gaps_of(jobs: Sequence[Job]) -> list[Gap]:
    """Return the gaps of a history, in order."""
    if len(jobs) < JOBS_LEAST:
        return []
    times = sorted(dict.fromkeys(job.submitted_ms for job in jobs))
    pauses = [Gap(*pair) for pair in pairwise(times)]
    most = max(GAPS_LEAST, (times[-1] - times[0]) // GAP_EVERY_MS)
    gaps: list[Gap] = []
    for _ in range(PASSES):
        rhythm = _Rhythm(times, gaps)
        found = _far_longer([(rhythm.active_hours(pause), pause) for pause in pauses], most)
        if found == gaps:
            break
        gaps = found
    return gaps


def covered(inputs: GrowInputs) -> GrowInputs:
    """Return the inputs without the gaps of their history, with a note on them."""
    gaps = [] if inputs.mix else gaps_of(inputs.jobs)
    if not gaps:
        return inputs
    ends, cuts = [gap.until_ms for gap in gaps], [0]
    for gap in gaps:
        cuts.append(cuts[-1] + gap.cut_ms)
    moved = {job.id: cuts[bisect_right(ends, job.submitted_ms)] for job in inputs.jobs}
    return replace(
        inputs,
        jobs=[_earlier(job, moved[job.id]) for job in inputs.jobs],
        starts_ms=_earlier_starts(inputs.starts_ms, moved),
        notes=(*inputs.notes, _note(gaps, inputs.jobs)),
    )


def _far_longer(pauses: Sequence[tuple[float, Gap]], most: int) -> list[Gap]:
    """Return the few pauses that are far longer than all others."""
    ranked = sorted(pauses, reverse=True)
    for place in range(min(most, len(ranked) - 1), 0, -1):
        least, ordinary = ranked[place - 1], ranked[place][0]
        if least[0] >= ACTIVE_HOURS_LEAST and least[0] >= LONGER_LEAST * ordinary:
            return sorted(gap for _, gap in ranked[:place] if gap.cut_ms >= GAP_MS_LEAST)
    return []


class _Rhythm:
    """How often each hour of the week has submissions, where the history is covered."""

    def __init__(self, times: Sequence[int], gaps: Sequence[Gap]) -> None:
        self._first = times[0]
        self._hours = (times[-1] - self._first) // HOUR + 1
        active = dict.fromkeys((at - self._first) // HOUR for at in times)
        missing = [False] * self._hours
        for gap in gaps:
            for hour in range(*self._inside(gap)):
                missing[hour] = True
        self._period = self._period_of(missing)
        there, seen = [0] * self._period, [0] * self._period
        for hour in range(self._hours):
            if not missing[hour]:
                there[hour % self._period] += 1
                seen[hour % self._period] += hour in active
        whole = sum(seen) / max(1, sum(there))
        self._share = [
            many / hours if hours else whole for many, hours in zip(seen, there, strict=True)
        ]

    def active_hours(self, pause: Gap) -> float:
        """Return the hours of a pause that would usually have had submissions."""
        since, until = self._inside(pause)
        if until <= since:
            return 0.0
        rounds, rest = divmod(until - since, self._period)
        shares = (self._share[(since + hour) % self._period] for hour in range(rest))
        return rounds * sum(self._share) + sum(shares)

    def _inside(self, gap: Gap) -> tuple[int, int]:
        """Return the whole hours without a submission."""
        return (gap.from_ms - self._first) // HOUR + 1, (gap.until_ms - self._first) // HOUR

    def _period_of(self, missing: Sequence[bool]) -> int:
        """Return a week, or a day if fewer than two weeks are covered."""
        covered_hours = self._hours - sum(missing)
        return WEEK_HOURS if covered_hours >= WEEKS_FOR_RHYTHM * WEEK_HOURS else DAY_HOURS


def _earlier(job: Job, by_ms: int) -> Job:
    if not by_ms:
        return job
    deadline = job.deadline_ms
    return replace(
        job,
        submitted_ms=Millis(job.submitted_ms - by_ms),
        deadline_ms=None if deadline is None else Millis(deadline - by_ms),
    )


def _earlier_starts(
    starts_ms: Mapping[JobId, Millis], moved: Mapping[JobId, int]
) -> Mapping[JobId, Millis]:
    return {name: Millis(at - moved.get(name, 0)) for name, at in starts_ms.items()}


def _note(gaps: Sequence[Gap], jobs: Sequence[Job]) -> str:
    first = jobs[0].submitted_ms
    said = [
        f"{_days(gap.cut_ms)} from day {(gap.from_ms - first) / DAY + 1:.0f}"
        for gap in gaps[:NAMED_MOST]
    ]
    more = f" and {count(len(gaps) - NAMED_MOST, 'more gap')}" if len(gaps) > NAMED_MOST else ""
    whole = jobs[-1].submitted_ms - first
    left = whole - sum(gap.cut_ms for gap in gaps)
    return (
        f"gaps in the history: no records for {', '.join(said)}{more}; "
        f"fitted to the {left / DAY:.0f} days of {whole / DAY:.0f} that are covered"
    )


def _days(ms: int) -> str:
    return count(ms // DAY, "day")
