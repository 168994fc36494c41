"""Fabric uplinks: what gangs send out of a leaf or a pod against what its uplinks carry.

An uplink is its leaf's own, so more jobs or more nodes do not crowd it; larger gangs do, for more
of their traffic leaves the leaf. Too little only stretches the part of a step that communicates:
the layer counts as broken where that costs more than the share of time that steps may stall.
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from tenfold.model.fleet.spec import Fabric
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.growth.breaking import weakest
from tenfold.report.figures import rate_bytes
from tenfold.study.grow.layer import ComputedLayer, Constraint
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
from tenfold.study.grow.relief import Relief, lead_weeks, round_up_digits, with_relief
from tenfold.study.grow.state import State, scale_capacity

LEAVES, PODS = "leaves", "pods"


class UplinkDemand(NamedTuple):
    """What gangs of one size want of the uplink that is shortest for them."""

    utilisation: float
    gpus: float
    bytes_per_s: float
    up_bytes_per_s: float
    slower: float


class FabricUplinks(ComputedLayer):
    """Uplinks of leaves, and of pods or groups where a fabric has them."""

    name = "fabric-uplinks"
    breaks = "traffic out of a leaf or pod slows steps by more than `stall_share_most`"
    cause_rank = 26
    grows_with = ("job-size",)
    needs = NO_SENDERS
    fixed_by = "less oversubscription, or more uplinks"
    assumes = ASSUMES
    always_listed = True

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a law for the leaves and one for the pods of each fabric with several leaves."""
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
                return f"jobs stay under one {one} of {fabric.id} each"
            out, there = rate_bytes(want.bytes_per_s), rate_bytes(want.up_bytes_per_s)
            return (
                f"jobs of {want.gpus:,.0f} GPUs want {out} out of a {one} of "
                f"{fabric.id}, which has {there}: {want.slower:.0%} slower"
            )

        def relieve(multiple: float) -> list[Relief]:
            return [self._wider(state, fabric, below, multiple)]

        evidence = weakest(senders.evidence, fabric_evidence(fabric))
        return self.constraint(
            resource, lambda factor: worst(factor).utilisation, 1.0, evidence, symptom, relieve
        )

    def _wider(self, state: State, fabric: Fabric, below: str, multiple: float) -> Relief:
        """Uplinks block less, as far as that goes; beyond that there are so many times of them."""
        ratio = fabric.core_oversubscription if below == PODS else fabric.oversubscription
        new = max(1.0, ratio / round_up_digits(multiple))
        left = multiple * new / ratio
        if ratio > 1 and (below != PODS or left <= 1):
            return reduced_oversubscription(state, fabric, new, below)
        made = [] if ratio <= 1 else [reduced_oversubscription(state, fabric, new, below)]
        wide, key = round_up_digits(left), self.key(f"{below} of {fabric.id}")

        def apply(now: State) -> State:
            for part in made:
                now = part.apply(now)
            return scale_capacity(with_relief(now, "uplinks"), key, wide)

        more = f"{wide:g} times the uplinks of {below}"
        text = "; ".join([*(part.sentence for part in made), more])
        return Relief("uplinks", f"{text} of {fabric.id}", None, lead_weeks(state, "switch"), apply)


def reduced_oversubscription(
    state: State, fabric: Fabric, ratio: float, below: str = LEAVES
) -> Relief:
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
        return with_relief(now, "uplinks", replace(now.spec, fabrics=fabrics))

    how = "non-blocking" if ratio <= 1 else f"{ratio:.3g} to 1"
    text = f"uplinks of {below} of {fabric.id} {how}, {old:g} to 1 today"
    return Relief("uplinks", text, None, lead_weeks(state, "switch"), apply)


def _wanted(
    gang: Gang, gpus: float, units: Sequence[Unit], line: float, wide: float, limit: float
) -> UplinkDemand:
    """Return what gangs of so many GPUs want of the uplink that is shortest for them.

    Partners are spread evenly over a gang, so `g` of its `n` GPUs below one uplink send the
    part `1 - g / n` of their traffic over it.
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
    """Return what gangs with at least so many running GPUs want, or more.

    Gangs with fewer cannot make the fleet lose more than the limit, whatever befalls them.
    """
    ordered = sorted(found, key=lambda one: -one[0].utilisation)
    running = 0.0
    for want, gpus in ordered:
        running += gpus
        if running >= least:
            return want
    return ordered[-1][0]
