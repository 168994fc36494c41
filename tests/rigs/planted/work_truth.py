"""Where the work of planted fleets breaks them: waits, quotas, teams, nodes half full, admission.

Written a second time from what the layers mean; nothing of the laws or of runs is imported.
"""

from math import inf, sqrt

from tenfold.model.growth.growth import Controller
from tests.rigs.planted.plan import FULLER, NODE_GPUS, WITH_JOBS, Plan, Work

DAY_S = 86_400.0
WARM_UP_S = 2 * DAY_S
"""Jobs of the first two days are not judged: the fleet was empty before them."""


def work_breaks(plan: Plan) -> dict[str, float]:
    """Return the factor at which work breaks each layer of its own."""
    if plan.work is None:
        return {}
    found = _admitted(plan, plan.work) | _sized(plan, plan.work)
    if plan.axis not in FULLER:
        return found
    if not plan.runs_count:
        # Waits cannot be judged, but there is no more work done than the nodes do.
        return found | {"queue": plan.spec.nodes / plan.work.running}
    return found | _waits(plan, plan.work) | _left_behind(plan, plan.work) | _parts(plan, plan.work)


def uneven_share(teams: int, evenness: float) -> float:
    """Return what one team gets of its due when evenness is this and all others get theirs.

    Jain's index of n shares of which one is x and the others 1 is
    (n - 1 + x)^2 / (n * (n - 1 + x^2)); solved for x.
    """
    others, whole = teams - 1, teams * evenness
    # (1 - whole) x^2 + 2 others x + others^2 - whole others = 0, whole being above 1.
    a, b, c = 1 - whole, 2.0 * others, others * others - whole * others
    return max(0.0, (-b + sqrt(b * b - 4 * a * c)) / (2 * a))


def _waits(plan: Plan, work: Work) -> dict[str, float]:
    """Even arrivals on equal servers: nobody waits until there is more work than nodes.

    Beyond that waits grow for as long as it lasts, and pass any limit: a job that comes at t
    waits t * (load - 1). How soon they do is no part of the answer, for the demand does not end
    with the days that were recorded. But a limit that not even endless work passes within these
    days cannot be judged by them: one job in ten then waits longer than 0.9 * end + 0.1 * warm-up.
    A team with a quota is a queue of its own before as many servers as the quota has nodes.
    """
    end_s = work.jobs * work.every_s
    reach_s = 0.9 * end_s + 0.1 * max(WARM_UP_S, work.runs_s)
    if plan.grow.limits.wait_s_p90 >= reach_s:
        return {"queue": inf}
    servers, running = float(plan.spec.nodes), work.running
    if work.quota_nodes:
        servers, running = float(work.quota_nodes), running / work.teams
    return {"queue": servers / running}


def _left_behind(plan: Plan, work: Work) -> dict[str, float]:
    """A team that may hold so many nodes gets these, however much it asks for.

    Others get all they ask for while the fleet is not full.
    """
    if not work.quota_nodes:
        return {}
    least = uneven_share(work.teams, plan.grow.limits.fairness_least)
    asked = work.running / work.teams
    return {"governance": work.quota_nodes / (asked * least) if least else inf}


def _parts(plan: Plan, work: Work) -> dict[str, float]:
    """Jobs that leave a part of their node over strand it as soon as somebody waits.

    Above one job a node somebody always waits, below nobody does.
    """
    found: dict[str, float] = {}
    if work.gpus < NODE_GPUS:
        left = 1 - work.gpus / NODE_GPUS
        full = plan.spec.nodes / work.running
        found["fragmentation"] = full if left > plan.grow.limits.stranded_share_most else inf
    if work.gpus < NODE_GPUS or work.quota_nodes:
        # Waits do not tell that the pool is full, so that the load of all GPUs is the first to.
        found["compute"] = plan.spec.nodes * NODE_GPUS / (work.running * work.gpus)
    return found


def _admitted(plan: Plan, work: Work) -> dict[str, float]:
    if not plan.grow.controllers or plan.axis not in WITH_JOBS:
        return {}
    [controller] = plan.grow.controllers
    # Jobs come by chance to a server that takes the same time for each: M/D/1.
    starts, most_s = _per_s(controller), plan.grow.limits.admission_wait_s_most
    comes = 2 * most_s * starts * starts / (1 + 2 * most_s * starts)
    return {"admission": comes * work.every_s}


def _per_s(controller: Controller) -> float:
    """Return the jobs a second that a controller starts: each costs so much, or so many a turn."""
    if controller.cost_ms_per_job is not None:
        return 1_000 / controller.cost_ms_per_job
    assert controller.cycles_per_min is not None, "a planted controller says how fast it is"
    return controller.cycles_per_min * controller.heads_per_cycle / 60


def _sized(plan: Plan, work: Work) -> dict[str, float]:
    """Jobs k times as large keep k to the minus `falls` of their speed a GPU.

    So they ask for k to the `falls` times the GPU time.
    """
    if plan.axis != "job-size" or not work.falls:
        return {}
    there = plan.spec.nodes * NODE_GPUS / (work.running * work.gpus)
    return {
        "step-efficiency": plan.grow.limits.step_efficiency_least ** (-1 / work.falls),
        "compute": there ** (1 / work.falls),
    }
