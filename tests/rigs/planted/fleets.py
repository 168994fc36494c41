"""Fleets with a break planted in them: each capacity is solved for the factor it is to stand.

The layer that breaks first is drawn, then an axis along which it grows, then its factor and those
of all other layers, well behind it. Layers that do not grow along the axis are made tight today
on purpose: they are decoys for whoever names the fullest layer. Another decoy is a tier that
starves jobs, so that waits grow, too. What a layer really stands is then told by
`planted_truth`, since capacities are rounded to whole places and ports.
"""

from random import Random

from msgspec import Struct

from tenfold.model.growth.growth import Axis
from tenfold.model.growth.measured import UsagePoint
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.job.traffic import WorkProfile
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tests.rigs.planted.jobs import OF_RUNS, jobs_of, policy_of, profiles_of
from tests.rigs.planted.maker import DRAWN, MEASURED, Maker, Order, between
from tests.rigs.planted.plan import Plan, Replica, UsageLine
from tests.rigs.planted.truth import breaks, first_of

BUILDING = ("site-power", "power-budget", "switch-ports", "floor")
UPKEEP = ("spares", "operations")
WITH_FLEET = (*BUILDING, *DRAWN, *MEASURED, *UPKEEP, "money", "admission")
LAYERS: dict[Axis, tuple[str, ...]] = {
    "nodes": WITH_FLEET,
    "all": (*WITH_FLEET, "storage-capacity", "serving"),
    "data": ("storage-capacity", *MEASURED),
    "jobs": (*OF_RUNS, *DRAWN, "storage-streams", "admission", *MEASURED),
    "teams": ("queue", *DRAWN, "admission", *MEASURED),
    "job-size": ("step-efficiency", *MEASURED),
    "traffic": ("serving", *MEASURED),
}
"""Layers that grow along an axis."""
KINDS = tuple(dict.fromkeys(layer for layers in LAYERS.values() for layer in layers))
OF_JOBS = (*DRAWN, "storage-streams", "admission", "queue")
ONE_OF_RUNS = ("quota", "governance", "fragmentation")
"""Planted first or not at all: each needs a history of its own."""
FIRST_LEAST, FIRST_MOST = 1.3, 8.0
GOVERNED_LEAST = 1.5
"""Teams that will be left behind by this factor or later all get their due today."""
BEHIND_LEAST, BEHIND_MOST = 1.35, 20.0
SOUND_LEAST, SOUND_MOST = 21.0, 60.0
"""More than twice the largest factor that is asked for."""
APART = 1.2
"""Rounding may bring the second break nearer; closer than this no first is defined."""
DRAWS_MOST = 50


class Planted(Struct, frozen=True, kw_only=True):
    """A fleet with its work, as values, and where it breaks."""

    seed: int
    kind: str
    """The layer that was meant to break first."""
    plan: Plan
    policy: Policy
    jobs: tuple[Job, ...]
    starts_ms: dict[JobId, Millis]
    profiles: dict[str, WorkProfile]
    measured: tuple[UsagePoint, ...]
    k_by_layer: dict[str, float]
    first: str
    """The layer that breaks first; of a sound fleet one that breaks beyond 20x."""
    k: float


def planted(seed: int, cooling_kw: tuple[float, ...], replica: Replica | None = None) -> Planted:
    """Return a fleet in which one layer clearly breaks first, between 1.3x and 8x.

    Without a replica that the planner found, no service is planted.
    """
    draw = Random(seed)
    for _ in range(DRAWS_MOST):
        first = draw.choice([one for one in KINDS if replica or one != "serving"])
        axes: list[Axis] = [axis for axis, layers in LAYERS.items() if first in layers]
        axis: Axis = draw.choice(axes)
        k = between(draw, GOVERNED_LEAST if first == "governance" else FIRST_LEAST, FIRST_MOST)
        told = [layer for layer in LAYERS[axis] if layer == first or draw.random() < 0.8]
        wanted = {
            layer: k if layer == first else k * between(draw, BEHIND_LEAST, BEHIND_MOST)
            for layer in _together(draw, first, told)
        }
        order = Order(axis=axis, first=first, wanted=wanted, grows=LAYERS[axis])
        made = _made(seed, Maker(draw, order, cooling_kw, replica).plan(), first)
        behind = first_of(made.k_by_layer)[2]
        if 1.2 < made.k < APART * FIRST_MOST and behind > made.k * APART and _is_meant(made):
            return made
    raise AssertionError(f"seed {seed} gives no fleet with a first break")


