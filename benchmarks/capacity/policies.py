"""Ways to decide on orders, each with only the past known, and the optimum in hindsight."""

from collections.abc import Callable
from math import ceil

import numpy as np
from numpy.typing import NDArray

from tenfold.decide.capacity.buildout.plan import decide_build_out
from tenfold.decide.capacity.buildout.problem import (
    BuildOut,
    DemandClass,
    OwnOption,
    RentOption,
    Scenario,
)
from tenfold.decide.capacity.buildout.program import SolverLimits
from tenfold.decide.capacity.forecast import HORIZON_OVER_HISTORY, forecast
from tenfold.decide.capacity.persistence import lasting_share, towards_level
from tenfold.study.capacity.solver import solve

Floats = NDArray[np.float64]
LEAD = 4
"""Periods from order to use."""
AHEAD = 12
"""Periods that a purchase is judged by after it has arrived."""
OWN_USD, RENT_USD, DELAY_USD = 1.0, 2.7, 8.1
"""Per GPU and period: an owned H100 against the median on-demand price, and three times that."""
RENT_SHARE = 0.15
"""GPUs that can be rented at once, of demand at the start: stock is short when all want it."""
Z90 = 1.2815515655446004
LEVELS = ((-1.4, 0.2), (-0.53, 0.2), (0.0, 0.2), (0.53, 0.2), (1.4, 0.2))
"""Standard scores and probabilities of five courses: the means of fifths of a normal."""
Order = Callable[[Floats, float, float], float]
"""GPUs to order, given demand so far, GPUs there and on order, and GPUs that can be rented."""


def reactive(past: Floats, there: float, _: float) -> float:
    """Order what is missing once it is missing."""
    return max(0.0, float(past[-1]) - there)


def buffered(past: Floats, there: float, _: float) -> float:
    """Keep a fifth more than demand."""
    return max(0.0, 1.2 * float(past[-1]) - there)


def threshold(past: Floats, there: float, _: float) -> float:
    """Order a quarter more once four fifths are in use."""
    return 0.25 * there if past[-1] > 0.8 * there else 0.0


class Tenfold:
    """Forecast the past, and order what the build-out of the next periods orders now."""

    def __init__(self) -> None:
        self.on_order: list[float] = [0.0] * LEAD
        """GPUs by the period in which they arrive, the next one first."""

    def __call__(self, past: Floats, there: float, rentable: float) -> float:
        """Return GPUs to order."""
        self.on_order = [*self.on_order[1:], 0.0]
        ahead = LEAD + AHEAD
        reach = min(ahead, int(HORIZON_OVER_HISTORY * len(past)))
        made = forecast({"demand": past}, reach)[0]["demand"]
        mean = np.maximum(np.array(made.mean), 1e-6)
        spread = np.log(np.maximum(np.array(made.hi80), mean) / mean) / Z90
        spread = spread * lasting_share(past, AHEAD)
        mean = towards_level(mean, past, made.origins)
        mean, spread = _held(mean, ahead), _held(np.minimum(spread, 1.0), ahead)
        courses = [(chance, mean * np.exp(z * spread)) for z, chance in LEVELS]
        now = there - sum(self.on_order)
        arriving = np.cumsum([*self.on_order, *[0.0] * AHEAD])[:ahead]
        problem = problem_of(courses, now, rentable, arriving)
        found = decide_build_out(problem, solve, SolverLimits(nodes=200, gap=0.005))
        assert found is not None, "demand may be missed"
        ordered = sum(
            one.count for one in found[1].orders if one.month == 0 and not one.is_reservation
        )
        self.on_order[-1] = float(ordered)
        return float(ordered)


def _held(values: Floats, count: int) -> Floats:
    return np.pad(values, (0, count - len(values)), mode="edge")


def problem_of(
    courses: list[tuple[float, Floats]], now: float, rentable: float, arriving: Floats | None = None
) -> BuildOut:
    """Return the build-out of some courses of demand."""
    months = len(courses[0][1])
    planned = () if arriving is None else tuple(round(float(one)) for one in arriving)
    return BuildOut(
        months=months,
        own=(
            OwnOption(
                name="own",
                gpus_per_node=1,
                nodes_today=round(now),
                nodes_planned=planned,
                usd_per_node_month=OWN_USD,
                lead_months=LEAD,
            ),
        ),
        rent=(RentOption(name="rent", usd_on_demand=RENT_USD, gpus_most=ceil(rentable)),),
        classes=(DemandClass(name="work", rates={"own": 1.0, "rent": 1.0}, delay_usd=DELAY_USD),),
        scenarios=tuple(
            Scenario(name=str(at), probability=chance, demand=(tuple(course.tolist()),))
            for at, (chance, course) in enumerate(courses)
        ),
    )
