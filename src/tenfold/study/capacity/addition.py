"""Can some nodes be added to the building and the network as they are today?"""

from collections.abc import Mapping
from math import ceil

from tenfold.decide.capacity.buildout.check import used_of_limit
from tenfold.decide.capacity.buildout.problem import Limit
from tenfold.model.errors import InputError
from tenfold.report.figures import count
from tenfold.study.capacity.answer import Shortfall
from tenfold.study.capacity.inputs import CapacityInputs
from tenfold.study.capacity.ladder import limits_of
from tenfold.study.capacity.problem import gate_limits
from tenfold.study.grow.state import planned_state

ROUNDING = 1e-9


def shortfalls(inputs: CapacityInputs, added: Mapping[str, int]) -> list[Shortfall]:
    """Return what is missing today for more nodes in some pools; empty if they fit."""
    state = planned_state(inputs.grow, inputs.failures)
    pools = {str(pool.id): pool for pool in state.spec.pools}
    for name in added:
        if name not in pools:
            known = ", ".join(f"`{one}`" for one in pools)
            raise InputError(
                "unknown-pool",
                f"no pool `{name}` in the fleet file",
                f"declared pools: {known}",
                field="--add",
            )
    limits = [
        *limits_of([state], list(pools.values()), count_assumed=inputs.count_assumed),
        *gate_limits(inputs, inputs.start if inputs.plan.gates else "", 1),
    ]
    found = (_shortfall(limit, added) for limit in limits)
    return [one for one in found if one is not None]


def _shortfall(limit: Limit, added: Mapping[str, int]) -> Shortfall | None:
    used, free = used_of_limit(limit, dict(added)), max(0.0, limit.room[0])
    if used <= free + ROUNDING:
        return None
    nodes = count(sum(added.values()), "node")
    short = _whole(used - free, limit.unit)
    return Shortfall(
        name=limit.name,
        unit=limit.unit,
        needed=used,
        free=free,
        sentence=f"{limit.name}: {nodes} need {_whole(used, limit.unit)} {limit.unit}, "
        f"{_whole(free, limit.unit, down=True)} free, {short} short",
    )


def _whole(value: float, unit: str, *, down: bool = False) -> str:
    if unit == "kW":
        return f"{value:,.1f}"
    return f"{int(value + ROUNDING) if down else ceil(value - ROUNDING):,}"
