"""Those who hold room: by team and in order of start, and which part of it is borrowed.

Of the jobs of a team, those that started first are at home in its quota; what came later
and goes beyond it is borrowed. So a job that started within its quota stays at home until
it ends, and whoever was displaced for it can never displace it in turn.
"""

from collections.abc import Iterable, Iterator
from heapq import heapify, heappop, heappush

from tenfold.decide.place.quota.request import Amounts, milli_of
from tenfold.decide.place.quota.team_tree import Team, Tree
from tenfold.fleet.capacity import Slots
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import Job
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import Millis

PLAIN = Terms()


class Holding:
    """One job that holds room."""

    __slots__ = ("amounts", "job", "since_ms", "slots", "started_ms", "stopping", "team")

    def __init__(
        self, job: Job, slots: Slots, started_ms: int, team: Team, amounts: Amounts
    ) -> None:
        self.job = job
        self.slots = slots
        self.started_ms = started_ms
        self.since_ms = started_ms
        """When its start was ordered: who came first is at home."""
        self.team = team
        self.amounts = amounts
        """What it takes from quotas."""
        self.stopping = False

    @property
    def gpus_milli(self) -> int:
        """Thousandths of a GPU that it holds."""
        return milli_of(self.slots)


class Holdings:
    """All holdings of a fleet."""

    def __init__(self, govern: GovernanceRules, tree: Tree) -> None:
        self._govern = govern
        self._tree = tree
        self.held: dict[JobId, Holding] = {}
        self.stopping: dict[JobId, Holding] = {}
        self.on_terms = 0
        """Holdings of jobs with terms: they may idle or grow."""
        self.elastic: dict[JobId, Holding] = {}
        """Those of them that may shrink and grow."""
        self._by_team: dict[Team, dict[JobId, Holding]] = {}
        self._on: dict[NodeId, dict[JobId, Holding]] = {}
        self._priorities: dict[Team, dict[int, list[int]]] = {}
        """By team and priority: what its holdings take of each resource, and their number."""
        self._ripening: list[tuple[int, int, Holding]] = []
        """When holdings may be displaced for the first time."""
        self._count_added = 0
        self._unseen = False
        """Whether somebody has become so whom nobody was told of."""
        self._tallies: dict[Team, _Tally | None] = {}
        """Who is at home and who has borrowed; None where that must be worked out anew."""

    def add(self, holding: Holding) -> None:
        """Count a job that holds room from now on."""
        job = holding.job
        self.held[job.id] = holding
        self._by_team.setdefault(holding.team, {})[job.id] = holding
        self._tree.take(holding.team, holding.amounts, 1)
        for slot in holding.slots:
            self._on.setdefault(slot.node, {})[job.id] = holding
        if job.terms is not None:
            self.on_terms += 1
            if job.terms.least_gpus:
                self.elastic[job.id] = holding
        self._count(holding, 1)
        for node in holding.team.path:
            if node not in self._tallies:
                self._tallies[node] = _Tally(self._tree.resources.governed, node)
            tally = self._tallies[node]
            if tally is not None and not tally.add(holding):
                self._tallies[node] = None
        if job.terms is None or job.terms.preemptible:
            ripe_ms = self.ripe_ms(holding)
            if ripe_ms > holding.started_ms:
                self._count_added += 1
                heappush(self._ripening, (ripe_ms, self._count_added, holding))
                # Those who have become so are let go little by little.
                self._pass(holding.started_ms)
            else:
                self._unseen = True

    def began(self, holding: Holding, at_ms: int) -> None:
        """Count the run of a holding from when it really started, not from its order."""
        holding.started_ms = at_ms
        terms = holding.job.terms
        if terms is not None and not terms.preemptible:
            return
        self._ripening = [each for each in self._ripening if each[2] is not holding]
        heapify(self._ripening)
        ripe_ms = self.ripe_ms(holding)
        if ripe_ms > at_ms:
            self._count_added += 1
            heappush(self._ripening, (ripe_ms, self._count_added, holding))
        else:
            self._unseen = True

    def remove(self, job_id: JobId) -> Holding:
        """Let a holding go, and return it."""
        holding = self.held.pop(job_id)
        del self._by_team[holding.team][job_id]
        self.stopping.pop(job_id, None)
        self._tree.take(holding.team, holding.amounts, -1)
        for slot in holding.slots:
            del self._on[slot.node][job_id]
        self.on_terms -= holding.job.terms is not None
        self.elastic.pop(job_id, None)
        self._count(holding, -1)
        for node in holding.team.path:
            tally = self._tallies[node]
            if tally is not None and tally.borrowed.pop(job_id, None) is None:
                # One was at home: who borrowed may be at home now.
                self._tallies[node] = None
        return holding

    def _count(self, holding: Holding, sign: int) -> None:
        """Count a holding under its team and priority."""
        by = self._priorities.setdefault(holding.team, {})
        priority = holding.job.priority
        sums = by.get(priority)
        if sums is None:
            sums = by[priority] = [0] * (len(self._tree.resources.names) + 1)
        for number, amount in holding.amounts:
            sums[number] += amount * sign
        sums[-1] += sign
        if not sums[-1]:
            del by[priority]

    def stop(self, holding: Holding) -> None:
        """Note that a stop is ordered."""
        holding.stopping = True
        self.stopping[holding.job.id] = holding

    def ripe_ms(self, holding: Holding) -> int:
        """Return when a holding has run long enough to be displaced."""
        own = holding.team.terms.min_run_ms
        return holding.started_ms + (self._govern.min_run_ms if own is None else own)

    def ripened(self, now_ms: int) -> bool:
        """Return whether anybody may be displaced by now who could not be when last asked."""
        self._pass(now_ms)
        unseen, self._unseen = self._unseen, False
        return unseen

    def has_ripened(self, now_ms: int) -> bool:
        """Return what `ripened` would, which can be asked again."""
        self._pass(now_ms)
        return self._unseen

    def _pass(self, now_ms: int) -> None:
        """Take note of those who have run long enough by now."""
        ripening = self._ripening
        while ripening and (
            ripening[0][0] <= now_ms or self.held.get(ripening[0][2].job.id) is not ripening[0][2]
        ):
            holding = heappop(ripening)[2]
            self._unseen |= self.held.get(holding.job.id) is holding

    def on(self, node_id: NodeId) -> Iterable[Holding]:
        """Return the holdings on a node."""
        return self._on.get(node_id, {}).values()

    def has_below(self, team: Team, priority: int) -> bool:
        """Return whether a team has holdings of a lower priority."""
        return any(each < priority for each in self._priorities.get(team, ()))

    def below(self, team: Team, priority: int, number: int) -> int:
        """Return what a team's holdings of lower priorities take of a resource."""
        found = 0
        for each, sums in self._priorities.get(team, {}).items():
            if each < priority:
                found += sums[number]
        return found

    def next_ripe_ms(self, now_ms: int) -> int | None:
        """Return the next moment after now at which a holding may be displaced."""
        self._pass(now_ms)
        return self._ripening[0][0] if self._ripening else None

    def of(self, team: Team) -> Iterator[Holding]:
        """Yield the holdings of a team and of all below it."""
        yield from self._by_team.get(team, {}).values()
        for child in team.children:
            yield from self.of(child)

    def borrowed(self, team: Team) -> Iterable[Holding]:
        """Return the holdings of a team and those below it that go beyond its quota."""
        tally = self._tallies.get(team)
        if tally is None:
            tally = self._tallies[team] = _Tally(self._tree.resources.governed, team)
            for holding in sorted(self.of(team), key=_since):
                tally.add(holding)
        return tally.borrowed.values()


