"""Compute: GPU time asked for against what there is.

Load is the work that arrived in the span of the history over what all GPUs could do in it. It
knows neither packing nor failures, so it is the latest factor at which a line must form; runs
tell how much earlier waits are too long. Larger jobs do the same work with less efficiency.
"""

from collections.abc import Iterable

from tenfold.model.growth.growth import Axis, grown_by, grows_along
from tenfold.study.grow.history import span_s
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.compute.nodes import more_nodes
from tenfold.study.grow.layers.compute.work import ASSUMES, work_by_size, work_evidence
from tenfold.study.grow.state import State

RESOURCE = "all GPUs"


class Compute(ComputedLayer):
    """The GPU time of all jobs over that of all GPUs."""

    name = "compute"
    breaks = "jobs ask for more GPU time than there is"
    cause_rank = 78
    grows_with = ("jobs", "job-size")
    needs = "a history of jobs, or a mix"
    fixed_by = "nodes"
    assumes = ASSUMES
    lead_times = ("nodes",)
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the law of load.

        Nodes that come with their jobs are as full as before: there an unknown load hides nothing.
        """
        if state.spec.gpus and state.once(work_by_size):
            return [self._load(state, axis)]
        hides_nothing = grows_along(axis, "nodes") and not grows_along(axis, "job-size")
        return [] if hides_nothing else [self.unknown(RESOURCE)]

    def _load(self, state: State, axis: Axis) -> Constraint:
        works = state.once(work_by_size)
        there = state.spec.gpus * span_s(state.inputs.jobs)

        def asked(factor: float) -> float:
            larger = grown_by(axis, "job-size", factor)
            more = grown_by(axis, "jobs", factor) / grown_by(axis, "nodes", factor)
            return more * sum(one.gpu_s / one.efficiency(larger) for one in works)

        def symptom(factor: float) -> str:
            return f"jobs ask for {asked(factor) / there:.0%} of the GPU time there is"

        return self.constraint(
            RESOURCE,
            asked,
            there,
            work_evidence(state),
            symptom,
            lambda multiple: more_nodes(state, multiple),
        )
