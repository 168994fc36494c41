"""Where planted fleets break, told from how they were made.

Each closed form is written here a second time, from what a layer means and not from how growth
judges it: nothing of the laws, their axes or their search is imported. A planted fleet has one
site, one pool of nodes in full racks, at most one tier, and jobs alike that come evenly.
"""

from math import inf, sqrt

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.fleet_spec import FleetSpec, Pool
from tenfold.model.growth import Axis, GrowSpec

WARM_UP_S = 2 * 86_400.0
"""Jobs of the first two days are not judged: the fleet was empty before them."""
WITH_NODES = ("nodes", "all")
WITH_JOBS = ("jobs", "teams", "nodes", "all")
WITH_DATA = ("data", "all")


class Work(Struct, frozen=True, kw_only=True):
    """Jobs that fill one node each, come one every so often, and run as long as each other."""

    jobs: int
    every_s: float
    runs_s: float
    read_bytes_per_s_per_gpu: float = 0.0
    save_bytes: float = 0.0
    save_every_s: float = 0.0
    is_run: bool = False
    """Whether the history says when jobs started, so that waits can be judged."""

    @property
    def running(self) -> float:
        """Jobs that run at once, on average."""
        return self.runs_s / self.every_s


class UsageLine(Struct, frozen=True, kw_only=True):
    """A measured resource: so much stands still, so much grows with the factor."""

    layer: str
    still: float
    grows: float
    limit: float


class Plan(Struct, frozen=True, kw_only=True):
    """All that decides where a planted fleet breaks."""

    axis: Axis
    spec: FleetSpec
    grow: GrowSpec
    work: Work | None = None
    lines: tuple[UsageLine, ...] = ()
    counts_assumed: bool = False
    cooling_kw: tuple[float, ...] = ()
    """What a rack may draw under each kind of cooling; other limits are the rack's own."""


def breaks(plan: Plan) -> dict[str, float]:
    """Return the factor at which each layer breaks; without end where it does not grow."""
    found = {line.layer: (line.limit - line.still) / line.grows for line in plan.lines}
    return found | _building(plan) | _held(plan) | _drawn(plan) | _waits(plan)


def headroom(plan: Plan) -> dict[str, float]:
    """Return how many times today's use each layer has, whether it grows or not.

    Whoever names the fullest layer of today for the next break goes by this.
    """
    found = {line.layer: line.limit / (line.still + line.grows) for line in plan.lines}
    return found | _building(replace(plan, axis="nodes")) | _drawn_today(plan)


def first_of(found: dict[str, float]) -> tuple[str, float, float]:
    """Return the layer with the lowest factor, that factor, and the next one."""
    order = sorted(found.items(), key=lambda pair: (pair[1], pair[0]))
    return order[0][0], order[0][1], order[1][1] if len(order) > 1 else inf


def _building(plan: Plan) -> dict[str, float]:
    if plan.axis not in WITH_NODES:
        return {}
    [site], [pool] = plan.spec.sites, plan.spec.pools
    facility, limits = plan.grow.facility, plan.grow.limits
    nodes_kw = pool.nodes * pool.power_w_per_node * site.pue / 1_000
    still_kw = sum(tier.power_w for tier in plan.spec.tiers) * site.pue / 1_000
    racks = pool.nodes / pool.nodes_per_rack
    found: dict[str, float] = {}
    if site.power_kw_limit is not None:
        found["site-power"] = (site.power_kw_limit - still_kw) / nodes_kw
    if limits.kw_most is not None:
        found["power-budget"] = (limits.kw_most - still_kw) / nodes_kw
    if "nodes_per_rack" not in pool.defaulted:
        rack_kw = pool.nodes_per_rack * pool.power_w_per_node / 1_000
        cooled = site.rack_kw_limit in plan.cooling_kw
        found["cooling" if cooled else "rack-power"] = site.rack_kw_limit / rack_kw
    if facility.ports_free is not None:
        found["switch-ports"] = 1 + facility.ports_free / (pool.nodes * pool.nics_per_node)
    if facility.floor_racks is not None:
        found["floor"] = facility.floor_racks / racks
    return found


def _held(plan: Plan) -> dict[str, float]:
    """A dataset grows with its own axis, or with whatever grows."""
    if not plan.grow.datasets:
        return {}
    [dataset], [tier] = plan.grow.datasets, plan.spec.tiers
    along = {"data": WITH_DATA, "nodes": WITH_NODES, "jobs": WITH_JOBS}
    grows = dataset.grows_with == "all" or plan.axis in along[dataset.grows_with]
    return {"storage-capacity": tier.capacity / dataset.bytes if grows else inf}


def _drawn_today(plan: Plan) -> dict[str, float]:
    """What jobs draw of the tier: each running one reads all the time and saves at times."""
    work = plan.work
    if work is None or not plan.spec.tiers:
        return {}
    [tier], [pool] = plan.spec.tiers, plan.spec.pools
    readers = work.running * pool.gpus_per_node
    found: dict[str, float] = {}
    if work.read_bytes_per_s_per_gpu:
        found["storage-read"] = tier.read_bandwidth / (readers * work.read_bytes_per_s_per_gpu)
        if plan.counts_assumed:
            found["storage-streams"] = tier.streams / readers
    if work.save_bytes:
        each = work.save_bytes / work.save_every_s
        found["checkpoint-burst"] = tier.write_bandwidth / (work.running * each)
    return found


def _drawn(plan: Plan) -> dict[str, float]:
    [pool] = plan.spec.pools
    return {
        layer: _reached(plan, pool, layer, there) for layer, there in _drawn_today(plan).items()
    }


def _reached(plan: Plan, pool: Pool, layer: str, there: float) -> float:
    """Return the factor at which so many times today's draw is drawn."""
    assert plan.work is not None, "only jobs draw"
    heavier = plan.axis in WITH_DATA and layer != "storage-streams"
    if plan.axis in WITH_NODES:
        # More nodes run more jobs, and along all axes each of them draws more as well.
        return sqrt(there) if heavier else there
    if plan.axis in WITH_JOBS:
        # No more jobs run than there are nodes for.
        return there if there <= pool.nodes / plan.work.running else inf
    return there if heavier else inf


def _waits(plan: Plan) -> dict[str, float]:
    """Even arrivals on equal servers: nobody waits until there is more work than nodes.

    Beyond that a job that comes at t waits t * (load - 1), and one that has not started by
    the end has waited the rest. Of the jobs after the warm-up one in ten then waits longer
    than (0.9 * end + 0.1 * warm-up) * (1 - 1 / load). Where waits cannot be judged, there is
    still no more work done than the nodes do.
    """
    work, [pool] = plan.work, plan.spec.pools
    if work is None or plan.axis != "jobs":
        return {}
    if not (work.is_run or plan.counts_assumed):
        return {"queue": pool.nodes / work.running}
    end_s = work.jobs * work.every_s
    reach_s = 0.9 * end_s + 0.1 * max(WARM_UP_S, work.runs_s)
    load = 1 / (1 - plan.grow.limits.wait_s_p90 / reach_s)
    return {"queue": load * pool.nodes / work.running}
