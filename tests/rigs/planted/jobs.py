"""The work of planted fleets: how long jobs run for a layer to break, and the jobs themselves.

Ten days of jobs alike, evenly spaced. A layer that only runs can tell gets two hundred of them,
so that what chance adds to a grown history is small beside it; figures need no more than forty.
"""

from math import log
from random import Random

from tenfold.model.growth.growth import Axis, GrowthLimits
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import WHOLE, Job, shape_of
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import SECOND, Bytes, Millis
from tests.rigs.planted.plan import FULLER, NODE_GPUS, Work
from tests.rigs.planted.work_truth import DAY_S, uneven_share

TRAINING = "training"
ACCELERATOR = "H100"
SPAN_S = 10 * DAY_S
JOBS, JOBS_RUN = 40, 200
TEAMS_GROWN = 20
"""Teams come whole along their axis: so many that a twentieth of the work is one."""
WAIT_S, WAIT_QUOTA_S, WAIT_NEVER_S = DAY_S / 2, DAY_S, SPAN_S
"""What one job in ten may wait. Nobody is seen to wait longer than the days recorded."""
PARTS_GPUS, PARTS_MOST = 5, 0.3
"""Two jobs of five GPUs do not fit on a node, and three of its eight are left over."""
OF_RUNS = ("queue", "quota", "governance", "fragmentation")
"""What to plant in a fleet whose first break only runs can tell; `quota` breaks the queue."""
SIZES = 64


def work_limits(kind: str, k: float) -> GrowthLimits:
    """Return limits under which the layer planted is the first that work breaks."""
    if kind == "quota":
        return GrowthLimits(wait_s_p90=WAIT_QUOTA_S)
    if kind == "governance":
        # The lower the limit, the more of its due the team lacks by then; today it lacks none.
        return GrowthLimits(wait_s_p90=WAIT_NEVER_S, fairness_least=0.98 if k < 2.2 else 0.95)
    if kind == "fragmentation":
        return GrowthLimits(wait_s_p90=WAIT_NEVER_S, stranded_share_most=PARTS_MOST)
    return GrowthLimits(wait_s_p90=WAIT_S)


def bare_work(draw: Random, axis: Axis, kind: str, wanted: dict[str, float], nodes: int) -> Work:
    """Return work that draws on nothing, and breaks the layers of work where they are to."""
    jobs = JOBS_RUN if kind in OF_RUNS or "storage-streams" in wanted else JOBS
    every_s = SPAN_S / jobs
    if kind in ("quota", "governance"):
        return _capped(draw, kind, wanted[kind], every_s)
    if kind == "fragmentation":
        runs_s = round(nodes * every_s / wanted[kind])
        return Work(jobs=jobs, every_s=every_s, runs_s=runs_s, gpus=PARTS_GPUS, is_run=True)
    fills = wanted.get("queue", 100.0 if axis in FULLER else 20.0)
    sized = wanted.get("step-efficiency")
    return Work(
        jobs=jobs,
        every_s=every_s,
        runs_s=round(nodes * every_s / fills),
        teams=TEAMS_GROWN if axis == "teams" else 1,
        falls=0.0 if sized is None else -log(GrowthLimits().step_efficiency_least) / log(sized),
        # How large jobs are is believed of a history that can be laid beside what happened.
        is_run=kind in OF_RUNS or sized is not None,
    )


def _capped(draw: Random, kind: str, k: float, every_s: float) -> Work:
    """Return work of teams of which the first may hold a few nodes only."""
    limits = work_limits(kind, k)
    quota, teams = draw.choice((2, 3)), 4 if kind == "quota" else 2
    asked = quota / k
    if kind == "governance":
        asked /= uneven_share(teams, limits.fairness_least)
    return Work(
        jobs=JOBS_RUN,
        every_s=every_s,
        runs_s=round(asked * teams * every_s),
        teams=teams,
        quota_nodes=quota,
        is_run=True,
    )


def policy_of(work: Work | None) -> Policy:
    """Return the first come first served, or the quota of the first team with it."""
    if work is None or not work.quota_nodes:
        return Policy(name="fifo")
    held = {ACCELERATOR: work.quota_nodes * NODE_GPUS * WHOLE}
    first = TeamRules(id=_team(0), quota=held, borrow={ACCELERATOR: 0})
    others = [TeamRules(id=_team(number)) for number in range(1, work.teams)]
    govern = GovernanceRules(teams=(first, *others), preempts=False, reservations=0)
    return Policy(name="governed", govern=govern)


def jobs_of(work: Work) -> tuple[Job, ...]:
    """Return the history: jobs evenly spaced, teams in turns."""
    shape = shape_of(work.gpus)
    return tuple(
        Job(
            id=JobId(f"job-{number}"),
            shape=shape,
            submitted_ms=Millis(round(number * work.every_s * SECOND)),
            seq=number,
            team=_team(number % work.teams),
            duration_ms=Millis(round(work.runs_s * SECOND)),
            profile=TRAINING,
        )
        for number in range(work.jobs)
    )


def profiles_of(work: Work) -> dict[str, WorkProfile]:
    """Return what jobs draw, and how their speed falls with their size; empty if nothing."""
    if not work.draws and not work.falls:
        return {}
    traffic = Traffic(
        read_bytes_per_s_per_gpu=work.read_bytes_per_s_per_gpu,
        tier="fast" if work.draws else "",
        checkpoint_bytes=Bytes(round(work.save_bytes)),
        checkpoint_every_ms=Millis(round(work.save_every_s * SECOND)),
    )
    return {TRAINING: WorkProfile(traffic=traffic, scaling=_scaling(work))}


def _scaling(work: Work) -> tuple[tuple[int, float], ...]:
    """Return speeds a GPU at sizes so near each other that nothing between them matters."""
    if not work.falls:
        return ()
    sizes = sorted({round(work.gpus * 2 ** (step / 8)) for step in range(SIZES)})
    return tuple((size, (size / work.gpus) ** -work.falls) for size in sizes)


def _team(number: int) -> TeamId:
    return TeamId(f"team-{number}")
