"""Start a job at the cheapest of the sites that could start it now.

Everything else about the other decider's choice stays: which job starts, when, on which type of
accelerator and on how many GPUs. Tags, required topology, power and reservations hold at the other
site as here, since the same index finds the nodes. Where costs are equal or unknown, the choice of
the other decider stays, and so do elastic jobs of another size than they asked for.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.place.indexed import IndexedDecider
from tenfold.decide.place.moved_starts import MovedStarts
from tenfold.decide.place.quota.residency import Residency
from tenfold.decide.place.site_cost import SiteCost, site_costs
from tenfold.fleet.capacity import GangSplit, Slots
from tenfold.fleet.fleet import more_than
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.fleet.view import FleetView
from tenfold.model.actions import Action, ResizeJob, StartJob
from tenfold.model.ids import JobId, SiteId
from tenfold.model.job.job import Job
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.site_costs import SiteCosts
from tenfold.model.reason import Reason, Value

USD = 1_000_000


class CheapestSite(MovedStarts):
    """Moves starts of another decider to the cheapest site."""

    def __init__(
        self, inner: IndexedDecider, costs: SiteCosts, govern: GovernanceRules | None = None
    ) -> None:
        super().__init__(inner)
        self._costs = costs
        self._residency = None if govern is None else Residency(govern)

    def moved(self, view: FleetView, actions: Sequence[Action]) -> Sequence[Action]:
        """Return the actions, with starts at cheaper sites."""
        if not any(isinstance(action, StartJob) for action in actions):
            return actions
        return moved(view, actions, self._costs, self._residency)


def moved(
    view: FleetView,
    actions: Sequence[Action],
    costs: SiteCosts,
    residency: Residency | None = None,
) -> list[Action]:
    """Return the actions, with starts at the cheapest site that has the nodes, and why.

    Jobs choose in the order of the decision. If a later one would then find no place, or all
    together would cost more, every job keeps its own place and may only move to nodes that no other
    job of the decision got.
    """
    starts = [
        _start_of(view, action, residency) for action in actions if isinstance(action, StartJob)
    ]
    places = _Places(view, actions)
    choices = {one.action.job_id: _ranked(places, one, costs) for one in starts}
    if not any(choices.values()):
        return list(actions)
    found = places.best(starts, choices)
    return [
        _with_reason(view, action, found[action.job_id], choices[action.job_id])
        if isinstance(action, StartJob)
        else action
        for action in actions
    ]


class _Start(Struct, frozen=True):
    """A start that was decided."""

    action: StartJob
    job: Job
    site: SiteId
    accelerator: str
    progress_ms: int


def _start_of(view: FleetView, action: StartJob, residency: Residency | None) -> _Start:
    job = view.pending[action.job_id]
    node, past = view.nodes[action.slots[0].node], view.past.get(job.id)
    return _Start(
        action,
        job if residency is None else residency.apply(job),
        node.site,
        node.accelerator,
        0 if past is None else past.progress_ms,
    )


def _ranked(places: "_Places", start: _Start, costs: SiteCosts) -> list[SiteCost]:
    """Return the sites that may run a job, the cheapest first; none if it has no choice."""
    found = site_costs(start.job, start.accelerator, costs, start.progress_ms)
    here = found.get(start.site)
    is_whole = sum(slot.gpus for slot in start.action.slots) == start.job.shape.gpus
    if here is None or not is_whole or all(one.rank == here.rank for one in found.values()):
        return []
    allowed = places.sites_for(start)
    # Among equals the site that the policy chose.
    listed = [here, *(one for one in found.values() if one is not here and one.site in allowed)]
    return sorted(listed, key=lambda one: one.rank) if len(listed) > 1 else []


def _with_reason(
    view: FleetView, action: StartJob, slots: Slots, ranked: Sequence[SiteCost]
) -> StartJob:
    if all(one.rank == ranked[0].rank for one in ranked):
        return action
    site = view.nodes[slots[0].node].site
    chosen = next(one for one in ranked if one.site == site)
    best = next(one for one in ranked if one is not chosen)
    return replace(action, slots=slots, because=_because(chosen, best))


def _because(chosen: SiteCost, best: SiteCost) -> Reason:
    """Return why a job starts at a site: what it costs there and at the best other one."""
    fields: dict[str, Value] = {
        "site": chosen.site,
        "usd": chosen.total / USD,
        "other": best.site,
    }
    if chosen.staging_ms:
        fields["staging_ms"], fields["egress"] = chosen.staging_ms, chosen.egress / USD
    if not best.is_reachable:
        return Reason("data-reachable", fields)
    fields["other_usd"] = best.total / USD
    if best.staging_ms:
        fields["other_staging_ms"], fields["other_egress"] = best.staging_ms, best.egress / USD
    return Reason("cheapest-site" if chosen.rank <= best.rank else "cheaper-site-full", fields)


Choices = Mapping[JobId, Sequence[SiteCost]]


class _Places:
    """Where the starts of a decision find nodes."""

    def __init__(self, view: FleetView, actions: Sequence[Action]) -> None:
        self._view, self._actions = view, actions

    @cached_property
    def _capacity(self) -> TopologyCapacity:
        """What is free; built only where costs differ, since that looks at every node."""
        return self._free()

    def sites_for(self, start: _Start) -> dict[SiteId, None]:
        """Return the sites whose nodes could ever hold a job, free or not."""
        return {
            self._site(split): None
            for split in self._capacity.splits_in(start.job.shape, start.accelerator)
            if split.members + (split.rest > 0) <= len(split.node_index.names)
        }

    def best(self, starts: Sequence[_Start], choices: Choices) -> dict[JobId, Slots]:
        """Return where the starts go; together they never cost more than as they were decided."""
        in_order = self.in_order(starts, choices)
        if in_order is not None and not self._any_dearer(in_order, starts, choices):
            return in_order
        one_by_one = self.one_by_one(starts, choices)
        if in_order is None or self._total(one_by_one, choices) < self._total(in_order, choices):
            return one_by_one
        return in_order

    def in_order(self, starts: Sequence[_Start], choices: Choices) -> dict[JobId, Slots] | None:
        """Place each start at the cheapest site with free nodes; None if one finds none."""
        capacity = self._capacity
        for one in starts:
            if not choices[one.job.id]:
                capacity.take(one.action.slots, one.job.shape)
        found: dict[JobId, Slots] = {}
        for one in starts:
            ranked = choices[one.job.id]
            slots = self._cheapest(capacity, one, ranked) if ranked else one.action.slots
            if slots is None:
                return None
            found[one.job.id] = slots
        return found

    def one_by_one(self, starts: Sequence[_Start], choices: Choices) -> dict[JobId, Slots]:
        """Move each start to a cheaper site that has nodes beside those of all others."""
        capacity = self._free()
        for one in starts:
            capacity.take(one.action.slots, one.job.shape)
        found: dict[JobId, Slots] = {}
        for one in starts:
            found[one.job.id] = one.action.slots
            for choice in choices[one.job.id]:
                if choice.site == one.site:
                    break
                slots = self._claim(capacity, one, choice.site)
                if slots is not None:
                    capacity.give(one.action.slots, one.job.shape)
                    found[one.job.id] = slots
                    break
        return found

    def _rank(self, slots: Slots, ranked: Sequence[SiteCost]) -> tuple[int, int]:
        site = self._view.nodes[slots[0].node].site
        chosen = next(one for one in ranked if one.site == site)
        return not chosen.is_reachable, chosen.total

    def _any_dearer(
        self, found: Mapping[JobId, Slots], starts: Sequence[_Start], choices: Choices
    ) -> bool:
        """Return whether a job would cost more than where it was decided."""
        return any(
            self._rank(found[one.job.id], ranked) > self._rank(one.action.slots, ranked)
            for one in starts
            if (ranked := choices[one.job.id])
        )

    def _total(self, found: Mapping[JobId, Slots], choices: Choices) -> tuple[int, int]:
        ranks = [self._rank(found[name], ranked) for name, ranked in choices.items() if ranked]
        return sum(far for far, _ in ranks), sum(total for _, total in ranks)

    def _cheapest(
        self, capacity: TopologyCapacity, start: _Start, ranked: Sequence[SiteCost]
    ) -> Slots | None:
        for choice in ranked:
            if choice.site == start.site and capacity.has(start.action.slots, start.job.shape):
                capacity.take(start.action.slots, start.job.shape)
                return start.action.slots
            slots = self._claim(capacity, start, choice.site)
            if slots is not None:
                return slots
        return None

    def _claim(self, capacity: TopologyCapacity, start: _Start, site: str) -> Slots | None:
        shape = start.job.shape
        splits = [
            split
            for split in capacity.splits_in(shape, start.accelerator)
            if self._site(split) == site
        ]
        return capacity.claim_from(splits, shape)

    def _site(self, split: GangSplit) -> SiteId:
        return self._view.nodes[split.node_index.names[0]].site

    def _free(self) -> TopologyCapacity:
        """Return the free nodes, without reserved ones and what resizes take."""
        view = self._view
        capacity = TopologyCapacity.of(view)
        own = {one.job_id for one in self._actions if isinstance(one, StartJob)}
        for job_id, one in view.reservations.items():
            for slot in one.slots if job_id not in own else ():
                capacity.set_open(slot.node, False)
        for action in self._actions:
            if isinstance(action, ResizeJob):
                run = view.running[action.job_id]
                capacity.take(more_than(action.slots, run.slots), run.job.shape)
        return capacity
