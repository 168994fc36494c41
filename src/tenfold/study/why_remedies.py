"""Remedies for a waiting job, each tried on a fork, with what it costs; the cheapest first.

Prices are GPU time that somebody loses, work since the last save and restarts, and GPU time
that is rented. A change after which the decider stops others costs what those stops lose.
What nobody pays for comes first; what makes less of the job than was asked comes last.
"""

from collections.abc import Iterable, Sequence

from msgspec import Struct

from tenfold.decide.place.govern.lines import Class
from tenfold.decide.place.govern.why import Blocked
from tenfold.decide.place.govern.why_settled import Settled
from tenfold.fleet.fleet import Fleet
from tenfold.model.ids import JobId
from tenfold.model.job import Job
from tenfold.model.units import HOUR, UsdMicros
from tenfold.study.why_candidates import Candidate, Kind, candidates, several
from tenfold.study.why_changes import (
    Change,
    MoveJobs,
    Nothing,
    RentNodes,
    Several,
    Slots,
    Started,
    StopJobs,
    apply_change,
    starts,
)
from tenfold.study.why_search import lost_gpu_ms
from tenfold.study.why_words import sentence_of

ORDER: tuple[Kind, ...] = (
    "free",
    "hole",
    "shrink",
    "place",
    "type",
    "priority",
    "quota",
    "burst",
    "defragment",
    "preempt",
    "terms",
    "tags",
    "size",
    "several",
)
LESS: tuple[Kind, ...] = ("terms", "tags", "size", "several")
"""What makes less of the job than was asked for."""


class Remedy(Struct, frozen=True, kw_only=True):
    """A change after which the decider starts the job."""

    kind: Kind
    sentence: str
    change: Change
    slots: Slots
    """Where it starts then."""
    stopped: tuple[JobId, ...] = ()
    """Whom the decider stops for it."""
    lost_gpu_ms: int = 0
    """GPU time that others lose."""
    rented_gpu_ms: int = 0
    usd_micros: UsdMicros | None = None
    """What both come to, where the policy knows a price."""


def remedies(
    fleet: Fleet, settled: Settled, job: Job, cls: Class, blocked: Blocked
) -> tuple[Remedy, ...]:
    """Return what would let a job start, cheapest first; nothing that was not seen to work."""
    trials = _Trials(fleet, settled, job, cls)
    free = trials.tried("free", Nothing())
    if free is not None and not free.stopped:
        return (free,)
    found: list[Remedy] = [] if free is None else [free]
    done: dict[Kind, None] = dict.fromkeys(each.kind for each in found)
    for kind, change in candidates(settled, job, cls, blocked):
        if kind in done:
            continue
        remedy = trials.tried(kind, change)
        if remedy is not None:
            found.append(remedy)
            done[kind] = None
    if not found:
        found = trials.first(several(settled, job, cls))
    return _in_order(found)


class _Trials:
    """Tries changes for one job."""

    def __init__(self, fleet: Fleet, settled: Settled, job: Job, cls: Class) -> None:
        self._fleet = fleet
        self._settled = settled
        self._job = job
        self._cls = cls

    def tried(self, kind: Kind, change: Change) -> Remedy | None:
        """Return the remedy that a change is, if the decider then starts the job."""
        settled, job = self._settled, self._job
        fork, govern = apply_change(self._fleet, settled.govern, job.id, change, settled.now_ms)
        started = starts(fork, govern, job.id, settled.now_ms)
        return None if started is None else self._priced((kind, change), started)

    def first(self, tries: Iterable[Candidate]) -> list[Remedy]:
        """Return the first of these that works, alone in a list."""
        for kind, change in tries:
            remedy = self.tried(kind, change)
            if remedy is not None:
                return [remedy]
        return []

    def _priced(self, candidate: Candidate, started: Started) -> Remedy:
        kind, change = candidate
        settled, held = self._settled, self._settled.books.holdings.held
        gone = list(started.stopped)
        gone += _disturbed(change)
        lost = lost_gpu_ms(settled, (held[each] for each in dict.fromkeys(gone) if each in held))
        rented = self._rented_gpu_ms(change)
        return Remedy(
            kind=kind,
            sentence=sentence_of(settled, self._job, change, started),
            change=change,
            slots=started.slots,
            stopped=started.stopped,
            lost_gpu_ms=lost,
            rented_gpu_ms=rented,
            usd_micros=self._usd(started.slots, lost + rented),
        )

    def _rented_gpu_ms(self, change: Change) -> int:
        steps = change.steps if isinstance(change, Several) else (change,)
        rents = [step for step in steps if isinstance(step, RentNodes)]
        gpus = sum(each.nodes * self._fleet.nodes[each.like].gpus for each in rents)
        # Nobody rents for less than an hour.
        return gpus * max(self._job.limit_ms or HOUR, HOUR)

    def _usd(self, slots: Slots, gpu_ms: int) -> UsdMicros | None:
        node = self._fleet.nodes.get(slots[0].node)
        accelerator = self._cls.options[0].accelerator if node is None else node.accelerator
        price = self._settled.govern.usd_micros_per_gpu_hour.get(accelerator)
        return None if price is None else UsdMicros(gpu_ms * price // HOUR)


def _in_order(found: Sequence[Remedy]) -> tuple[Remedy, ...]:
    in_usd = all(each.usd_micros is not None for each in found)

    def key(each: Remedy) -> tuple[bool, bool, int, int, int, int]:
        price = (each.usd_micros or 0) if in_usd else each.lost_gpu_ms + each.rented_gpu_ms
        moved = len(each.change.jobs) if isinstance(each.change, MoveJobs) else 0
        stopped = len(each.stopped) + len(_disturbed(each.change)) - moved
        is_less = each.kind in LESS
        return each.kind != "free", is_less, price, stopped, moved, ORDER.index(each.kind)

    return tuple(sorted(found, key=key))


def _disturbed(change: Change) -> list[JobId]:
    """Return whom a change stops or moves."""
    if isinstance(change, StopJobs):
        return list(change.jobs)
    return [each.job_id for each in change.jobs] if isinstance(change, MoveJobs) else []


def cheapest_of(found: Sequence[Remedy]) -> Remedy | None:
    """Return the first remedy, if there is any."""
    return found[0] if found else None
