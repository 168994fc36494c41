"""What a fleet costs a month, line by line, today and at a factor.

Nodes and their energy grow with the nodes, and egress with what runs. Storage, spares and staff
stay as they are; a fix that adds to them has changed the state by then. Purchases that have no
field of their own are the line of fixes.
"""

from dataclasses import dataclass

from msgspec import Struct

from tenfold.model.growth.growth import SECONDS_PER_MONTH, Axis, Dataset, grown_by
from tenfold.model.ids import SiteId
from tenfold.model.units import usd
from tenfold.physics.site_routes import quickest_route
from tenfold.study.estimate.money import fleet_bill
from tenfold.study.grow.cost.prices import unit_cost
from tenfold.study.grow.history import history_of, running_growth
from tenfold.study.grow.layers.compute.nodes import node_usd
from tenfold.study.grow.layers.fabric.site_links import remote_traffic
from tenfold.study.grow.layers.storage.capacity import dataset_growth
from tenfold.study.grow.racks import spares_in
from tenfold.study.grow.state import State

GB = 1e9


class MonthlyCost(Struct, frozen=True, kw_only=True):
    """Dollars a month by kind, and the pools whose price is not known."""

    nodes: float
    energy: float
    spares: float
    staff: float
    storage: float
    egress: float
    fixes: float
    unpriced: tuple[str, ...] = ()

    @property
    def usd(self) -> float:
        """The sum of all lines."""
        return sum(value for _, value in self.lines)

    @property
    def lines(self) -> tuple[tuple[str, float], ...]:
        """Each line that costs something, by its name on screen."""
        named = (
            ("nodes", self.nodes),
            ("energy", self.energy),
            ("spare nodes", self.spares),
            ("technicians", self.staff),
            ("storage", self.storage),
            ("egress", self.egress),
            ("ports, racks, power and links of fixes", self.fixes),
        )
        return tuple((name, value) for name, value in named if value)


@dataclass(frozen=True, slots=True)
class Month:
    """A month of a fleet, as a function of the factor."""

    state: State
    today: MonthlyCost
    job_egress: float
    load: float
    staged: tuple[tuple[Dataset, float], ...]
    """Datasets that are copied between sites, with the cost of today."""

    def at(self, axis: Axis, factor: float) -> MonthlyCost:
        """Return the cost at a factor of an axis."""
        nodes = grown_by(axis, "nodes", factor)
        running = running_growth(axis, self.load)(factor) if self.job_egress else 1.0
        copied = sum(cost * dataset_growth(one, axis, factor) for one, cost in self.staged)
        today = self.today
        return MonthlyCost(
            nodes=today.nodes * nodes,
            energy=today.energy * nodes,
            spares=today.spares,
            staff=today.staff,
            storage=today.storage,
            egress=self.job_egress * running + copied,
            fixes=today.fixes,
            unpriced=today.unpriced,
        )


def month_of(state: State) -> Month:
    """Return what a month of the fleet costs."""
    spec = state.spec
    by_kind = dict.fromkeys(("pool", "energy", "tier"), 0.0)
    for line in fleet_bill(spec):
        by_kind[line.kind] += line.usd
    priced = [pool for pool in spec.pools if pool.price is not None]
    job_egress, load = _job_egress(state)
    staged = tuple(
        (one, cost) for one in state.grow.datasets if (cost := _copy_usd(state, one)) > 0
    )
    today = MonthlyCost(
        nodes=by_kind["pool"],
        energy=by_kind["energy"],
        spares=sum(spares_in(state, pool) * node_usd(spec, pool) for pool in priced),
        staff=(state.grow.operations.crew or 0.0) * unit_cost(state, "technician").usd,
        storage=by_kind["tier"],
        egress=job_egress + sum(cost for _, cost in staged),
        fixes=sum(state.purchases),
        unpriced=tuple(str(pool.id) for pool in spec.pools if pool.price is None),
    )
    return Month(state, today, job_egress, load, staged)


def _job_egress(state: State) -> tuple[float, float]:
    """Return what jobs pay for bytes between sites, and how full the fleet is."""
    history = state.once(history_of)
    if history is None or not state.spec.links:
        return 0.0, 1.0
    cost = sum(
        _transfer_usd(state, one.tier.site, one.site, one.read_bytes_per_s + one.write_bytes_per_s)
        for one in remote_traffic(state, history)
    )
    return cost, history.load


def _copy_usd(state: State, dataset: Dataset) -> float:
    if not dataset.source_site:
        return 0.0
    tier = next(one for one in state.spec.tiers if one.id == dataset.tier)
    return _transfer_usd(state, SiteId(dataset.source_site), tier.site, dataset.staged_bytes_per_s)


def _transfer_usd(state: State, start: SiteId, end: SiteId, bytes_per_s: float) -> float:
    if start == end:
        return 0.0
    route = quickest_route(state.spec.links, start, end, bytes_per_s)
    if route is None:
        return 0.0
    return bytes_per_s * SECONDS_PER_MONTH / GB * usd(route.usd_micros_per_gb)
