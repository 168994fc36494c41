"""The work of a history by job size and profile, and how efficiency falls with job size."""

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from tenfold.physics.growth.breaking import ASSUMED, STATED, Evidence
from tenfold.physics.scaling import efficiency_at
from tenfold.study.grow.history import gpu_time
from tenfold.study.grow.state import State

ASSUMES = "the workload comes from a mix, the expected model, or a history without start times"
Scaling = Sequence[tuple[int, float]]


class WorkBySize(NamedTuple):
    """GPU time of jobs of one size, and how their efficiency scales."""

    gpus: float
    gpu_s: float
    scaling: Scaling

    def efficiency(self, factor: float) -> float:
        """Return the efficiency at a multiple of the GPUs, relative to today."""
        return efficiency_at(self.scaling, self.gpus * factor) / efficiency_at(
            self.scaling, self.gpus
        )


def work_by_size(
    state: State, profile: str | None = None, types: tuple[str, ...] = ()
) -> list[WorkBySize]:
    """Return the GPU time of the history by job size and profile.

    With `types`, only that of jobs that can run on nothing else.
    """
    profiles = state.inputs.profiles
    return [
        WorkBySize(kind.gpus, seconds, falling(known.scaling if known else ()))
        for kind, seconds in gpu_time(state.inputs.jobs).items()
        for known in [profiles.get(kind.profile)]
        if profile in (None, kind.profile) and kind.confined_to(types)
    ]


def falling(scaling: Scaling) -> Scaling:
    """Return a scaling without its rises, because utilisation never falls with the factor."""
    shares = accumulate((share for _, share in scaling), min)
    return [(size, share) for (size, _), share in zip(scaling, shares, strict=True)]


def work_evidence(state: State) -> Evidence:
    """Return how well work is known.

    A history that does not say when jobs started was never compared with what happened.
    """
    return STATED if state.inputs.starts_ms and not state.inputs.mix else ASSUMED
