"""GPU time: GPU time requested against GPU time available.

Load is the work that arrived during the history over what all GPUs could do in that time. It
ignores packing and failures, so it is the latest factor at which a queue must form; simulation
shows how much earlier waits get too long. Larger jobs do the same work less efficiently.
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
    title = "GPU time"
    breaks = "jobs request more GPU time than the fleet has"
    cause_rank = 78
    grows_with = ("jobs", "job-size")
    needs = "`--jobs` or `--mix`"
    fixed_by = "more nodes"
    assumes = ASSUMES
    lead_times = ("nodes",)
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraint on GPU time.

        Nodes that grow together with their jobs are as full as before, so there an unknown load
        is not reported.
        """
        if state.spec.gpus and state.once(work_by_size):
            return [self._load(state, axis)]
        hides_nothing = grows_along(axis, "nodes") and not grows_along(axis, "job-size")
        return [] if hides_nothing else [self.unknown(RESOURCE)]

    def _load(self, state: State, axis: Axis) -> Constraint:
        works = state.once(work_by_size)
        available = state.spec.gpus * span_s(state.inputs.jobs)

        def requested(factor: float) -> float:
            larger = grown_by(axis, "job-size", factor)
            more = grown_by(axis, "jobs", factor) / grown_by(axis, "nodes", factor)
            return more * sum(one.gpu_s / one.efficiency(larger) for one in works)

        def symptom(factor: float) -> str:
            return f"jobs request {requested(factor) / available:.0%} of the GPU time available"

        return self.constraint(
            RESOURCE,
            requested,
            available,
            work_evidence(state),
            symptom,
            lambda multiple: more_nodes(state, multiple),
        )
