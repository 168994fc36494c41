"""What relieves upkeep and monitoring: people, spares, coarser samples, servers and room.

Coarser samples cost no money and something else: what is shorter than their interval is not
seen. That stands in the sentence, for the one who decides.
"""

from collections.abc import Callable
from math import ceil

from msgspec.structs import replace

from tenfold.model.growth import Monitoring, Operations
from tenfold.physics.growth.law import Law
from tenfold.physics.growth.upkeep import mean_for
from tenfold.report.figures import count
from tenfold.study.grow.laws_monitor import STORE
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks, taken, times
from tenfold.study.grow.reliefs_nodes import node_usd_per_month
from tenfold.study.grow.state import State


def _spares(law: Law, state: State, dose: float) -> list[Relief]:
    spares, most = state.grow.operations.spares or 0, state.grow.limits.spare_shortfall_share_most
    needed = mean_for(spares, most) * dose * NEARLY
    wanted = spares + 1
    while mean_for(wanted, most) < needed:
        wanted += max(1, (wanted - spares) // 8)
    each = node_usd_per_month(state.spec)
    text = f"{count(wanted - spares, 'spare node')} more, {spares:,} today"
    usd = None if each is None else each * (wanted - spares)
    apply = _operated("spares", lambda old: replace(old, spares=wanted))
    return [Relief("spares", text, usd, lead_weeks(state, "nodes"), apply)]


def _people(law: Law, state: State, dose: float) -> list[Relief]:
    """Part of a person is somebody who also does other work; more of them are whole people."""
    crew, each = state.grow.operations.crew or 0.0, state.grow.operations.usd_per_person_month
    more = max(1, ceil(crew * (dose - 1) * NEARLY))
    people = "1 person" if more == 1 else f"{more:,} people"
    text = f"{people} more to look after nodes, {crew:g} today"
    apply = _operated("people", lambda old: replace(old, crew=crew + more))
    return [Relief("people", text, None if each is None else each * more, None, apply)]


def _monitoring(law: Law, state: State, dose: float) -> list[Relief]:
    coarser = _coarser(state, dose)
    return [coarser, *(_store(state, dose) if law.key == STORE.key else _servers(state, dose))]


def _coarser(state: State, dose: float) -> Relief:
    old = state.grow.monitoring.interval_s or 1.0
    new = times(old * dose)
    text = f"scrape every {new:g} s, {old:g} today: what is shorter is not seen"
    return Relief("interval", text, 0.0, 0.0, _monitored("interval", interval_s=new))


def _servers(state: State, dose: float) -> list[Relief]:
    one, parts = state.grow.monitoring.samples_per_s_most or 0.0, ceil(dose * NEARLY)
    text = f"part the nodes among {count(parts, 'server')} that take in {one:,.0f} a second each"
    apply = _monitored("servers", samples_per_s_most=one * parts)
    return [Relief("servers", text, None, None, apply)]


def _store(state: State, dose: float) -> list[Relief]:
    days, room = state.grow.monitoring.retention_days or 0.0, state.grow.monitoring.store_bytes or 0
    fewer, more = float(f"{days / dose * NEARLY:.6g}"), ceil(room * dose)
    kept = int(fewer) if fewer >= 1 else fewer
    text = f"room for {times(more / 1e12):g} TB of samples, {room / 1e12:g} today"
    return [
        Relief(
            "retention",
            f"keep samples for {kept:g} days, {days:g} today",
            0.0,
            0.0,
            _monitored("retention", retention_days=kept),
        ),
        Relief(
            "store",
            text,
            None,
            lead_weeks(state, "storage"),
            _monitored("store", store_bytes=ceil(times(more / 1e12) * 1e12)),
        ),
    ]


def _monitored(relief: str, **changed: float) -> Callable[[State], State]:
    def apply(now: State) -> State:
        monitoring: Monitoring = replace(now.grow.monitoring, **changed)
        return replace(taken(now, relief), grow=replace(now.grow, monitoring=monitoring))

    return apply


def _operated(relief: str, change: Callable[[Operations], Operations]) -> Callable[[State], State]:
    def apply(now: State) -> State:
        operations = change(now.grow.operations)
        return replace(taken(now, relief), grow=replace(now.grow, operations=operations))

    return apply


UPKEEP_RELIEFS: dict[str, Callable[[Law, State, float], list[Relief]]] = {
    "spares": _spares,
    "operations": _people,
    "monitoring": _monitoring,
}
