"""What the governed decider knows between two cycles; all of it follows from the view."""

from tenfold.decide.place.queue.admission import Admission
from tenfold.decide.place.queue.job_class import Trait
from tenfold.decide.place.queue.pending_queues import Class, Lines, Option
from tenfold.decide.place.queue.preemption_eligibility import Owing
from tenfold.decide.place.queue.windows import Windows
from tenfold.decide.place.quota.allocations import Holding, Holdings, made_holding
from tenfold.decide.place.quota.decayed_usage import lately
from tenfold.decide.place.quota.request import Amounts, Resources, milli_of
from tenfold.decide.place.quota.team_tree import Obstacle, Team, Tree
from tenfold.decide.place.state.scratch import QuotaScratch
from tenfold.fleet.capacity import Seat, Slots
from tenfold.fleet.fleet import FleetView
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import WHOLE, Job, Promise, Run, Shape, Slot
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.reason import Amount, Reason, TeamRef, Value
from tenfold.model.units import Millis


class Promised:
    """A gang with nodes kept for it."""

    __slots__ = ("amounts", "cls", "job", "promise")

    def __init__(self, job: Job, cls: Class, promise: Promise, amounts: Amounts) -> None:
        self.job = job
        self.cls = cls
        self.promise = promise
        self.amounts = amounts
        """What it will take from quotas, counted as held already."""


