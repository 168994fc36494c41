"""Which jobs are within quota, which borrow, and what would fit if some had stopped.

Computed from a view and the declared terms alone, to check which jobs a decider stops and which
it keeps waiting.
"""

from collections.abc import Iterable, Iterator, Sequence

from tenfold.fleet.fleet import NEVER_RAN, Fleet
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.actions import Action, ReserveStart, StartJob
from tenfold.model.decision import Decision
from tenfold.model.events import ActionOrdered, JobEnded
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import WHOLE, Job, Order, Run
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import ANY, USD, Amounts, GovernanceRules
from tenfold.model.units import Millis
from tests.rigs.fits import gang_on
from tests.rigs.governed.quota import Quotas, add_to, amounts_of, held_by_teams
from tests.rigs.governed.windows import barred_now, barred_soon

PLAIN = Terms()
Branch = tuple[TeamId, bool]
"""A team with all below it, or (True) only the jobs of a team that has others below it."""


class QuotaState:
    """Usage of all teams against their quotas at one moment."""

    def __init__(self, govern: GovernanceRules, fleet: Fleet, now_ms: Millis) -> None:
        self.govern = govern
        self.fleet = fleet
        self.now_ms = now_ms
        self.quotas = Quotas(govern, fleet.nodes, now_ms)
        self.held = held_by_teams(govern, fleet, promised=True)
        self._borrowed: dict[Branch, dict[JobId, None]] = {}

    def before(self, decision: Decision, action: Action) -> "QuotaState":
        """Return the state when an action was decided: after the actions before it."""
        fork = self.fleet.fork()
        for one in decision.actions:
            if one is action:
                break
            if isinstance(one, StartJob | ReserveStart):
                fork.apply(ActionOrdered(self.now_ms, one))
        return QuotaState(self.govern, fork, self.now_ms)

    def forget(self, run: Run) -> None:
        """Count what a run holds as released."""
        add_to(self.held, run.job.team, amounts_of(self.govern, self.fleet.nodes, run.slots), -1)

    def branches(self, team: TeamId) -> list[Branch]:
        """Return the branches of the tree that a job of a team counts in, from the leaf up."""
        own: list[Branch] = [(team, True)] if self.quotas.is_parent(team) else []
        return own + [(one, False) for one in self.quotas.path(team)]

    def above(self, branch: Branch) -> TeamId:
        """Return the team right above a branch."""
        team, is_own = branch
        return team if is_own else self.quotas.parent(team)

    def is_within(self, branch: Branch, amounts: Amounts) -> bool:
        """Return whether a branch would hold no more than its quota with so much more."""
        for name in self.quotas.resources:
            if (more := amounts.get(name, 0)) and self._held(branch, name) + more > self._quota(
                branch, name
            ):
                return False
        return True

    def borrowed(self, branch: Branch) -> dict[JobId, None]:
        """Return the jobs of a branch that go beyond its quota, those that started last."""
        found = self._borrowed.get(branch)
        if found is None:
            found = self._borrowed[branch] = {}
            left = {name: self._quota(branch, name) for name in self.quotas.resources}
            for one in sorted(self._holders(branch), key=_start):
                amounts = amounts_of(self.govern, self.fleet.nodes, one.slots)
                if all(left[name] >= amounts.get(name, 0) for name in left if name in amounts):
                    for name in left:
                        left[name] -= amounts.get(name, 0)
                else:
                    found[one.job.id] = None
        return found

    def may_displace(self, job: Job, amounts: Amounts, run: Run) -> bool:
        """Return whether a job that takes so much is owed the room of one that runs."""
        if run.job.team == job.team:
            return run.job.priority < job.priority and self._makes_way(job, amounts, run)
        for mine in self.branches(job.team):
            for other in self.branches(run.job.team):
                if other != mine and self.above(other) == self.above(mine):
                    return self.is_within(mine, amounts) and run.job.id in self.borrowed(other)
        return False

    def _makes_way(self, job: Job, amounts: Amounts, run: Run) -> bool:
        """Return whether a lower priority gives way: what is at home only for what is then, too."""
        within = self.within(job, amounts, without=self._lower(job))
        beyond = [one for one in self._quotas_of(job.team) if one not in within]
        return all(run.job.id in self.borrowed(branch) for branch in beyond)

    def is_home(self, job: Job, amounts: Amounts, *, without: Sequence[JobId]) -> bool:
        """Return whether a job is at home where it can be, if it is in place of its own team's."""
        if not any(self.fleet.running[one].job.team == job.team for one in without):
            return True
        best = self.within(job, amounts, without=self._lower(job))
        found = self.within(job, amounts, without=without)
        return all(branch in found for branch in best)

    def _lower(self, job: Job) -> list[JobId]:
        """Return those of its team whose priority is lower and who may be stopped by now."""
        return [
            one.job.id
            for one in self.fleet.running.values()
            if one.job.team == job.team
            and one.job.priority < job.priority
            and self.is_preemptible(one)
        ]

    def within(self, job: Job, amounts: Amounts, *, without: Iterable[JobId]) -> list[Branch]:
        """Return the branches in whose quota a job would be if some of its team were gone."""
        gone = [self.fleet.running[one] for one in without]
        taken = [
            amounts_of(self.govern, self.fleet.nodes, one.slots)
            for one in gone
            if one.job.team == job.team
        ]
        for one in taken:
            add_to(self.held, job.team, one, -1)
        found = [one for one in self._quotas_of(job.team) if self.is_within(one, amounts)]
        for one in taken:
            add_to(self.held, job.team, one)
        return found

    def _quotas_of(self, team: TeamId) -> list[Branch]:
        """Return the branches of a team that have a quota among others: all but the fleet."""
        return [one for one in self.branches(team) if one != (TeamId(""), False)]

    def is_preemptible(self, run: Run) -> bool:
        """Return whether a run may be stopped for others at all by now."""
        most = self.govern.stops_per_job
        return (
            (run.job.terms or PLAIN).preemptible
            and self.now_ms >= run.started_ms + self.min_run_ms(run.job.team)
            and (not most or self.fleet.past.get(run.job.id, NEVER_RAN).runs < most)
        )

    def min_run_ms(self, team: TeamId) -> int:
        """Return how long jobs of a team run before they may be stopped."""
        own = [terms.min_run_ms for terms in self.govern.teams if terms.id == team]
        return self.govern.min_run_ms if not own or own[0] is None else own[0]

    def asks(self, job: Job) -> Iterator[tuple[str, Amounts]]:
        """Yield the accelerator types that may do, and the most that a job takes of each."""
        types = dict.fromkeys(node.accelerator for node in self.fleet.nodes.values())
        for kind in types:
            gangs = [
                gang
                for node in self.fleet.nodes.values()
                if node.accelerator == kind and (gang := gang_on(node, job.shape)) is not None
            ]
            if gangs:
                most = max(members * each + rest for members, each, rest in gangs)
                milli = job.shape.milli or most * WHOLE
                yield kind, self._amounts(kind, milli)

    def fits(
        self,
        job: Job,
        *,
        without: Iterable[JobId] = (),
        until_windows: bool = False,
        of: str | None = None,
    ) -> bool:
        """Return whether a waiting job would find room and quota if some others were gone.

        `of` names the only type of accelerator that counts.

        Nodes that are kept for promises to others stay kept, and so does their quota; so do
        those of windows, unless it may start there and be stopped when they open.
        """
        after = self.fleet.fork()
        for job_id in without:
            after.apply(JobEnded(self.now_ms, job_id))
        held = held_by_teams(self.govern, after, promised=True)
        capacity = TopologyCapacity.of(after)
        if job.id in after.reservations:
            reservation = after.reservations[job.id]
            add_to(held, job.team, amounts_of(self.govern, after.nodes, reservation.slots), -1)
        for other, reservation in after.reservations.items():
            for node_id in capacity.around(reservation.slots) if other != job.id else ():
                capacity.hide(node_id)
        barred = barred_now if until_windows else barred_soon
        for node_id in barred(self.govern, after, job, self.now_ms):
            capacity.hide(node_id)
        before = self.quotas.excess(held)
        for kind, amounts in self.asks(job):
            if of is not None and kind != of:
                continue
            add_to(held, job.team, amounts)
            excess = self.quotas.excess(held)
            add_to(held, job.team, amounts, -1)
            if any(amount > before.get(key, 0) for key, amount in excess.items()):
                continue
            if capacity.claim_in(job.shape, kind) is not None:
                return True
        return False

    def promise_fits(self, job: Job, *, without: Iterable[JobId] = ()) -> bool:
        """Return whether what a job was promised would be free if some others were gone."""
        after = self.fleet.fork()
        for job_id in without:
            after.apply(JobEnded(self.now_ms, job_id))
        return TopologyCapacity.of(after).has(after.reservations[job.id].slots, job.shape)

    def _amounts(self, kind: str, milli: int) -> Amounts:
        price = self.govern.usd_micros_per_gpu_hour.get(kind, 0)
        found: Amounts = {kind: milli, ANY: milli, USD: milli * price // WHOLE}
        return {name: amount for name, amount in found.items() if amount}

    def _quota(self, branch: Branch, name: str) -> int:
        team, is_own = branch
        return self.quotas.own_quota(team, name) if is_own else self.quotas.quota(team, name)

    def _held(self, branch: Branch, name: str) -> int:
        team, is_own = branch
        if is_own:
            return self.held.get(team, {}).get(name, 0)
        return self.quotas.held_below(self.held, team, name)

    def _holders(self, branch: Branch) -> Iterator[Run | Order]:
        for one in (*self.fleet.running.values(), *self.fleet.orders.values()):
            if branch in self.branches(one.job.team):
                yield one


def _start(one: Run | Order) -> tuple[int, int, int]:
    at_ms = one.since_ms if isinstance(one, Run) else one.ordered_ms
    return at_ms, one.job.submitted_ms, one.job.seq
