"""The default order: learned from history, by how long similar jobs run.

Durations are not known. Run time is divided into doubling levels. For each level a hazard, the
chance that a job which reached it ends in it, is learned from finished jobs: of the same size,
of the same size and team, and of the same batch (submitted close together, often repeats of the
same job). Each group is the prior of the next; with no history, lengths are log-uniform.

The rank of a job is its inverted Gittins index: GPUs x the least time spent per job that ends.
Short batches reveal themselves once one member has ended, long ones by surviving. The hazards of
sizes and teams are updated at fixed counts of finished jobs, so a decider rebuilt from the view
computes the same figures.
"""

from collections import deque
from collections.abc import Iterable

from tenfold.decide.place.ranked.orders import NO_GPUS_MILLI, BaseOrder
from tenfold.decide.place.ranked.ranking import Family, Group, RankedAllocation
from tenfold.fleet.fleet import FleetView
from tenfold.model.job.job import WHOLE, EndedJob, Job
from tenfold.model.units import HOUR, SECOND

FIRST_LEVEL_MS = 300 * SECOND
LEVELS = 18
BOUNDS = [0, *(FIRST_LEVEL_MS << step for step in range(LEVELS - 1))]
WIDTHS = [later - start for start, later in zip(BOUNDS, [*BOUNDS[1:], BOUNDS[-1] * 2], strict=True)]
PRIOR = [1 / (LEVELS - level) for level in range(LEVELS)]
"""Hazard of a log-uniform distribution: the prior before any job has ended."""

TRUST_ALL, TRUST_SIZE, TRUST_BATCH = 1.0, 8.0, 0.5
"""How many jobs of a group weigh as much as its prior."""
BATCH_MS = HOUR
BATCH_JOBS = 16
"""A batch is what one team submits of one size within an hour and 16 submissions."""
NO_ENDS = [0] * LEVELS
WINDOW = 4_096
STEP_MOST = 1_024

Kind = tuple[int, str]
"""Size and team; without a team, all of the size; without a size, every job."""
EVERY: Kind = (0, "")
Hazards = list[float]
Counts = list[int]