def starved(seed: int, cooling_kw: tuple[float, ...]) -> Planted:
    """Return a fleet whose tier starves jobs, so that waits break soon after: an effect.

    Jobs may lose no more of their time than is usual, so that they are seen to be slowed
    before the tier is too slow on average: an effect, too, and the factor has no closed form.
    """
    draw = Random(seed)
    k = between(draw, FIRST_LEAST, 4.0)
    wanted = {"storage-read": k, "queue": k * between(draw, BEHIND_LEAST, 2.0)}
    order = Order(axis="jobs", first="queue", wanted=wanted, grows=LAYERS["jobs"], stalls=True)
    return _made(seed, Maker(draw, order, cooling_kw, None).plan(), "storage-read")


def sound(seed: int, cooling_kw: tuple[float, ...], replica: Replica | None = None) -> Planted:
    """Return a fleet in which no layer breaks before 20x; every other one says little of itself."""
    draw = Random(seed)
    axis = draw.choice(list(LAYERS))
    told = 1.0 if seed % 2 else 0.5
    silent = ("storage-streams", *ONE_OF_RUNS, *(() if replica else ("serving",)))
    layers = [one for one in LAYERS[axis] if one not in silent and draw.random() < told]
    wanted = {one: between(draw, SOUND_LEAST, SOUND_MOST) for one in _together(draw, "", layers)}
    order = Order(axis=axis, first="", wanted=wanted, grows=LAYERS[axis], tight=3.0)
    return _made(seed, Maker(draw, order, cooling_kw, replica).plan(), "")


def _together(draw: Random, first: str, layers: list[str]) -> list[str]:
    """Return the layers that one fleet can have without one disturbing another's closed form.

    Faults stop jobs, so that waits and draws would no longer be what they are without. Of
    what only runs can tell, one is planted, and what draws on a tier stays away from it. Beside
    a queue jobs may read but not save: saves take a tier from its readers for a while, jobs
    then run longer, and the queue is no longer that of jobs all alike.
    """
    if first in ONE_OF_RUNS:
        apart = (*OF_RUNS, *DRAWN, "storage-streams")
    elif first in UPKEEP or (first not in OF_JOBS and draw.random() < 0.5):
        apart = (*OF_JOBS, *ONE_OF_RUNS)
    else:
        # Streams are an assumption of the reader's, and counted in fleets that only read.
        unsaved = {"checkpoint-burst": "storage-streams", "queue": "checkpoint-burst"}
        apart = (*UPKEEP, *ONE_OF_RUNS, unsaved.get(first, ""))
    return [layer for layer in layers if layer == first or layer not in apart]


def _is_meant(made: Planted) -> bool:
    """Return whether the layer that breaks first is the one that was drawn to."""
    same = {"quota": ("queue",)}
    return made.first in same.get(made.kind, (made.kind,))


def _made(seed: int, plan: Plan, kind: str) -> Planted:
    k_by_layer = breaks(plan)
    first, k, _ = first_of(k_by_layer) if k_by_layer else ("", 0.0, 0.0)
    work = plan.work
    jobs = () if work is None else jobs_of(work)
    return Planted(
        seed=seed,
        kind=kind,
        plan=plan,
        policy=policy_of(work),
        jobs=jobs,
        starts_ms={job.id: job.submitted_ms for job in jobs if work is not None and work.is_run},
        profiles={} if work is None else profiles_of(work),
        measured=tuple(point for line in plan.lines for point in _points(line)),
        k_by_layer=k_by_layer,
        first=first,
        k=k,
    )


def _points(line: UsageLine) -> list[UsagePoint]:
    """Return what is measured up to today: a quarter of the demand, a half, and all of it."""
    return [
        UsagePoint(
            layer=line.layer,
            resource="server",
            factor=factor,
            usage=line.still + line.grows * factor,
            limit=line.limit,
        )
        for factor in (0.25, 0.5, 0.75, 1.0)
    ]
