"""Where planted fleets break by what keeps them up: spares, hands, money, samples, services.

Written a second time from what the layers mean; nothing of the laws is imported. What a replica
answers is the planner's word and is given: a law has to make the right thing of it.
"""

from tenfold.model.fleet.spec import Pool, Site
from tenfold.model.units import HOURS_PER_MONTH
from tests.rigs.planted.failure_truth import spares_break
from tests.rigs.planted.plan import WITH_NODES, WITH_TRAFFIC, Plan


def upkeep_breaks(plan: Plan) -> dict[str, float]:
    """Return the factor at which what keeps the fleet up no longer does."""
    found = _served(plan)
    if plan.axis not in WITH_NODES:
        return found
    return found | _spares(plan) | _hands(plan) | _money(plan) | _samples(plan)


def _spares(plan: Plan) -> dict[str, float]:
    """Nodes down come in bursts, and last as long as their repairs."""
    spares, law = plan.grow.operations.spares, plan.failures
    if spares is None or not law.faults_per_1000_node_days:
        return {}
    share = plan.grow.limits.spare_shortfall_share_most
    return {"spares": spares_break(law, plan.spec.nodes, spares, share)}


def _hands(plan: Plan) -> dict[str, float]:
    """Whichever is less: nodes that people can look after, or repairs that they can do."""
    stated, law, nodes = plan.grow.operations, plan.failures, plan.spec.nodes
    found: list[float] = []
    if stated.crew is None:
        return {}
    if stated.nodes_per_person_most is not None:
        found.append(stated.crew * stated.nodes_per_person_most / nodes)
    if stated.repairs_per_person_day is not None and law.faults_per_1000_node_days:
        repairs = law.faults_per_1000_node_days / 1_000 * nodes * (1 - law.transient_share)
        found.append(stated.crew * stated.repairs_per_person_day / repairs)
    return {"operations": min(found)} if found else {}


def _money(plan: Plan) -> dict[str, float]:
    """Nodes are paid for by the month with their energy where owned; the tier stands still."""
    [site], [pool] = plan.spec.sites, plan.spec.pools
    most = plan.grow.limits.usd_per_month_most
    if most is None or pool.price is None:
        return {}
    tiers = sum(
        tier.usd_micros_per_tb_month / 1e6 * tier.capacity / 1e12 for tier in plan.spec.tiers
    )
    return {"money": (most - tiers) / nodes_usd_per_month(site, pool)}


def nodes_usd_per_month(site: Site, pool: Pool) -> float:
    """Return what a month of the nodes costs today."""
    assert pool.price is not None, "what has no price costs nothing that is known"
    gpus_usd = pool.nodes * pool.gpus_per_node * pool.price.usd_micros_per_hour / 1e6
    kw = pool.nodes * pool.power_w_per_node / 1_000 * site.pue
    energy_usd = kw * site.usd_per_kwh if pool.price.kind == "owned" else 0.0
    return (gpus_usd + energy_usd) * HOURS_PER_MONTH


def _samples(plan: Plan) -> dict[str, float]:
    """Series are of nodes and GPUs; each gives a sample an interval, kept for so many days."""
    stated, [pool] = plan.grow.monitoring, plan.spec.pools
    if stated.interval_s is None:
        return {}
    each = (stated.series_per_node or 0.0) + (stated.series_per_gpu or 0.0) * pool.gpus_per_node
    per_s = pool.nodes * each / stated.interval_s
    found: list[float] = []
    if stated.samples_per_s_most is not None:
        found.append(stated.samples_per_s_most / per_s)
    if stated.store_bytes is not None and stated.retention_days is not None:
        kept = per_s * 86_400 * stated.retention_days * stated.bytes_per_sample
        found.append(stated.store_bytes / kept)
    return {"monitoring": min(found)} if found else {}


def _served(plan: Plan) -> dict[str, float]:
    """Requests keep GPUs busy, of which there are so many; nodes that come too serve as well."""
    if not plan.grow.services or plan.replica is None or plan.axis not in WITH_TRAFFIC:
        return {}
    [service], [pool] = plan.grow.services, plan.spec.pools
    replicas = service.qps / plan.replica.qps
    found: list[float] = []
    if plan.axis not in WITH_NODES:
        found.append(pool.nodes * pool.gpus_per_node / (replicas * plan.replica.gpus))
    if service.replicas_most is not None:
        found.append(service.replicas_most / replicas)
    return {"serving": min(found)} if found else {}