class Books:
    """Teams, room, holdings and those who wait."""

    def __init__(self, govern: GovernanceRules, view: FleetView, now_ms: Millis) -> None:
        self.govern = govern
        self.tree = Tree(govern, Resources(govern, view.nodes), now_ms)
        if govern.fair_share == "decayed":
            self.tree.remember(lately(view, govern.half_life_ms))
        self.capacity = TopologyCapacity.of(view)
        self.scratch = QuotaScratch(self.capacity, self.tree)
        """What a search changes; nothing is left on it between two searches."""
        self.holdings = Holdings(govern, self.tree)
        self.owing = Owing(self.tree, self.holdings, preempts=govern.preempts)
        self.lines = Lines(self.tree, self.owing)
        self.admission = Admission(govern)
        self.repairs: list[Class] = []
        """Gangs that were broken, each in a class of its own, in order of arrival."""
        self.promised: dict[JobId, Promised] = {}
        self.wanting = self.lines.wanting
        """Classes that may displace others and found nobody whose going would help."""
        self.stirred = True
        """Whether those who want to displace others may find more than they did."""
        self.resizing = any(run.becoming is not None for run in view.running.values())
        self.windows = Windows(govern, view.nodes, now_ms)
        self.windows.close(self.capacity)
        self._nodes = view.nodes
        self._is_timely = bool(govern.windows or (govern.reservations and govern.backfill))
        self._is_timed = bool(govern.delay_ms or govern.stops_per_hour)
        self._options: dict[str, tuple[Option, ...]] = {}
        self._traits: dict[str, tuple[int, bool]] = {}
        self._never: dict[tuple[TeamId, str], Reason | None] = {}
        for job, slots, started_ms, since_ms, stopping in sorted(_holders(view), key=_order):
            accelerator = view.nodes[slots[0].node].accelerator
            holding = made_holding(self.tree, job, slots, started_ms, since_ms, accelerator)
            self.holdings.add(holding)
            if stopping:
                self.holdings.stop(holding)
        self.admission.begin(holding.job for holding in self.holdings.held.values())

    def accelerator(self, node_id: NodeId) -> str:
        """Return the type of a node."""
        return self._nodes[node_id].accelerator

    def elastic(self) -> list[Holding]:
        """Return the holdings of elastic jobs."""
        return list(self.holdings.elastic.values())

    def is_still(self, now_ms: Millis) -> bool:
        """Return whether nothing has happened since the last walk that lets anybody start."""
        return not (
            self.stirred
            or self.promised
            or self.repairs
            or self.holdings.stopping
            or self.lines.is_dirty
            or (self.wanting.members and (self._is_timed or self.holdings.has_ripened(now_ms)))
        )

    def options(self, shape: Shape) -> tuple[Option, ...]:
        """Return the accelerator types that will do, with what each takes from quotas."""
        options = self._options.get(shape.key)
        if options is None:
            ask, capacity = self.tree.resources.ask, self.capacity
            options = tuple(
                Option(name, ask(max(map(milli_on, capacity.seats_in(shape, name))), name))
                if shape.gpus
                else Option(name, ask(shape.milli, name))
                for name in capacity.accelerators_for(shape)
            )
            self._options[shape.key] = options = options or (Option("", ()),)
        return options

    def amounts(self, slots: Slots, accelerator: str) -> Amounts:
        """Return what slots of one type take from quotas."""
        return self.tree.resources.ask(milli_of(slots), accelerator)

    def class_of(self, job: Job) -> Class:
        """Return a class for a job, which is not in the lines yet."""
        shape = job.shape
        team, options = self.tree.team(job.team), self.options(shape)
        cls = Class(team, shape, job.priority, options, self.trait(job))
        traits = self._traits.get(shape.key)
        if traits is None:
            seats = self.capacity.seats(shape)
            least = min((seat.rest or seat.gpus for seat in seats), default=0)
            is_gang = bool(seats) and all(
                seat.members > 1 or seat.gpus >= seat.bank.size > 0 for seat in seats
            )
            traits = self._traits[shape.key] = (least, is_gang)
        cls.least, cls.is_gang = traits
        return cls

    def trait(self, job: Job) -> Trait:
        """Return what tells jobs of one shape apart that may not take the same room.

        Limits count where there are windows to keep off, or holes to be gone from in time.
        """
        terms = job.terms
        if terms is None:
            return (job.limit_ms,) if self._is_timely else ()
        sizes = (terms.least_gpus, terms.most_gpus) if terms.least_gpus else ()
        if not self._is_timely:
            return sizes
        return (job.limit_ms, terms.preemptible, terms.off_peak, *sizes)

    def never(self, job: Job) -> Reason | None:
        """Return why quotas will never let a job in, whatever others give back."""
        key = (job.team, job.shape.key)
        if key not in self._never:
            self._never[key] = self._never_in(job)
        return self._never[key]

    def _never_in(self, job: Job) -> Reason | None:
        team = self.tree.team(job.team)
        met: Obstacle | None = None
        for _, amounts in self.options(job.shape):
            met = self.tree.never(team, amounts)
            if met is None:
                return None
        assert met is not None
        node, number, amount = met
        unit = self.tree.resources.names[number]
        most = node.pool[number] + node.borrow[number]
        fields: dict[str, Value] = {"asked": Amount(amount, unit), "most": Amount(most, unit)}
        if node.id:
            fields["team"] = TeamRef(node.id)
        return Reason("above-limit", fields)

    def enter(self, job: Job) -> None:
        """Put a job into the lines."""
        team = self.tree.team(job.team)
        cls = self.lines.get(team, job.priority, job.shape, self.trait(job))
        if cls is None:
            cls = self.class_of(job)
            self.lines.enter(cls)
        self.lines.add(cls, job)

    def release(self, job_id: JobId) -> Holding:
        """Take back what a job held, and offer it to those who could use it."""
        holding = self.holdings.remove(job_id)
        self.capacity.give(holding.slots, holding.job.shape)
        lines = self.lines
        if lines.count:
            lines.offer(max(map(self.capacity.offered_by, holding.slots)))
            lines.gave_back(holding.team)
        self.stirred = True
        return holding

    @property
    def resizing(self) -> bool:
        """Whether a job is being resized: nobody is displaced until it is done."""
        return self.owing.resizing

    @resizing.setter
    def resizing(self, resizing: bool) -> None:
        self.owing.resizing = resizing

    def is_owed(self, cls: Class) -> bool:
        """Return whether a class may displace anybody at all, if there is somebody to displace."""
        return self.owing.is_owed(cls)

    def reconsider(self, team: Team) -> None:
        """Note that a team holds another than before: its classes may be owed room, or not."""
        self.lines.touch(team)

    def count(self, team: Team, amounts: Amounts, sign: int) -> None:
        """Count that a team holds more (1) or less (-1), which changes its turn."""
        self.tree.add(team, amounts, sign)
        if sign < 0:
            self.holds_less(team)
        else:
            self.holds_more(team)

    def holds_less(self, team: Team) -> None:
        """Let those try again for whom it counts that a team holds less."""
        if self.lines.count:
            self.lines.gave_back(team)

    def holds_more(self, team: Team) -> None:
        """Note that a team holds more, which changes its turn."""
        if self.lines.count:
            self.lines.touch(team)

    def keep(self, slots: Slots) -> None:
        """Hide nodes from all but those they are kept for."""
        for node_id in self.capacity.around(slots):
            self.capacity.keep(node_id)

    def unkeep(self, slots: Slots) -> None:
        """Offer nodes again that were kept."""
        for node_id in self.capacity.around(slots):
            self.capacity.unkeep(node_id)

    def promise(self, job: Job, promise: Promise, accelerator: str) -> None:
        """Note a promise: its nodes are hidden and its amounts count as held."""
        cls = self.class_of(job)
        amounts = self.amounts(promise.slots, accelerator)
        self.promised[job.id] = Promised(job, cls, promise, amounts)
        self.count(cls.team, amounts, 1)
        self.keep(promise.slots)

    def unpromise(self, promised: Promised) -> None:
        """Forget a promise."""
        del self.promised[promised.job.id]
        self.count(promised.cls.team, promised.amounts, -1)
        self.unkeep(promised.promise.slots)

    def suspend(self, promised: Promised) -> int:
        """Forget a promise for now, and return the number of the change on the scratch.

        Whoever was let try again because of it is not called back: to look twice does no harm.
        """
        self.unpromise(promised)
        return self.scratch.record(self._resume, promised)

    def _resume(self, promised: Promised) -> None:
        self.promised[promised.job.id] = promised
        self.count(promised.cls.team, promised.amounts, 1)
        self.keep(promised.promise.slots)


def milli_on(seat: Seat) -> int:
    """Return the thousandths of a GPU that a gang takes in a bank: whole nodes count whole."""
    return (seat.members * seat.gpus + seat.rest) * WHOLE


Held = tuple[Job, tuple[Slot, ...], Millis, Millis, bool]


def _holders(view: FleetView) -> list[Held]:
    found: list[Held] = [
        (order.job, order.slots, order.ordered_ms, order.ordered_ms, False)
        for order in view.orders.values()
    ]
    found += [
        (run.job, _widest(run), run.started_ms, run.since_ms, run.stopping)
        for run in view.running.values()
    ]
    return found


def _widest(run: Run) -> tuple[Slot, ...]:
    """Return all that a run holds, or will hold once it is resized."""
    if run.becoming is None:
        return run.slots
    gpus = {slot.node: slot.gpus for slot in run.slots}
    for slot in run.becoming:
        gpus[slot.node] = max(slot.gpus, gpus.get(slot.node, 0))
    return tuple(Slot(node, count) for node, count in gpus.items())


def _order(held: Held) -> tuple[int, int, int]:
    job, _, _, since_ms, _ = held
    return since_ms, job.submitted_ms, job.seq
