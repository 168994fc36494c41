"""Scale the jobs of a history by a factor.

Growth adds copies of what was submitted. Each copy has a mark, and at a factor those whose
mark lies below it are there: the work at one factor is part of the work at every larger one,
so two factors differ by what was added and not by chance. Marks are laid out along the GPU time
of the copies in a drawn order; so the work at a factor is that of the history times the
factor, to within one submission, however few jobs hold most of it.

Copies at one moment would be bursts and not more arrivals. A copy is moved by whole days, which
keeps the hour of the day, and by whole weeks where the history has two. Where a history has
fewer days than copies, further ones come some minutes later as well.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain
from math import ceil

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis, grows_along
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job
from tenfold.model.units import DAY, MINUTE, Millis
from tenfold.sim.measure.meters import requested_milli
from tenfold.sim.seeded import seeded_fraction
from tenfold.sim.workload.batches import submission_batches
from tenfold.sim.workload.scale_size import ScalingCurve, scale_job_sizes

WEEK = 7 * DAY
WEEKS_KEPT_MS = 2 * WEEK
"""From this span on a copy stays on its day of the week."""
COPY = "~"
"""Stands between the name of a job and the number of its copy."""

Unit = list[list[int]]
"""What comes or does not come as a whole: submissions, each as the places of its jobs."""


def scale_jobs(
    jobs: Sequence[Job],
    axis: Axis,
    factor: float,
    seed: int,
    *,
    scaling: Mapping[str, ScalingCurve] | None = None,
    span_ms: Millis | None = None,
) -> list[Job]:
    """Return the jobs at a factor of an axis, in order of submission.

    Factor 1 is the history itself, and below it some of its submissions are missing. On an
    axis of teams whole teams are copied, each into a queue of its own.
    """
    if axis == "job-size":
        return list(jobs) if factor == 1 else scale_job_sizes(jobs, factor, scaling or {})
    if factor == 1 or not jobs or not grows_along(axis, "jobs"):
        return list(jobs)
    by_team = grows_along(axis, "teams")
    batches = submission_batches(jobs)
    units = _teams(jobs, batches) if by_team else [[batch] for batch in batches]
    shifts = _DayShifts(jobs, span_ms, seed)
    marker = copy_marker(jobs)
    work: list[tuple[int, int, Job]] = []
    for copy in range(ceil(factor)):
        for unit in _included(jobs, units, copy, factor - copy, seed):
            for batch in unit:
                moved_ms = shifts.moved_ms(batch, copy)
                work += [
                    (copy, place, one)
                    for place, one in _copied(jobs, batch, copy, moved_ms, marker, by_team)
                ]
    work.sort(key=lambda row: (row[2].submitted_ms, row[0], row[1]))
    return [
        one if one.seq == seq else replace(one, seq=seq) for seq, (_, _, one) in enumerate(work)
    ]


def copy_marker(jobs: Sequence[Job]) -> str:
    """Return the marker before the number of a copy; no job id of the history contains it."""
    marker = COPY
    while any(marker in job.id for job in jobs):
        marker += COPY
    return marker


def original_id(name: str, marker: str = COPY) -> JobId:
    """Return the job of the history that a job is a copy of, or is."""
    return JobId(name.partition(marker)[0])


def total_work_milli_ms(jobs: Sequence[Job]) -> int:
    """Return the GPU time that jobs request, in thousandths of a GPU."""
    return sum(requested_milli(job) * (job.duration_ms or 0) for job in jobs)


def _teams(jobs: Sequence[Job], batches: Sequence[list[int]]) -> list[Unit]:
    """Return the submissions of each team; one of several teams counts for its first job's."""
    teams: dict[str, Unit] = {}
    for batch in batches:
        teams.setdefault(jobs[batch[0]].team, []).append(batch)
    return list(teams.values())


def _included(
    jobs: Sequence[Job], units: Sequence[Unit], copy: int, share: float, seed: int
) -> list[Unit]:
    """Return the units of which this copy is there: those below `share` of all the work."""
    if share >= 1:
        return list(units)
    names = [jobs[unit[0][0]].id for unit in units]
    ranks = [seeded_fraction(seed, "grown", copy, name) for name in names]
    order = sorted(range(len(units)), key=lambda place: (ranks[place], names[place]))
    weights = [_weight(jobs, units[place]) for place in order]
    if not any(weights):
        weights = [1] * len(units)
    cumulative = list(accumulate(weights))
    target_work = share * cumulative[-1]
    included = [
        place
        for place, weight, until in zip(order, weights, cumulative, strict=True)
        if until - weight / 2 < target_work
    ]
    return [units[place] for place in sorted(included)]


def _weight(jobs: Sequence[Job], unit: Unit) -> int:
    return total_work_milli_ms([jobs[place] for place in chain.from_iterable(unit)])


def _copied(
    jobs: Sequence[Job], batch: Sequence[int], copy: int, moved_ms: int, marker: str, by_team: bool
) -> list[tuple[int, Job]]:
    """Return the jobs of one copy of a submission; the first is the history's own."""
    if copy == 0:
        return [(place, jobs[place]) for place in batch]
    suffix = f"{marker}{copy}"
    own = {jobs[place].id for place in batch}
    made: list[tuple[int, Job]] = []
    for place in batch:
        job, terms = jobs[place], jobs[place].terms
        if terms is not None and (terms.array or terms.after):
            after = tuple(JobId(one + suffix) if one in own else one for one in terms.after)
            array = terms.array and terms.array + suffix
            terms = replace(terms, array=array, after=after)
        deadline = job.deadline_ms
        made.append(
            (
                place,
                replace(
                    job,
                    id=JobId(job.id + suffix),
                    submitted_ms=Millis(job.submitted_ms + moved_ms),
                    deadline_ms=None if deadline is None else Millis(deadline + moved_ms),
                    team=TeamId((job.team or "team") + suffix) if by_team else job.team,
                    terms=terms,
                ),
            )
        )
    return made


class _DayShifts:
    """Where copies of a submission may be moved to, none twice while there is another day."""

    def __init__(self, jobs: Sequence[Job], span_ms: Millis | None, seed: int) -> None:
        self._jobs, self._seed = jobs, seed
        self._first = jobs[0].submitted_ms
        self._span = span_ms or jobs[-1].submitted_ms - self._first
        self._step = WEEK if self._span >= WEEKS_KEPT_MS else DAY

    def moved_ms(self, batch: Sequence[int], copy: int) -> int:
        """Return how far a copy of a submission is moved, earlier or later."""
        if copy == 0:
            return 0
        first = self._jobs[batch[0]]
        since_first_ms = first.submitted_ms - self._first
        last = max(self._jobs[place].submitted_ms for place in batch) - self._first
        earlier, later = since_first_ms // self._step, max(0, (self._span - last) // self._step)
        day_steps = [step for step in range(-earlier, later + 1) if step]
        offset = int(seeded_fraction(self._seed, "day", first.id) * max(1, len(day_steps)))
        if copy <= len(day_steps):
            return day_steps[(offset + copy) % len(day_steps)] * self._step
        minutes = 1 + int(seeded_fraction(self._seed, "minute", first.id, copy) * 59)
        steps = [0, *day_steps]
        return steps[(offset + copy) % len(steps)] * self._step + minutes * MINUTE
