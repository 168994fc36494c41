"""What relieves the fabric: uplinks that block less, more spines, and wider links between sites.

What switches and lines cost differs from place to place, and nobody states it.
"""

from collections.abc import Callable

from msgspec.structs import replace

from tenfold.model.fleet_spec import Fabric
from tenfold.model.units import BytesPerSecond
from tenfold.physics.growth.law import Law
from tenfold.report.figures import count, rate_bytes
from tenfold.study.grow.laws_links import link_name
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks, taken, times, up
from tenfold.study.grow.state import State, widen

PODS = "pods"


def _uplinks(law: Law, state: State, dose: float) -> list[Relief]:
    """Uplinks block less, as far as that goes; beyond that there are so many times of them."""
    below, _, name = law.resource.partition(" of ")
    fabric = next(one for one in state.spec.fabrics if one.id == name)
    ratio = fabric.core_oversubscription if below == PODS else fabric.oversubscription
    new = max(1.0, ratio / times(dose))
    left = dose * new / ratio
    if ratio > 1 and (below != PODS or left <= 1):
        return [blocking_less(state, fabric, new, below)]
    made = [] if ratio <= 1 else [blocking_less(state, fabric, new, below)]
    wide = times(left)

    def apply(now: State) -> State:
        for part in made:
            now = part.apply(now)
        return widen(taken(now, "uplinks"), law.key, wide)

    text = "; ".join([*(part.sentence for part in made), f"{wide:g} times the uplinks of {below}"])
    return [Relief("uplinks", f"{text} of {name}", None, lead_weeks(state, "switch"), apply)]


def blocking_less(state: State, fabric: Fabric, ratio: float, below: str = "leaves") -> Relief:
    """Return a fabric of which what enters a leaf or pod is at most so many times what leaves."""
    core = below == PODS
    old = fabric.core_oversubscription if core else fabric.oversubscription
    plan = next(one for one in state.layout.fabrics if one.name == fabric.id)
    # More uplinks do not take ports from nodes: leaves and pods stay as large as they are.
    sized = replace(fabric, nodes_per_leaf=plan.nodes_per_leaf, leaves_per_pod=plan.leaves_per_pod)
    wider = (
        replace(sized, core_oversubscription=ratio)
        if core
        else replace(sized, oversubscription=ratio)
    )

    def apply(now: State) -> State:
        fabrics = tuple(wider if one.id == fabric.id else one for one in now.spec.fabrics)
        return taken(now, "uplinks", replace(now.spec, fabrics=fabrics))

    how = "non-blocking" if ratio <= 1 else f"{ratio:.3g} to 1"
    text = f"uplinks of {below} of {fabric.id} {how}, {old:g} to 1 today"
    return Relief("uplinks", text, None, lead_weeks(state, "switch"), apply)


def _spines(law: Law, state: State, dose: float) -> list[Relief]:
    fabric = next(one for one in state.spec.fabrics if f"fabric {one.id}" == law.resource)
    spines = fabric.spines or 0
    wanted = up(spines * dose, 1)

    def apply(now: State) -> State:
        fabrics = tuple(
            replace(one, spines=wanted) if one.id == fabric.id else one for one in now.spec.fabrics
        )
        return taken(now, "spines", replace(now.spec, fabrics=fabrics))

    text = f"{count(wanted - spines, 'spine')} more in {fabric.id}, {spines:,} today"
    return [Relief("spines", text, None, lead_weeks(state, "switch"), apply)]


def _links(law: Law, state: State, dose: float) -> list[Relief]:
    link = next(one for one in state.spec.links if link_name(one) == law.resource)
    wanted = BytesPerSecond(round(link.bandwidth * dose / NEARLY))

    def apply(now: State) -> State:
        links = tuple(
            replace(one, bandwidth=wanted) if link_name(one) == law.resource else one
            for one in now.spec.links
        )
        return taken(now, "link", replace(now.spec, links=links))

    old, new = rate_bytes(float(link.bandwidth)), rate_bytes(float(wanted))
    text = f"{new} between {link.a} and {link.b}, {old} today"
    return [Relief("link", text, None, lead_weeks(state, "link"), apply)]


FABRIC_RELIEFS: dict[str, Callable[[Law, State, float], list[Relief]]] = {
    "fabric-uplinks": _uplinks,
    "fabric-spine": _spines,
    "site-links": _links,
}
