"""Fabric uplinks: traffic of gangs out of a leaf or a pod against the uplink bandwidth.

Each leaf has its own uplinks, so more jobs or nodes do not load them; larger gangs do, because more
of their traffic leaves the leaf. A shortage only stretches the communication part of a step: the
layer counts as broken if that costs more than the allowed share of time.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace as with_fields
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.model.fleet.spec import Fabric, FleetSpec
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.growth.breaking import weakest
from tenfold.report.figures import rate_bytes
from tenfold.study.grow.cost.prices import priced
from tenfold.study.grow.layer import ComputedLayer, Constraint, Unlimited
from tenfold.study.grow.layers.fabric.leaves import (
    Unit,
    fabric_evidence,
    leaf_units,
    pod_units,
)
from tenfold.study.grow.layers.fabric.senders import (
    ASSUMES,
    NO_SENDERS,
    CrossedFabric,
    Gang,
    Senders,
    crossed_fabrics,
    stall_weight,
)
from tenfold.study.grow.relief import (
    Relief,
    combined,
    lead_weeks,
    round_up_digits,
    with_relief,
)
from tenfold.study.grow.state import State, scale_capacity

LEAVES, PODS = "leaves", "pods"
BLOCKING_NEVER = 1e-6
"""Oversubscription of a relaxed fabric: more uplinks than any traffic needs."""


class UplinkDemand(NamedTuple):
    """Demand of gangs of one size on the uplink that is tightest for them."""

    utilisation: float
    gpus: float
    bytes_per_s: float
    up_bytes_per_s: float
    slower: float


class FabricUplinks(ComputedLayer):
    """Uplinks of leaves, and of pods or groups where a fabric has them."""

    name = "fabric-uplinks"
    title = "Uplink bandwidth"
    breaks = "traffic out of a leaf or pod slows steps by more than `stall_share_most`"
    cause_rank = 26
    grows_with = ("job-size",)
    grows_by = (
        "a multi-node job's traffic beyond its leaf; more multi-node jobs come with more leaves"
    )
    needs = NO_SENDERS
    fixed_by = "less oversubscription, or more uplinks"
    assumes = ASSUMES
    always_listed = True

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a constraint for leaves and one for pods of each fabric with several leaves."""
        for crossed in state.once(crossed_fabrics):
            fabric, place, senders = crossed.fabric, crossed.place, crossed.senders
            if senders is None:
                yield self.unknown(
                    f"{PODS if fabric.kind == 'dragonfly' else LEAVES} of {fabric.id}"
                )
                continue
            for below, units in (
                (LEAVES, leaf_units(state, place)),
                (PODS, pod_units(state, place)),
            ):
                if units:
                    yield self._uplinks(state, axis, crossed, below, units, senders)

    def _uplinks(
        self,
        state: State,
        axis: Axis,
        crossed: CrossedFabric,
        below: str,
        units: Sequence[Unit],
        senders: Senders,
    ) -> Constraint:
        fabric, line = crossed.fabric, crossed.line_bytes_per_s
        resource = f"{below} of {fabric.id}"
        wide = state.capacity_scale(self.key(resource))
        gpus = sum(pool.gpus for pool in state.spec.pools if pool.fabric == fabric.id)
        limit = state.grow.limits.stall_share_most

        def worst(factor: float) -> UplinkDemand:
            larger = grown_by(axis, "job-size", factor)
            found = [
                (
                    _wanted(gang, min(gang.gpus * larger, gpus), units, line, wide, limit),
                    gang.running,
                )
                for gang in senders.gangs
            ]
            return _held(found, limit * senders.running)

        def symptom(factor: float) -> str:
            want = worst(factor)
            one = "leaf" if below == LEAVES else "pod"
            if not want.bytes_per_s:
                return f"every job fits under one {one} of {fabric.id}"
            out, there = rate_bytes(want.bytes_per_s), rate_bytes(want.up_bytes_per_s)
            return (
                f"uplink traffic per {one} of {fabric.id}: {out} of {there}; "
                f"jobs of {want.gpus:,.0f} GPUs run {want.slower:.0%} slower"
            )

        def relieve(multiple: float) -> list[Relief]:
            return [self._wider(state, fabric, below, multiple)]

        evidence = weakest(senders.evidence, fabric_evidence(fabric))
        found = self.constraint(
            resource, lambda factor: worst(factor).utilisation, 1.0, evidence, symptom, relieve
        )
        # Simulated jobs lose time on uplinks, too: without this, contention would be blamed.
        return found.slowing_jobs(_unlimited(state, fabric))

    def _wider(self, state: State, fabric: Fabric, below: str, multiple: float) -> Relief:
        """Lower the oversubscription to 1:1 if that is enough; beyond that add uplinks."""
        ratio = fabric.core_oversubscription if below == PODS else fabric.oversubscription
        new = max(1.0, ratio / round_up_digits(multiple))
        left = multiple * new / ratio
        if ratio > 1 and (below != PODS or left <= 1):
            return reduced_oversubscription(state, fabric, new, below)
        made = [] if ratio <= 1 else [reduced_oversubscription(state, fabric, new, below)]
        wide, key = round_up_digits(left), self.key(f"{below} of {fabric.id}")

        def apply(now: State) -> State:
            return scale_capacity(with_relief(now, "uplinks"), key, wide)

        text = f"build {wide:g}x the uplinks for the {below} of {fabric.id}"
        more = Relief("uplinks", text, None, lead_weeks(state, "switch"), apply)
        ports = uplink_ports(state, fabric) / min(ratio, 1.0) * (wide - 1)
        both = combined([*made, priced(state, more, "switch-port", ports)])
        return with_fields(both, code="uplinks")


