"""Group the jobs of a history that were submitted together, to copy them together.

A sweep, an array or a chain of dependent jobs is one submission. Copied job by job, dependencies
would break and bursts would be spread out.
"""

from collections.abc import Sequence

from tenfold.model.job.job import Job
from tenfold.model.units import HOUR, MINUTE

GAP_MS = MINUTE
"""Jobs alike of one user are one submission while they come at least so often ..."""
SPAN_MS = HOUR
"""... and for at most so long: a robot that submits all day makes many."""


def submission_batches(jobs: Sequence[Job]) -> list[list[int]]:
    """Return the places of jobs that belong together, in order of their first."""
    parents = list(range(len(jobs)))
    _join_linked(jobs, parents)
    _join_similar(jobs, parents)
    groups: dict[int, list[int]] = {}
    for place in range(len(jobs)):
        groups.setdefault(_root(parents, place), []).append(place)
    return list(groups.values())


def _join_linked(jobs: Sequence[Job], parents: list[int]) -> None:
    """Join the members of arrays, and jobs with those that they come after."""
    if not any(job.terms is not None for job in jobs):
        return
    places = {job.id: place for place, job in enumerate(jobs)}
    arrays: dict[str, int] = {}
    for place, job in enumerate(jobs):
        if job.terms is None:
            continue
        if job.terms.array:
            _join(parents, arrays.setdefault(job.terms.array, place), place)
        for other in job.terms.after:
            if other in places:
                _join(parents, places[other], place)


def _join_similar(jobs: Sequence[Job], parents: list[int]) -> None:
    """Join jobs that one user submits in one go; of an unknown user, those of one moment."""
    open_now: dict[tuple[str, str, str], tuple[int, int, int]] = {}
    for place, job in enumerate(jobs):
        key, now = (job.team, job.user, job.shape.key), job.submitted_ms
        first, began, last = open_now.get(key, (place, now, now))
        gap = GAP_MS if job.user else 0
        if now - last <= gap and now - began <= SPAN_MS:
            _join(parents, first, place)
        else:
            first, began = place, now
        open_now[key] = (first, began, now)


def _root(parents: list[int], place: int) -> int:
    while parents[place] != place:
        parents[place] = parents[parents[place]]
        place = parents[place]
    return place


def _join(parents: list[int], one: int, other: int) -> None:
    """Merge two groups under the earlier of their first jobs, to keep a stable order."""
    low, high = sorted((_root(parents, one), _root(parents, other)))
    parents[high] = low
