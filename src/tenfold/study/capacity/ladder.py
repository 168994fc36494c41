"""What `tenfold grow` says about the same fleet: its fixes as phases, their state as limits.

The plan does not judge layers a second time. Each row of the analysis becomes a phase with the day
that `grow` prints. From that day on, purchases may use what the fix adds, and never more.
"""

from collections.abc import Callable, Sequence
from math import ceil, inf, log2

from msgspec import Struct

from tenfold.decide.capacity.buildout.problem import Limit
from tenfold.model.fleet.spec import Pool
from tenfold.study.capacity.answer import Phase
from tenfold.study.capacity.calendar import day_after, months_of, months_until, shifted
from tenfold.study.grow.analyse import Analysis, analyse_growth
from tenfold.study.grow.answer import Row
from tenfold.study.grow.cost.monthly import month_of
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layers.building.power import site_kw
from tenfold.study.grow.layers.fabric.leaves import fabric_evidence
from tenfold.study.grow.question import FACTOR_MOST, GrowQuestion
from tenfold.study.grow.racks import pool_racks, racks_at, spares_in
from tenfold.study.grow.state import ConstraintKey, State

FACTOR_LEAST = 1.0001
"""Demand that does not grow still has a question to ask."""
NEVER = 10**9
Reached = Callable[[float], float]
"""The months until demand reaches a factor; infinite if it does not."""


class Ladder(Struct, frozen=True, kw_only=True):
    """The growth analysis of a plan's fleet, with the month in which each fix is in place."""

    analysis: Analysis
    question: GrowQuestion
    ready: tuple[int, ...]
    """The month from which each fix is in place."""
    today: State

    def state(self, month: int) -> State:
        """Return the fleet as it is in a month: with the fixes that are in place by then."""
        done = 0
        for ready in self.ready:
            if ready > month:
                break
            done += 1
        return (self.today, *self.analysis.states[1:])[done]


def reached_by_pace(doubles_in_months: float) -> Reached:
    """Return when demand that doubles steadily reaches a factor."""

    def reached(factor: float) -> float:
        return doubles_in_months * log2(max(factor, 1.0))

    return reached


def reached_by_path(path: Sequence[float]) -> Reached:
    """Return when demand by month, as a multiple of today's, first reaches a factor."""

    def reached(factor: float) -> float:
        before = 1.0
        for month, level in enumerate(path):
            if level >= factor:
                part = (factor - before) / (level - before) if level > before else 0.0
                return max(0.0, month - 1 + part)
            before = max(before, level)
        return inf

    return reached


def analyse_ladder(
    inputs: GrowInputs,
    question: GrowQuestion,
    reached: Reached,
    start: str,
    *,
    by_pace: bool,
    done: Callable[[int], None] | None = None,
) -> tuple[Ladder, list[Phase]]:
    """Return the analysis of a fleet along the growth of a plan, and a phase for each fix."""
    analysis = analyse_growth(inputs, question, done)
    rows = analysis.answer.rows
    times = [max(0.0, reached(row.k or 1.0)) for row in rows]
    ready: list[int] = []
    for row, time in zip(rows, times, strict=True):
        if row.relief is not None:
            # A fix counts after those above it, as the analysis says what it does on top of them.
            ready.append(max([_ready(time, row.relief.weeks or 0.0), *ready[-1:]]))
    ladder = Ladder(
        analysis=analysis, question=question, ready=tuple(ready), today=analysis.states[0]
    )
    phases = [
        _phase(row, time, start, by_pace=by_pace) for row, time in zip(rows, times, strict=True)
    ]
    return ladder, phases


def _ready(time: float, weeks: float) -> int:
    """Return the month from which a fix is in place: when it is needed, or when it can arrive."""
    lead = months_of(weeks)
    return NEVER if time == inf else ceil(lead) if lead > time else int(time)


def factor_asked(most: float) -> float:
    """Return the factor to analyse: what demand grows to, within what `grow` answers."""
    return min(FACTOR_MOST, max(FACTOR_LEAST, float(f"{most:.4g}")))


def _phase(row: Row, time: float, start: str, *, by_pace: bool) -> Phase:
    relief = row.relief
    weeks = (relief.weeks or None) if relief else None
    needed = "" if time == inf else day_after(start, time)
    order_by, late = row.order_by, row.late
    if not by_pace:
        order_by = shifted(needed, -round(7 * weeks)) if weeks and needed else ""
        late = bool(order_by) and order_by < start
    return Phase(
        kind="fix",
        what=relief.sentence if relief else row.sentence or "no known fix",
        reason=row.label or row.layer,
        order_by=order_by,
        needed=needed,
        lead_weeks=weeks,
        confidence=None,
        usd_per_month=relief.usd_per_month if relief else None,
        late=late,
        factor=row.k,
    )


