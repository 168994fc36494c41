"""A growth question: the axis, the factors and the requirement."""

from msgspec import Struct

from tenfold.model.errors import InputError
from tenfold.model.growth.growth import Axis

USUAL_FACTORS = (2.0, 5.0, 10.0)
FACTOR_MOST = 1_000.0


class GrowQuestion(Struct, frozen=True, kw_only=True):
    """One growth question; the fleet and its workload are separate inputs."""

    axis: Axis = "nodes"
    to: tuple[float, ...] = USUAL_FACTORS
    """Requested factors; the analysis goes up to the largest."""
    seeds: int = 5
    seed: int = 0
    failures: str | None = None
    require: float | None = None
    """The factor that today's fleet must reach without any fix."""
    allow_unknown: bool = False
    """Let `require` pass even if some limits could not be checked."""
    count_assumed: bool = False
    """Let layers that rest on an assumption be first, and count against `require`."""

    @property
    def most(self) -> float:
        """The largest factor of interest."""
        return max((*self.to, self.require or 1.0))


def check_question(question: GrowQuestion) -> GrowQuestion:
    """Return the question, or raise an error for a factor out of range."""
    required = (*question.to, *(() if question.require is None else (question.require,)))
    wrong = next((factor for factor in required if not 1 <= factor <= FACTOR_MOST), None)
    if wrong is not None or not question.to:
        said = (
            "no growth factor given"
            if wrong is None
            else f"a growth factor must be from 1 to {FACTOR_MOST:,g}, got {wrong:,g}"
        )
        raise InputError(
            "factor-out-of-range",
            said,
            "write factors as `--to 2,5,10`",
        )
    return question
