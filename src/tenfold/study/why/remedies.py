"""Fixes for a pending job, each tested on a fork, with their cost; cheapest first.

The cost is GPU time that other jobs lose (work since their last checkpoint, plus restarts) and
GPU time that is rented. A change after which the decider preempts jobs costs what they lose.
Changes without cost come first; those that reduce the request come last.
"""

from collections.abc import Iterable, Sequence
from typing import Literal, get_args

from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.place.explain.why import Blocked
from tenfold.decide.place.queue.pending_queues import JobClass
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.reason import Reason
from tenfold.model.units import HOUR, UsdMicros
from tenfold.study.why.advice import advice_of
from tenfold.study.why.candidates import (
    REDUCING,
    Candidate,
    RemedyKind,
    combined_changes,
    costly_changes,
    free_changes,
    reduced_requests,
)
from tenfold.study.why.changes import (
    Change,
    CombinedChange,
    MoveJobs,
    NoChange,
    RentNodes,
    Slots,
    StopJobs,
)
from tenfold.study.why.search import lost_gpu_ms
from tenfold.study.why.trial import Started, Trials

ORDER: tuple[RemedyKind, ...] = get_args(RemedyKind)
RemedySearch = Literal["none", "cheapest", "every"]
"""Which fixes to look for; the search for the cheapest stops when no other can beat it."""


class Remedy(Struct, frozen=True, kw_only=True):
    """A change after which the decider starts the job."""

    kind: RemedyKind
    advice: Reason
    """What to do, and which jobs it preempts."""
    change: Change
    slots: Slots
    """Where it would start."""
    stopped: tuple[JobId, ...] = ()
    """Jobs that the decider preempts for it."""
    also_starts: tuple[JobId, ...] = ()
    """Other pending jobs that start too, and would not without the change."""
    lost_gpu_ms: int = 0
    """GPU time that other jobs lose."""
    rented_gpu_ms: int = 0
    usd_micros: UsdMicros | None = None
    """The total cost, if the policy has a price."""
    sentence: str = ""
    """The advice rendered for its reader."""


def remedies(
    trials: Trials, job: Job, job_class: JobClass, blocked: Blocked, *, every: bool = False
) -> tuple[Remedy, ...]:
    """Return changes that would start a job, cheapest first; only those that were tested."""
    settled, evaluator = trials.settled, _Evaluator(trials, job, job_class)
    free = evaluator.evaluate("free", NoChange())
    if free is not None and (not every or not free.stopped):
        return (free,)
    search = _Search(evaluator, [] if free is None else [free], every=every)
    search.try_in_order(free_changes(settled, job, job_class))
    search.try_by_cost(costly_changes(settled, job, job_class, blocked))
    if every or not search.found:
        search.try_in_order(reduced_requests(settled, job))
    if not search.found:
        search.try_in_order(combined_changes(settled, job, job_class))
    return _in_order(search.found)


class _Search:
    """Tries changes until the cheapest is known, or all of them."""

    def __init__(self, evaluator: "_Evaluator", found: list[Remedy], *, every: bool) -> None:
        self.found = found
        self._evaluator = evaluator
        self._every = every
        self._done: dict[RemedyKind, None] = dict.fromkeys(each.kind for each in found)
        self._over = False

    def try_in_order(self, candidates: Iterable[Candidate]) -> None:
        """Try changes in order; one without cost ends the search."""
        for kind, change in candidates if not self._over else ():
            if kind not in self._done:
                self._try(kind, change)
            if self._over:
                return

    def try_by_cost(self, candidates: Iterable[Candidate]) -> None:
        """Try changes by their minimum cost, while that is below the best found."""
        if self._over:
            return
        evaluator = self._evaluator
        bounds = [(evaluator.least_gpu_ms(each[1]), each) for each in candidates]
        for least, (kind, change) in sorted(bounds, key=lambda each: each[0]):
            if not self._every and self.found and evaluator.is_more_expensive(least, self.found):
                return
            if kind not in self._done:
                self._try(kind, change)

    def _try(self, kind: RemedyKind, change: Change) -> None:
        remedy = self._evaluator.evaluate(kind, change)
        if remedy is not None:
            self.found.append(remedy)
            self._done[kind] = None
            costs = remedy.lost_gpu_ms + remedy.rented_gpu_ms
            self._over = not self._every and not (costs or remedy.stopped)


