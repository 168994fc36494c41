"""Laws that only runs can tell: waits, stranded GPUs, teams left behind, time lost.

They all read the same runs. A run that was never compared with what happened is a guess: without
calibration these laws are assumptions, are shown, and raise no alarm.
"""

from collections.abc import Callable, Sequence

from tenfold.compose.grow_run import RunFigures
from tenfold.model.growth import Axis, moves
from tenfold.model.job import Job
from tenfold.physics.growth.law import ASSUMED, Evidence, Law, Named
from tenfold.sim.window_losses import FAILURES, NEIGHBOURS
from tenfold.study.grow.calibrate import ERROR_MOST
from tenfold.study.grow.run_curve import Read, run_curve
from tenfold.study.grow.runs import Runs
from tenfold.study.grow.state import State

QUEUE = Named("queue", "waits", 80)
GOVERNANCE = Named("governance", "teams", 75)
FRAGMENTATION = Named("fragmentation", "nodes", 70)
GANGS = Named("failures", "gangs", 40)
SHARED = Named("contention", "shared layers", 50)
"""Waits are the effect of nearly everything, and so come last of what breaks together."""
NO_WORK = "a history of jobs, or a mix"
CALIBRATED = Evidence("calibrated", ERROR_MOST)
Said = Callable[[RunFigures], str]


def run_laws(
    state: State, runs: Runs, *, most: float, seeds: Sequence[int] = (0,), calibrated: bool = False
) -> list[Law]:
    """Return the laws of runs along their axis, looked at up to a factor."""
    if not _moves_runs(state, runs.axis):
        return []
    if not state.inputs.jobs:
        return [one.unknown(NO_WORK) for one in (QUEUE, FRAGMENTATION)]
    evidence = CALIBRATED if calibrated else ASSUMED
    laws: list[Law] = []
    for name, read, said in _readings(state, runs):
        if name.key in state.lifted:
            continue
        laws.append(_law(name, read, said, state, runs, (most, seeds, evidence)))
    return laws


def _law(
    name: Named,
    read: Read,
    said: Said,
    state: State,
    runs: Runs,
    how: tuple[float, Sequence[int], Evidence],
) -> Law:
    most, seeds, evidence = how
    curve = run_curve(runs, state, read, most, seeds)

    def symptom(factor: float) -> str:
        return said(runs.at(state, [(curve.place_from(factor), seeds[0])])[0])

    return Law(
        name.layer,
        name.resource,
        curve.strain,
        max(evidence.spread, curve.spread),
        evidence.grade,
        name.cause_rank,
        symptom=symptom,
    )


def _moves_runs(state: State, axis: Axis) -> bool:
    """Return whether anything that a run reads grows along an axis."""
    if moves(axis, "data") and state.inputs.profiles:
        return True
    return moves(axis, "jobs") or moves(axis, "job-size")


def _readings(state: State, runs: Runs) -> list[tuple[Named, Read, Said]]:
    limits = state.grow.limits
    readings: list[tuple[Named, Read, Said]] = [
        (QUEUE, lambda one: _wait_s(one) / limits.wait_s_p90, _queue_said),
        (
            FRAGMENTATION,
            lambda one: one.stranded / limits.stranded_share_most,
            lambda one: f"{one.stranded:.0%} of the GPUs idle where no waiting job fits",
        ),
    ]
    if _teams(state.inputs.jobs) > 1:
        readings.append(
            (
                GOVERNANCE,
                lambda one: limits.fairness_least / max(1e-9, one.jain_deserved),
                lambda one: f"teams get what they deserve with evenness {one.jain_deserved:.2f}",
            )
        )
    if runs.fails:
        readings.append((GANGS, _lost_to(FAILURES, limits.lost_share_most), _lost_said(FAILURES)))
    if state.inputs.profiles:
        readings.append(
            (SHARED, _lost_to(NEIGHBOURS, limits.stall_share_most), _lost_said(NEIGHBOURS))
        )
    return readings


def _wait_s(figures: RunFigures) -> float:
    return max(figures.wait_s_p90_gpu, figures.wait_s_p90_worst)


def _queue_said(figures: RunFigures) -> str:
    if figures.wait_s_p90_gpu >= figures.wait_s_p90_worst:
        return f"a tenth of the GPU time asked for waits {figures.wait_s_p90_gpu / 3_600:,.1f} h"
    whose = figures.worst_class or "jobs"
    return f"one in ten of {whose} waits {figures.wait_s_p90_worst / 3_600:,.1f} h"


def _lost_to(cause: str, most: float) -> Read:
    def read(figures: RunFigures) -> float:
        whole = sum(figures.lost_gpu_h_per_day.values())
        if not whole:
            return 0.0
        return (1 - figures.goodput) * figures.lost_gpu_h_per_day[cause] / whole / most

    return read


def _lost_said(cause: str) -> Said:
    return lambda one: f"{one.lost_gpu_h_per_day[cause]:,.0f} GPU-hours a day lost to {cause}"


def _teams(jobs: Sequence[Job]) -> int:
    return len(dict.fromkeys(job.team for job in jobs))