def fixes_usd(ladder: Ladder, months: int) -> list[float]:
    """Return what fixes cost in each month, on top of today's fleet."""
    before = month_of(ladder.today).today.usd
    return [month_of(ladder.state(month)).today.usd - before for month in range(months)]


def limits_of(
    states: Sequence[State], pools: Sequence[Pool], *, count_assumed: bool
) -> list[Limit]:
    """Return what the building and the network leave for nodes of some pools, by month."""
    today = states[0]
    names = [str(pool.id) for pool in pools]
    found: list[Limit] = []
    for site in today.spec.sites:
        here = [pool for pool in pools if pool.site == site.id]
        if site.power_kw_limit is not None and here:
            room = tuple(_power_room(state, str(site.id)) for state in states)
            each = {str(pool.id): pool.power_w_per_node * site.pue / 1_000 for pool in here}
            name = f"Site power, site {site.id}"
            found.append(Limit(name=name, unit="kW", room=room, per_node=each))
    if today.grow.limits.kw_most is not None:
        pue = {site.id: site.pue for site in today.spec.sites}
        each = {str(pool.id): pool.power_w_per_node * pue[pool.site] / 1_000 for pool in pools}
        room = tuple(_total_power_room(state) for state in states)
        found.append(Limit(name="Total power", unit="kW", room=room, per_node=each))
    found += _ports(states, pools, count_assumed)
    if today.grow.facility.floor_racks is not None:
        racks = {str(one.pool.id): one for one in pool_racks(today)}
        extra = {name: spares_in(today, racks[name].pool) for name in names if name in racks}
        found.append(
            Limit(
                name="Floor space",
                unit="racks",
                room=tuple(_floor_room(state) for state in states),
                per_node={},
                per_unit={name: racks[name].per_rack for name in names if name in racks},
                free={name: racks[name].free - extra[name] for name in names if name in racks},
            )
        )
    return found


def _usable(state: State) -> float:
    return 1 - state.grow.limits.headroom_least


def _power_room(state: State, site_id: str) -> float:
    site = next(one for one in state.spec.sites if one.id == site_id)
    limit = site.power_kw_limit
    return inf if limit is None else limit * _usable(state) - site_kw(state, site, 1.0)


def _total_power_room(state: State) -> float:
    limit = state.grow.limits.kw_most
    drawn = sum(site_kw(state, site, 1.0) for site in state.spec.sites)
    return inf if limit is None else limit * _usable(state) - drawn


def _floor_room(state: State) -> float:
    places = state.grow.facility.floor_racks
    if places is None:
        return inf
    # Racks of spares are in the units of the limit, where new nodes may fill them as well.
    today = float(len(state.layout.racks))
    spares = racks_at(state, "nodes")(1.0) - today
    return max(places * _usable(state) - today, spares)


def _ports(states: Sequence[State], pools: Sequence[Pool], count_assumed: bool) -> list[Limit]:
    today = states[0]
    if today.grow.facility.ports_free is not None:
        room = tuple(_free_ports(state) for state in states)
        each = {str(pool.id): float(pool.nics_per_node) for pool in pools}
        name = "Switch ports, all fabrics"
        return [Limit(name=name, unit="ports", room=room, per_node=each)]
    found: list[Limit] = []
    for place, fabric in enumerate(today.spec.fabrics):
        here = {str(pool.id): 1.0 for pool in pools if pool.fabric == fabric.id}
        counted = fabric_evidence(fabric).grade != "assumed" or count_assumed
        if not here or not counted:
            continue
        resource = f"fabric {fabric.id}"
        built = next(one for one in today.inputs.fleet.layout.fabrics if one.name == fabric.id)
        key = ConstraintKey(f"switch-ports:{resource}")
        room = tuple(
            built.nodes_max * state.capacity_scale(key) * _usable(state)
            - state.layout.fabrics[place].nodes
            for state in states
        )
        name = f"Switch ports, {resource}"
        found.append(Limit(name=name, unit="node ports", room=room, per_node=here))
    return found


def _free_ports(state: State) -> float:
    free = state.grow.facility.ports_free
    used = sum(pool.nodes * pool.nics_per_node for pool in state.spec.pools)
    return inf if free is None else (used + free) * _usable(state) - used


def gate_months(ready_by: str, start: str) -> float:
    """Return the months until a gate is open; infinite if no day is stated."""
    return max(0.0, months_until(start, ready_by)) if ready_by else inf