class _Evaluator:
    """Tests changes for one job, and prices those that work."""

    def __init__(self, trials: Trials, job: Job, job_class: JobClass) -> None:
        self._trials = trials
        self._fleet = trials.fleet
        self._settled = trials.settled
        self._job = job
        self._job_class = job_class

    def evaluate(self, kind: RemedyKind, change: Change) -> Remedy | None:
        """Return a change as a remedy if the decider then starts the job."""
        started = self._trials.started(self._job.id, change)
        return None if started is None else self._priced((kind, change), started)

    def least_gpu_ms(self, change: Change) -> int:
        """Return the cost of a change itself, without preemptions by the decider."""
        held = self._settled.state.allocations.held
        lost = lost_gpu_ms(self._settled, (held[each] for each in _affected_jobs(change)))
        return lost + self._rented_gpu_ms(change)

    def is_more_expensive(self, least: int, found: Sequence[Remedy]) -> bool:
        """Return whether a found remedy costs less than this minimum."""
        prices = self._settled.govern.usd_micros_per_gpu_hour
        types = dict.fromkeys(node.accelerator for node in self._fleet.nodes.values())
        if prices and len(types) > 1:
            # GPU time of one type may cost more than that of another.
            return False
        return min(each.lost_gpu_ms + each.rented_gpu_ms for each in found) < least

    def _priced(self, candidate: Candidate, started: Started) -> Remedy:
        kind, change = candidate
        settled, held = self._settled, self._settled.state.allocations.held
        disturbed = list(started.stopped)
        disturbed += _affected_jobs(change)
        lost = lost_gpu_ms(
            settled, (held[each] for each in dict.fromkeys(disturbed) if each in held)
        )
        rented = self._rented_gpu_ms(change)
        also = tuple(each for each in started.also if settled.is_pending_after(each))
        return Remedy(
            kind=kind,
            advice=advice_of(settled, self._job, change, replace(started, also=also)),
            change=change,
            slots=started.slots,
            stopped=started.stopped,
            also_starts=also,
            lost_gpu_ms=lost,
            rented_gpu_ms=rented,
            usd_micros=self._usd(started.slots, lost + rented),
        )

    def _rented_gpu_ms(self, change: Change) -> int:
        steps = change.steps if isinstance(change, CombinedChange) else (change,)
        rents = [step for step in steps if isinstance(step, RentNodes)]
        gpus = sum(each.nodes * self._fleet.nodes[each.like].gpus for each in rents)
        # The minimum rental is one hour.
        return gpus * max(self._job.limit_ms or HOUR, HOUR)

    def _usd(self, slots: Slots, gpu_ms: int) -> UsdMicros | None:
        node = self._fleet.nodes.get(slots[0].node)
        accelerator = self._job_class.options[0].accelerator if node is None else node.accelerator
        price = self._settled.govern.usd_micros_per_gpu_hour.get(accelerator)
        return None if price is None else UsdMicros(gpu_ms * price // HOUR)


def _in_order(found: Sequence[Remedy]) -> tuple[Remedy, ...]:
    in_usd = all(each.usd_micros is not None for each in found)

    def key(each: Remedy) -> tuple[bool, bool, int, int, int, int]:
        price = (each.usd_micros or 0) if in_usd else each.lost_gpu_ms + each.rented_gpu_ms
        moved = len(each.change.jobs) if isinstance(each.change, MoveJobs) else 0
        stopped = len(each.stopped) + len(_affected_jobs(each.change)) - moved
        is_less = each.kind in REDUCING
        return each.kind != "free", is_less, price, stopped, moved, ORDER.index(each.kind)

    return tuple(sorted(found, key=key))


def _affected_jobs(change: Change) -> list[JobId]:
    """Return the jobs that a change stops or moves."""
    if isinstance(change, StopJobs):
        return list(change.jobs)
    return [each.job_id for each in change.jobs] if isinstance(change, MoveJobs) else []


def cheapest_of(found: Sequence[Remedy]) -> Remedy | None:
    """Return the first remedy, if any."""
    return found[0] if found else None