class _Tally:
    """Who of a team is at home, in order of start, and who has borrowed."""

    def __init__(self, governed: list[bool], team: Team) -> None:
        self._governed = governed
        self._left = team.effective.copy()
        self._last = (-1, -1, -1)
        self.borrowed: dict[JobId, Holding] = {}

    def add(self, holding: Holding) -> bool:
        """Count one more who started after all the others; False where it did not."""
        since = _since(holding)
        if since < self._last:
            return False
        self._last = since
        left, governed = self._left, self._governed
        if all(not governed[n] or left[n] >= amount for n, amount in holding.amounts):
            for number, amount in holding.amounts:
                left[number] -= amount
        else:
            self.borrowed[holding.job.id] = holding
        return True


def made_holding(
    tree: Tree, job: Job, slots: Slots, started_ms: int, since_ms: int, accelerator: str
) -> Holding:
    """Return the holding of a job on slots of one accelerator type."""
    amounts = tree.resources.ask(milli_of(slots), accelerator)
    holding = Holding(job, slots, started_ms, tree.team(job.team), amounts)
    holding.since_ms = since_ms
    return holding


def _since(holding: Holding) -> tuple[int, int, int]:
    return holding.since_ms, holding.job.submitted_ms, holding.job.seq


def lost_ms(holding: Holding, now_ms: Millis) -> int:
    """Return the run time that a stop now would lose."""
    every = (holding.job.terms or PLAIN).checkpoint_every_ms
    return (now_ms - holding.started_ms) % every if every else 0
