"""Fabric spine: what all gangs send above their leaves against what the spines carry.

Spines are shared by all, so they feel everything that runs. They stay as they are when nodes and
their leaves are added.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tenfold.model.fleet.spec import Fabric
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.growth.law import weakest
from tenfold.report.figures import count, rate_bytes
from tenfold.study.grow.history import busier
from tenfold.study.grow.layer import FiguredLayer, Law
from tenfold.study.grow.layers.fabric.leaves import fabric_evidence, leaf_units
from tenfold.study.grow.layers.fabric.senders import (
    ASSUMES,
    NO_SENDERS,
    Crossed,
    Gang,
    Senders,
    bearable,
    crossed_fabrics,
)
from tenfold.study.grow.relief import Relief, lead_weeks, taken, up
from tenfold.study.grow.state import State


class FabricSpine(FiguredLayer):
    """The spines of each fabric with several leaves; a dragonfly has none."""

    name = "fabric-spine"
    breaks = "traffic between leaves slows steps by more than `stall_share_most`"
    cause_rank = 27
    grows_with = ("jobs", "job-size", "nodes")
    needs = f"`spines` of fabrics, and {NO_SENDERS}"
    fixed_by = "spines"
    assumes = ASSUMES

    def laws(self, state: State, axis: Axis) -> Iterable[Law]:
        """Return a law for the spines of each fabric."""
        for crossed in state.once(crossed_fabrics):
            fabric, senders = crossed.fabric, crossed.senders
            if senders is None:
                if fabric.kind != "dragonfly":
                    yield self.unknown(f"fabric {fabric.id}", NO_SENDERS)
                continue
            leaves = leaf_units(state, crossed.place)
            if leaves:
                leaf_gpus = max(unit.gpus for unit in leaves)
                yield self._spine(state, axis, crossed, leaf_gpus, senders)

    def _spine(
        self, state: State, axis: Axis, crossed: Crossed, leaf_gpus: float, senders: Senders
    ) -> Law:
        fabric, line = crossed.fabric, crossed.line_bytes_per_s
        resource = f"fabric {fabric.id}"
        if fabric.spines is None:
            # As many as the leaves need is what is supposed: a factor would give that back.
            return self.unknown(resource, f"`spines` of fabric `{fabric.id}`")
        there = next(one for one in state.inputs.fleet.layout.fabrics if one.name == fabric.id)
        carried = spine_bytes_per_s(fabric, there) * state.widening(self.key(resource))
        running = busier(axis, senders.load)
        sending = [gang for gang in senders.gangs if gang.bytes_per_s_per_gpu * gang.share]
        share = _mean_share(sending)
        bears = bearable(share, state.grow.limits.stall_share_most)

        def wanted(factor: float) -> float:
            larger = grown_by(axis, "job-size", factor)
            return running(factor) * sum(
                gang.running
                * max(0.0, 1.0 - leaf_gpus / (gang.gpus * larger))
                * min(gang.bytes_per_s_per_gpu, line)
                for gang in sending
            )

        def seen(factor: float) -> str:
            slower = share * max(0.0, wanted(factor) / carried - 1.0)
            return (
                f"jobs want {rate_bytes(wanted(factor))} of the spines of {fabric.id}, which carry "
                f"{rate_bytes(carried)}: {slower:.0%} slower"
            )

        return self.law(
            resource,
            lambda factor: wanted(factor) * bears,
            carried,
            weakest(senders.evidence, fabric_evidence(fabric)),
            seen,
            lambda dose: [_more_spines(state, fabric, dose)],
        )


def _more_spines(state: State, fabric: Fabric, dose: float) -> Relief:
    spines = fabric.spines or 0
    wanted = up(spines * dose, 1)

    def apply(now: State) -> State:
        fabrics = tuple(
            replace(one, spines=wanted) if one.id == fabric.id else one for one in now.spec.fabrics
        )
        return taken(now, "spines", replace(now.spec, fabrics=fabrics))

    text = f"{count(wanted - spines, 'spine')} more in {fabric.id}, {spines:,} today"
    return Relief("spines", text, None, lead_weeks(state, "switch"), apply)


def _mean_share(gangs: Sequence[Gang]) -> float:
    running = sum(gang.running for gang in gangs)
    return sum(gang.running * gang.share for gang in gangs) / running if running else 0.0


def spine_bytes_per_s(fabric: Fabric, plan: FabricPlan) -> float:
    """Return what all spines take from leaves: every port, or half where pods have cores above."""
    down = fabric.switch_ports if plan.pods == 1 else fabric.switch_ports // 2
    uplinks = plan.nodes_per_leaf * plan.rails / plan.oversubscription
    port = float(plan.leaf_up.max()) / uplinks
    return (fabric.spines or 0) * plan.pods * down * port