def _unlimited(state: State, fabric: Fabric) -> Unlimited:
    """Return a change of the fleet after which no uplink of a fabric slows jobs down."""
    plan = next(one for one in state.layout.fabrics if one.name == fabric.id)

    def relaxed(spec: FleetSpec) -> FleetSpec:
        fabrics = tuple(
            replace(
                one,
                nodes_per_leaf=plan.nodes_per_leaf,
                leaves_per_pod=plan.leaves_per_pod,
                oversubscription=BLOCKING_NEVER,
                core_oversubscription=BLOCKING_NEVER,
            )
            if one.id == fabric.id
            else one
            for one in spec.fabrics
        )
        return replace(spec, fabrics=fabrics)

    return relaxed


def reduced_oversubscription(
    state: State, fabric: Fabric, ratio: float, below: str = LEAVES
) -> Relief:
    """Return a relief that lowers the oversubscription of leaves or pods to a ratio."""
    core = below == PODS
    old = fabric.core_oversubscription if core else fabric.oversubscription
    plan = next(one for one in state.layout.fabrics if one.name == fabric.id)
    # More uplinks do not take ports from nodes: leaves and pods keep their size.
    sized = replace(fabric, nodes_per_leaf=plan.nodes_per_leaf, leaves_per_pod=plan.leaves_per_pod)
    wider = (
        replace(sized, core_oversubscription=ratio)
        if core
        else replace(sized, oversubscription=ratio)
    )

    def apply(now: State) -> State:
        fabrics = tuple(wider if one.id == fabric.id else one for one in now.spec.fabrics)
        return with_relief(now, "uplinks", replace(now.spec, fabrics=fabrics))

    which = "pod" if core else "leaf"
    ratios = f"{max(ratio, 1.0):.3g}:1 (down from {old:g}:1)"
    text = f"lower the oversubscription of {which} uplinks in {fabric.id} to {ratios}"
    relief = Relief("uplinks", text, None, lead_weeks(state, "switch"), apply)
    more = max(0.0, 1 / max(ratio, 1.0) - 1 / old)
    return priced(state, relief, "switch-port", uplink_ports(state, fabric) * more)


def uplink_ports(state: State, fabric: Fabric) -> float:
    """Return the switch ports of uplinks as many as node ports: one at either end."""
    plan = next(one for one in state.layout.fabrics if one.name == fabric.id)
    return 2.0 * plan.nodes * plan.rails


def _wanted(
    gang: Gang, gpus: float, units: Sequence[Unit], line: float, wide: float, limit: float
) -> UplinkDemand:
    """Return the demand of gangs of a size on the uplink that is tightest for them.

    Traffic is spread evenly over a gang, so `g` of its `n` GPUs below one uplink send the share
    `1 - g / n` of their traffic over it.
    """
    rate = min(gang.bytes_per_s_per_gpu, line)
    best = UplinkDemand(0.0, gpus, 0.0, units[0].up_bytes_per_s * wide, 0.0)
    for unit in units:
        sent = unit.gpus * max(0.0, 1.0 - unit.gpus / gpus) * rate if gpus else 0.0
        up = unit.up_bytes_per_s * wide
        over = sent / up if up else inf
        if over * stall_weight(gang.share, limit) > best.utilisation:
            slower = gang.share * max(0.0, over - 1.0)
            best = UplinkDemand(over * stall_weight(gang.share, limit), gpus, sent, up, slower)
    return best


def _held(found: Sequence[tuple[UplinkDemand, float]], least: float) -> UplinkDemand:
    """Return the demand that gangs with at least `least` running GPUs reach or exceed.

    Gangs with fewer cannot cost the fleet more than the limit.
    """
    ordered = sorted(found, key=lambda one: -one[0].utilisation)
    running = 0.0
    for want, gpus in ordered:
        running += gpus
        if running >= least:
            return want
    return ordered[-1][0]
