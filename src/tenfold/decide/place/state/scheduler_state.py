"""What the governed policy keeps between two cycles; it can be rebuilt from the view."""

from tenfold.decide.place.queue.admission import Admission
from tenfold.decide.place.queue.job_class import Trait
from tenfold.decide.place.queue.pending_queues import JobClass, Option, PendingQueues
from tenfold.decide.place.queue.preemption_eligibility import PreemptionEligibility
from tenfold.decide.place.queue.windows import Windows
from tenfold.decide.place.quota.allocations import Allocation, Allocations, make_allocation
from tenfold.decide.place.quota.decayed_usage import decayed_usage
from tenfold.decide.place.quota.request import Amounts, Resources, milli_of
from tenfold.decide.place.quota.residency import Residency
from tenfold.decide.place.quota.team_tree import Obstacle, Team, Tree
from tenfold.decide.place.state.scratch import QuotaScratch
from tenfold.fleet.capacity import GangSplit, Slots
from tenfold.fleet.fleet import FleetView
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import WHOLE, BackfillReservation, Job, Run, Shape, Slot
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.reason import Amount, Reason, TeamRef, Value
from tenfold.model.units import Millis


class ReservedGang:
    """A gang with reserved nodes."""

    __slots__ = ("amounts", "job", "job_class", "reservation")

    def __init__(
        self, job: Job, job_class: JobClass, reservation: BackfillReservation, amounts: Amounts
    ) -> None:
        self.job = job
        self.job_class = job_class
        self.reservation = reservation
        self.amounts = amounts
        """What it will take from quotas; already counted as used."""