def level_of(served_ms: int) -> int:
    """Return the level of a job after this much service."""
    level = (served_ms // FIRST_LEVEL_MS).bit_length()
    return level if level < LEVELS else LEVELS - 1


def epoch(ended: int) -> int:
    """Return the count of finished jobs at which the current hazards were computed."""
    return ended - ended % _step(ended)


def _step(ended: int) -> int:
    return min(STEP_MOST, 1 << max(0, ended.bit_length() - 4))


class _Batch:
    """What is known of one batch: members by the level they ended in or have reached."""

    __slots__ = ("counts", "ends", "family", "is_touched", "members", "ranks", "reached")

    def __init__(self, family: Family, counts: Counts) -> None:
        self.family = family
        self.counts = counts
        """Ended jobs by level for its size and team, shared by all batches of them."""
        self.is_touched = False
        """Whether it changed since ranks were last compared."""
        self.members = 0
        self.ends: Counts = [0] * LEVELS
        self.reached: Counts = [0] * LEVELS
        """Unfinished members above the first level, by level."""
        self.ranks: dict[int, float] = {}

    def left(self, level: int) -> int:
        """Return how many members have left this level, to a higher one or by ending."""
        return sum(self.ends[level:]) + sum(self.reached[level + 1 :])


class Learned(BaseOrder):
    """Gittins order from learned hazards; does not use durations."""

    preempts = True
    bounds = BOUNDS

    def __init__(self) -> None:
        self._seen = 0
        """Number of finished jobs learned from so far."""
        self._finals: deque[tuple[_Batch, int]] = deque()
        """Finished jobs in the window: their batch and level."""
        self._batches: dict[Family, _Batch] = {}
        self._counts: dict[Kind, Counts] = {}
        """Ended jobs by level for every size and team, over the window."""
        self._hazards: dict[Kind, Hazards] = {}
        self._ranks: dict[tuple[int, str, int], float] = {}
        """Ranks of jobs whose batch has shown nothing yet."""
        self._frozen: dict[Kind, Counts] = {}
        self._epoch = 0
        self._until = 0
        """The count of finished jobs at which the next epoch begins."""
        self._touched: list[_Batch] = []
        self._all_changed = True

    def begin(self, view: FleetView) -> None:
        """Learn again from the view's history."""
        self._finals, self._batches, self._counts = deque(), {}, {}
        self._seen = view.ended - len(view.history)
        self._epoch, self._until = -1, 0
        self._catch_up(view)
        self._all_changed = True

    def family(self, job: Job) -> Family:
        """Return the batch of a job."""
        shape = job.shape
        return (
            shape.milli or shape.gpus * WHOLE or NO_GPUS_MILLI,
            job.team,
            job.submitted_ms // BATCH_MS,
            job.seq // BATCH_JOBS,
        )

    def rank(self, group: Group) -> float:
        """Return the rank that all jobs of a batch and level share."""
        return self.bucket_rank(group.family, group.level)

    def level_changed(self, job: Job, family: Family, before: int, after: int) -> None:
        """Count the levels that a member has survived."""
        batch = self._batches.get(family) or self._add(family)
        reached = batch.reached
        if before:
            reached[before] -= 1
        else:
            batch.members += 1
        reached[after] += 1
        if batch.ranks:
            batch.ranks.clear()
        if not batch.is_touched:
            self._touch(batch)

    def ended(self, view: FleetView, allocation: RankedAllocation) -> None:
        """Remove the survival of an ended job: the history now has its actual length."""
        if allocation.level:
            family = allocation.family or self.family(allocation.job)
            batch = self._batches.get(family) or self._add(family)
            batch.reached[allocation.level] -= 1
            self._less(batch)
        if view.ended - self._seen > STEP_MOST:
            self._catch_up(view)

    def changed(self, view: FleetView) -> Iterable[Family] | None:
        """Return the batches that changed; None at a new epoch."""
        self._catch_up(view)
        touched = self._touched
        if touched:
            self._touched = []
            for batch in touched:
                batch.is_touched = False
        if self._all_changed:
            self._all_changed = False
            return None
        return [batch.family for batch in touched]

    def _catch_up(self, view: FleetView) -> None:
        """Learn from jobs that ended since, freezing the hazards where an epoch begins."""
        lag = view.ended - self._seen
        if not lag and self._epoch >= 0:
            return
        history = view.history
        if view.ended < self._until:
            for place in range(-lag, 0):
                self._learn(history[place])
            self._seen = view.ended
            return
        freeze_at = epoch(view.ended)
        for place in range(-lag, 0):
            if self._seen == freeze_at:
                self._freeze(freeze_at)
            self._learn(history[place])
            self._seen += 1
        if self._seen == freeze_at:
            self._freeze(freeze_at)

    def _learn(self, ended: EndedJob) -> None:
        """Count a finished job, and drop the oldest when the window is full."""
        family, level = self.family(ended.job), level_of(ended.ran_ms)
        batch = self._batches.get(family) or self._add(family)
        batch.members += 1
        batch.ends[level] += 1
        batch.counts[level] += 1
        if batch.ranks:
            batch.ranks.clear()
        if not batch.is_touched:
            self._touch(batch)
        finals = self._finals
        finals.append((batch, level))
        if len(finals) > WINDOW:
            batch, level = finals.popleft()
            batch.counts[level] -= 1
            batch.ends[level] -= 1
            self._less(batch)

    def _add(self, family: Family) -> _Batch:
        """Return a new, empty batch."""
        kind = family[:2]
        counts = self._counts.get(kind)
        if counts is None:
            counts = self._counts[kind] = [0] * LEVELS
        batch = self._batches[family] = _Batch(family, counts)
        return batch

    def _less(self, batch: _Batch) -> None:
        """Remove one member; empty batches are dropped."""
        batch.members -= 1
        if batch.ranks:
            batch.ranks.clear()
        if not batch.is_touched:
            self._touch(batch)
        if not batch.members:
            del self._batches[batch.family]

    def _touch(self, batch: _Batch) -> None:
        batch.is_touched = True
        self._touched.append(batch)

    def _freeze(self, at: int) -> None:
        if at == self._epoch:
            return
        self._epoch = at
        self._until = at + _step(at)
        self._frozen = _summed(self._counts)
        self._hazards, self._ranks = {}, {}
        for batch in self._batches.values():
            batch.ranks.clear()
        self._all_changed = True

    def bucket_rank(self, family: Family, level: int) -> float:
        """Return the rank of jobs at the level they have reached."""
        batch = self._batches.get(family)
        if batch is not None and (rank := batch.ranks.get(level)):
            return rank
        size, team, _, _ = family
        if batch is not None and (left := batch.left(level)):
            wider = self._hazard((size, team))
            rank = batch.ranks[level] = _index(wider, level, left, batch.ends, batch.reached) * size
            return rank
        # No member of the batch has left this level: the batch tells nothing about it.
        rank = self._ranks.get((size, team, level))
        if rank is None:
            rank = _index(self._hazard((size, team)), level) * size
            self._ranks[size, team, level] = rank
        if batch is not None:
            batch.ranks[level] = rank
        return rank

    def _hazard(self, kind: Kind) -> Hazards:
        """Return the hazards of a group of jobs, blended with its prior."""
        hazards = self._hazards.get(kind)
        if hazards is None:
            if kind == EVERY:
                wider, trust = PRIOR, TRUST_ALL
            else:
                wider = self._hazard((kind[0], "") if kind[1] else EVERY)
                trust = TRUST_SIZE
            hazards = self._hazards[kind] = _blend(self._frozen.get(kind, NO_ENDS), wider, trust)
        return hazards


def _summed(counts: dict[Kind, Counts]) -> dict[Kind, Counts]:
    """Return the counts of each size and team, of each size, and of all jobs."""
    sums: dict[Kind, Counts] = {EVERY: [0] * LEVELS}
    for (size, team), ends in counts.items():
        kinds: list[Kind] = [EVERY, (size, "")]
        if team:
            kinds.append((size, team))
        for kind in kinds:
            total = sums.setdefault(kind, [0] * LEVELS)
            for level, count in enumerate(ends):
                total[level] += count
    return sums


def _blend(ends: Counts, wider: Hazards, trust: float) -> Hazards:
    hazards = [0.0] * LEVELS
    reached = 0
    for level in range(LEVELS - 1, -1, -1):
        reached += ends[level]
        hazards[level] = (ends[level] + trust * wider[level]) / (reached + trust)
    return hazards


def _index(
    wider: Hazards, level: int, left: int = 0, ends: Counts = NO_ENDS, reached: Counts = NO_ENDS
) -> float:
    """Return the least time spent per job that ends, over all points at which to stop.

    `left` members of the batch have left this level. Beyond what they have shown, the hazards are
    those of the prior.
    """
    surviving, spent, best = 1.0, 0.0, 0.0
    for step in range(level, LEVELS - 1):
        hazard = wider[step]
        if left > 0:
            ended = ends[step]
            hazard = (ended + TRUST_BATCH * hazard) / (left + TRUST_BATCH)
            left -= ended + reached[step + 1]
        spent += surviving * WIDTHS[step] * (1 - hazard / 2)
        surviving *= 1 - hazard
        ending = (1 - surviving) / spent
        if ending > best:  # noqa: PLR1730 - `max` costs a call for every level.
            best = ending
        if surviving < 0.02:
            return 1 / best
    spent += surviving * WIDTHS[-1] / 2
    return 1 / max(best, 1 / spent)
