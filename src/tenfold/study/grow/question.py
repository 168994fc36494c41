"""What is asked of growth: along which axis, how far, and what must hold."""

from msgspec import Struct

from tenfold.model.errors import InputError
from tenfold.model.growth.growth import Axis

USUAL_FACTORS = (2.0, 5.0, 10.0)
FACTOR_MOST = 1_000.0


class GrowQuestion(Struct, frozen=True, kw_only=True):
    """One question about growth; the fleet and its work are given beside it, as values."""

    axis: Axis = "nodes"
    to: tuple[float, ...] = USUAL_FACTORS
    """Factors of interest; the ladder is climbed to the largest."""
    seeds: int = 5
    seed: int = 0
    failures: str | None = None
    require: float | None = None
    """The factor that the fleet must stand without any relief."""
    count_assumed: bool = False
    """Let layers that rest on an assumption be first, and count against `require`."""

    @property
    def most(self) -> float:
        """The largest factor of interest."""
        return max((*self.to, self.require or 1.0))


def check_question(question: GrowQuestion) -> GrowQuestion:
    """Return a question that can be asked, or say which of its factors cannot."""
    wanted = (*question.to, *(() if question.require is None else (question.require,)))
    wrong = next((factor for factor in wanted if not 1 <= factor <= FACTOR_MOST), None)
    if wrong is not None or not question.to:
        said = "no factor is given" if wrong is None else f"a factor of {wrong:g} is asked for"
        raise InputError(
            "factor-out-of-range",
            f"{said}, and growth is followed from 1 to {FACTOR_MOST:g}",
            "give factors as `--to 2,5,10`",
        )
    return question