class SchedulerState:
    """Teams, free capacity, allocations and pending jobs."""

    def __init__(self, govern: GovernanceRules, view: FleetView, now_ms: Millis) -> None:
        self.govern = govern
        self.residency = Residency(govern)
        self.tree = Tree(govern, Resources(govern, view.nodes), now_ms)
        if govern.fair_share == "decayed":
            self.tree.add_decayed_usage(decayed_usage(view, govern.half_life_ms))
        self.capacity = TopologyCapacity.of(view)
        self.scratch = QuotaScratch(self.capacity, self.tree)
        """Tentative changes of a search; empty between two searches."""
        self.allocations = Allocations(govern, self.tree)
        self.eligibility = PreemptionEligibility(
            self.tree, self.allocations, preempts=govern.preempts
        )
        self.queues = PendingQueues(self.tree, self.eligibility)
        self.admission = Admission(govern)
        self.repairs: list[JobClass] = []
        """Gangs that lost a node, each in its own class, in order of arrival."""
        self.reserved: dict[JobId, ReservedGang] = {}
        self.blocked_preemptors = self.queues.blocked_preemptors
        """Classes that may preempt but found no victims that would help."""
        self.dirty = True
        """Whether blocked preemptors may find victims that they did not find before."""
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
            bound = self.residency.apply(job)
            allocation = make_allocation(self.tree, bound, slots, started_ms, since_ms, accelerator)
            self.allocations.add(allocation)
            if stopping:
                self.allocations.stop(allocation)
        self.admission.begin(allocation.job for allocation in self.allocations.held.values())

    def accelerator(self, node_id: NodeId) -> str:
        """Return the accelerator type of a node."""
        return self._nodes[node_id].accelerator

    def elastic(self) -> list[Allocation]:
        """Return the allocations of elastic jobs."""
        return list(self.allocations.elastic.values())

    def is_unchanged(self, now_ms: Millis) -> bool:
        """Return whether nothing has changed since the last pass that lets a job start."""
        return not (
            self.dirty
            or self.reserved
            or self.repairs
            or self.allocations.stopping
            or self.queues.is_dirty
            or (
                self.blocked_preemptors.members
                and (self._is_timed or self.allocations.has_newly_preemptible(now_ms))
            )
        )

    def options(self, shape: Shape) -> tuple[Option, ...]:
        """Return the accelerator types that fit, with what each takes from quotas."""
        options = self._options.get(shape.key)
        if options is None:
            amounts_for, capacity = self.tree.resources.amounts_for, self.capacity
            options = tuple(
                Option(name, amounts_for(max(map(milli_on, capacity.splits_in(shape, name))), name))
                if shape.gpus
                else Option(name, amounts_for(shape.milli, name))
                for name in capacity.accelerators_for(shape)
            )
            self._options[shape.key] = options = options or (Option("", ()),)
        return options

    def amounts(self, slots: Slots, accelerator: str) -> Amounts:
        """Return what slots of one type take from quotas."""
        return self.tree.resources.amounts_for(milli_of(slots), accelerator)

    def class_of(self, job: Job) -> JobClass:
        """Return a new class for a job; it is not queued yet."""
        shape = job.shape
        team, options = self.tree.team(job.team), self.options(shape)
        job_class = JobClass(team, shape, job.priority, options, self.trait(job))
        traits = self._traits.get(shape.key)
        if traits is None:
            splits = self.capacity.splits(shape)
            least = min((split.rest or split.gpus for split in splits), default=0)
            is_gang = bool(splits) and all(
                split.members > 1 or split.gpus >= split.node_index.size > 0 for split in splits
            )
            traits = self._traits[shape.key] = (least, is_gang)
        job_class.least, job_class.is_gang = traits
        return job_class

    def trait(self, job: Job) -> Trait:
        """Return what distinguishes jobs of one shape that may not use the same nodes.

        Time limits matter where there are windows to avoid or gaps to backfill.
        """
        terms = job.terms
        if terms is None:
            return (job.limit_ms,) if self._is_timely else ()
        sizes = (terms.least_gpus, terms.most_gpus) if terms.least_gpus else ()
        if not self._is_timely:
            return sizes
        return (job.limit_ms, terms.preemptible, terms.off_peak, *sizes)

    def never(self, job: Job) -> Reason | None:
        """Return why quotas never admit a job, however much others release."""
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

    def enqueue(self, job: Job) -> None:
        """Queue a job."""
        team = self.tree.team(job.team)
        job_class = self.queues.get(team, job.priority, job.shape, self.trait(job))
        if job_class is None:
            job_class = self.class_of(job)
            self.queues.add_class(job_class)
        self.queues.add(job_class, job)

    def release(self, job_id: JobId) -> Allocation:
        """Release what a job held, and requeue the classes that could use it."""
        allocation = self.allocations.remove(job_id)
        self.capacity.give(allocation.slots, allocation.job.shape)
        queues = self.queues
        if queues.count:
            queues.capacity_freed(max(map(self.capacity.most_free_after, allocation.slots)))
            queues.usage_dropped(allocation.team)
        self.dirty = True
        return allocation

    @property
    def resizing(self) -> bool:
        """Whether a resize is in progress: nothing is preempted until it is done."""
        return self.eligibility.resizing

    @resizing.setter
    def resizing(self, resizing: bool) -> None:
        self.eligibility.resizing = resizing

    def is_eligible(self, job_class: JobClass) -> bool:
        """Return whether a class may preempt, if there are victims."""
        return self.eligibility.is_eligible(job_class)

    def reconsider(self, team: Team) -> None:
        """Note that the usage of a team changed: the eligibility of its classes may change."""
        self.queues.usage_changed(team)

    def count(self, team: Team, amounts: Amounts, sign: int) -> None:
        """Change the usage of a team by amounts, times 1 or -1; this changes its order."""
        self.tree.add(team, amounts, sign)
        if sign < 0:
            self.usage_dropped(team)
        else:
            self.usage_grew(team)

    def usage_dropped(self, team: Team) -> None:
        """Requeue the classes that may start now that a team uses less."""
        if self.queues.count:
            self.queues.usage_dropped(team)

    def usage_grew(self, team: Team) -> None:
        """Note that a team uses more, which changes its order."""
        if self.queues.count:
            self.queues.usage_changed(team)

    def hide_nodes(self, slots: Slots) -> None:
        """Hide reserved nodes from other jobs."""
        for node_id in self.capacity.around(slots):
            self.capacity.hide(node_id)

    def unhide_nodes(self, slots: Slots) -> None:
        """Show nodes again that were reserved."""
        for node_id in self.capacity.around(slots):
            self.capacity.unhide(node_id)

    def reserve(self, job: Job, reservation: BackfillReservation, accelerator: str) -> None:
        """Record a reservation: its nodes are hidden and its amounts count as used."""
        job_class = self.class_of(job)
        amounts = self.amounts(reservation.slots, accelerator)
        self.reserved[job.id] = ReservedGang(job, job_class, reservation, amounts)
        self.count(job_class.team, amounts, 1)
        self.hide_nodes(reservation.slots)

    def unreserve(self, reserved: ReservedGang) -> None:
        """Remove a reservation."""
        del self.reserved[reserved.job.id]
        self.count(reserved.job_class.team, reserved.amounts, -1)
        self.unhide_nodes(reserved.reservation.slots)

    def suspend(self, reserved: ReservedGang) -> int:
        """Remove a reservation for now; return the number of the change on the scratch.

        Classes requeued because of it stay queued: trying them twice is harmless.
        """
        self.unreserve(reserved)
        return self.scratch.record(self._resume, reserved)

    def _resume(self, reserved: ReservedGang) -> None:
        self.reserved[reserved.job.id] = reserved
        self.count(reserved.job_class.team, reserved.amounts, 1)
        self.hide_nodes(reserved.reservation.slots)


def milli_on(split: GangSplit) -> int:
    """Return the thousandths of a GPU that a gang takes; whole nodes count in full."""
    return (split.members * split.gpus + split.rest) * WHOLE


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
    """Return the slots a run holds now or will hold after a resize."""
    if run.becoming is None:
        return run.slots
    gpus = {slot.node: slot.gpus for slot in run.slots}
    for slot in run.becoming:
        gpus[slot.node] = max(slot.gpus, gpus.get(slot.node, 0))
    return tuple(Slot(node, count) for node, count in gpus.items())


def _order(held: Held) -> tuple[int, int, int]:
    job, _, _, since_ms, _ = held
    return since_ms, job.submitted_ms, job.seq
