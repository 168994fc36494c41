"""Where planted fleets break, told from how they were made.

Each closed form is written here a second time, from what a layer means and not from how growth
judges it: nothing of the laws, their axes or their search is imported. This page has the
building and the tier; work, and what keeps a fleet up, have pages of their own.
"""

from math import inf

from msgspec.structs import replace

from tenfold.model.fleet.spec import Pool
from tests.rigs.planted.plan import FULLER, WITH_DATA, WITH_JOBS, WITH_NODES, Plan
from tests.rigs.planted.upkeep_truth import upkeep_breaks
from tests.rigs.planted.work_truth import work_breaks


def breaks(plan: Plan) -> dict[str, float]:
    """Return the factor at which each layer breaks; without end where it does not grow.

    Layers that a starved tier drags along are told as if it were not starved: they are
    effects, and whoever is asked for the first break is to name the cause.
    """
    found = {line.layer: (line.limit - line.still) / line.grows for line in plan.lines}
    found |= upkeep_breaks(plan)
    return found | _building(plan) | _held(plan) | _drawn(plan) | work_breaks(plan)


def headroom(plan: Plan) -> dict[str, float]:
    """Return how many times today's use each layer has, whether it grows or not.

    Whoever names the fullest layer of today for the next break goes by this.
    """
    found = {line.layer: line.limit / (line.still + line.grows) for line in plan.lines}
    nodes = replace(plan, axis="nodes")
    found |= upkeep_breaks(nodes) | upkeep_breaks(replace(plan, axis="traffic"))
    found |= _building(nodes) | work_breaks(replace(plan, axis="jobs"))
    [site], [pool] = plan.spec.sites, plan.spec.pools
    rack_kw = pool.nodes_per_rack * pool.power_w_per_node / 1_000
    return found | {"rack-power": site.rack_kw_limit / rack_kw} | _drawn_today(plan)


def first_of(found: dict[str, float]) -> tuple[str, float, float]:
    """Return the layer with the lowest factor, that factor, and the next one."""
    order = sorted(found.items(), key=lambda pair: (pair[1], pair[0]))
    return order[0][0], order[0][1], order[1][1] if len(order) > 1 else inf


def slowed_most(plan: Plan) -> float:
    """Return the largest share of its time that a job can lose to others at the tier.

    At most one job runs on a node, so at worst all nodes read at once. A limit on lost time
    that is not below this is never passed, and only then can a planted fleet tell what comes
    first: jobs that come by chance lose time while the tier is still enough on average, for a
    shared tier is a queue, and how much they lose at which factor has no closed form. With
    few jobs at once it is a twentieth of their time at 0.7 to 0.9 of what the tier gives.
    """
    there = _drawn_today(plan).get("storage-read")
    if plan.work is None or there is None:
        return 0.0
    [pool] = plan.spec.pools
    return max(0.0, 1 - there * plan.work.running / pool.nodes)


def _building(plan: Plan) -> dict[str, float]:
    if plan.axis not in WITH_NODES:
        return {}
    [site], [pool] = plan.spec.sites, plan.spec.pools
    facility, limits = plan.grow.facility, plan.grow.limits
    nodes_kw = pool.nodes * pool.power_w_per_node * site.pue / 1_000
    spares = plan.grow.operations.spares or 0
    spares_w = spares * pool.power_w_per_node
    still_kw = (sum(tier.power_w for tier in plan.spec.tiers) + spares_w) * site.pue / 1_000
    found: dict[str, float] = {}
    if site.power_kw_limit is not None:
        found["site-power"] = (site.power_kw_limit - still_kw) / nodes_kw
    if limits.kw_most is not None:
        found["power-budget"] = (limits.kw_most - still_kw) / nodes_kw
    if facility.ports_free is not None:
        found["switch-ports"] = 1 + facility.ports_free / (pool.nodes * pool.nics_per_node)
    if facility.floor_racks is not None:
        # New nodes come in racks as full as today's, and spares stand in racks as well.
        found["floor"] = (facility.floor_racks * pool.nodes_per_rack - spares) / pool.nodes
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
    [tier] = plan.spec.tiers
    readers = work.running * work.gpus
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
    return {layer: _reached(plan, pool, there) for layer, there in _drawn_today(plan).items()}


def _reached(plan: Plan, pool: Pool, there: float) -> float:
    """Return the factor at which so many times today's draw is drawn."""
    assert plan.work is not None, "only jobs draw"
    if plan.axis in WITH_NODES:
        # More nodes run more jobs, each of which draws what it drew.
        return there
    if plan.axis in FULLER:
        # No more jobs run than there are nodes for.
        return there if there <= pool.nodes / plan.work.running else inf
    # Larger jobs read the same bytes over the same time, services read none, and a larger
    # dataset is read at the rate of the GPUs that read it.
    return inf
