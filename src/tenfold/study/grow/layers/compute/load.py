"""GPU time: GPU time requested against GPU time available, in all and by accelerator type.

Load is the work that arrived during the history over what all GPUs could do in that time. It
ignores packing and failures, so it is the latest factor at which a queue must form; simulation
shows how much earlier waits get too long. It needs no start times. Larger jobs do the same work
less efficiently. Jobs that ask for some types of GPUs must fit on those, however many others idle.
"""

from collections.abc import Iterable, Sequence
from math import hypot

from tenfold.model.growth.growth import Axis, grown_by, grows_along
from tenfold.model.job.job import Job
from tenfold.physics.growth.breaking import ASSUMED, STATED, Evidence
from tenfold.study.grow.history import kind_of, span_s, types_asked
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.compute.nodes import (
    gpus_of_types,
    more_of_types,
    short_types,
)
from tenfold.study.grow.layers.compute.work import WorkBySize, work_by_size
from tenfold.study.grow.runs.resample import load_spread
from tenfold.study.grow.state import State

RESOURCE = "all GPUs"


class Compute(ComputedLayer):
    """The GPU time of all jobs over that of all GPUs, and the same for each type asked for."""

    name = "compute"
    title = "GPU time"
    breaks = "jobs request more GPU time than the fleet has, in total or for one accelerator type"
    cause_rank = 78
    grows_with = ("jobs", "job-size")
    grows_by = "GPU time of the jobs"
    capacity_grows_with = ("nodes",)
    needs = "`--jobs` or `--mix`"
    fixed_by = "more nodes"
    assumes = "the workload comes from a mix"
    lead_times = ("nodes",)
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraints on GPU time.

        Nodes that grow together with their jobs are as full as before, so there an unknown load
        is not reported.
        """
        if state.spec.gpus and state.once(work_by_size):
            return [
                self._load(state, axis, RESOURCE, ()),
                *(
                    self._load(state, axis, f"{'/'.join(types)} GPUs", types)
                    for types in types_asked(state.inputs.jobs, state.spec)
                ),
            ]
        hides_nothing = grows_along(axis, "nodes") and not grows_along(axis, "job-size")
        return [] if hides_nothing else [self.unknown(RESOURCE)]

    def _load(self, state: State, axis: Axis, resource: str, types: tuple[str, ...]) -> Constraint:
        """Return the constraint on the GPUs of some types; no types: on all."""
        jobs = jobs_confined_to(state.inputs.jobs, types)
        works: Sequence[WorkBySize] = work_by_size(state, types=types)
        available = gpus_of_types(state.spec, types) * span_s(state.inputs.jobs)

        def requested(factor: float) -> float:
            larger = grown_by(axis, "job-size", factor)
            more = grown_by(axis, "jobs", factor) / grown_by(axis, "nodes", factor)
            return more * sum(one.gpu_s / one.efficiency(larger) for one in works)

        def symptom(factor: float) -> str:
            whose = f" of {'/'.join(types)}" if types else ""
            share = requested(factor) / available
            return f"jobs request {share:.0%} of the GPU time{whose} available"

        return self.constraint(
            resource,
            requested,
            available,
            _evidence(state, jobs),
            symptom,
            lambda multiple: more_of_types(state, types or short_types(state), multiple),
        )


def jobs_confined_to(jobs: Sequence[Job], types: tuple[str, ...]) -> list[Job]:
    """Return the jobs that can run on nothing but some types; no types: all jobs."""
    return [job for job in jobs if kind_of(job).confined_to(types)]


def _evidence(state: State, jobs: Sequence[Job]) -> Evidence:
    """Return how well the load is known: a history is a sample of its demand."""
    if state.inputs.mix:
        return ASSUMED
    return Evidence(STATED.grade, hypot(STATED.spread, load_spread(jobs)))
