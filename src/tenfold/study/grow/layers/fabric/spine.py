"""Fabric spine: traffic of all gangs above their leaves against the spine bandwidth.

Spines are shared by everything that runs. They stay as they are when nodes and leaves are added.
"""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tenfold.model.fleet.spec import Fabric
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.growth.breaking import weakest
from tenfold.report.figures import count, rate_bytes
from tenfold.study.grow.cost.prices import priced
from tenfold.study.grow.history import running_growth
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.fabric.leaves import fabric_evidence, leaf_units
from tenfold.study.grow.layers.fabric.senders import (
    ASSUMES,
    NO_SENDERS,
    CrossedFabric,
    Gang,
    Senders,
    crossed_fabrics,
    stall_weight,
)
from tenfold.study.grow.relief import Relief, lead_weeks, round_up_to, with_relief
from tenfold.study.grow.state import State


class FabricSpine(ComputedLayer):
    """The spines of each fabric with several leaves; a dragonfly has none."""

    name = "fabric-spine"
    title = "Spine bandwidth"
    breaks = "traffic between leaves slows steps by more than `stall_share_most`"
    cause_rank = 27
    grows_with = ("jobs", "job-size", "nodes")
    grows_by = "GPUs that send, until all are in use, and how many leaves a multi-node job crosses"
    needs = f"`spines` for fabrics, and {NO_SENDERS}"
    fixed_by = "more spine switches"
    assumes = ASSUMES

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return a constraint for the spines of each fabric."""
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
        self, state: State, axis: Axis, crossed: CrossedFabric, leaf_gpus: float, senders: Senders
    ) -> Constraint:
        fabric, line = crossed.fabric, crossed.line_bytes_per_s
        resource = f"fabric {fabric.id}"
        if fabric.spines is None:
            # The default is as many as the leaves need: a factor would only return the default.
            return self.unknown(resource, f"`spines` for fabric `{fabric.id}`")
        there = next(one for one in state.inputs.fleet.layout.fabrics if one.name == fabric.id)
        capacity = spine_bytes_per_s(fabric, there) * state.capacity_scale(self.key(resource))
        running = running_growth(axis, senders.load)
        sending = [gang for gang in senders.gangs if gang.bytes_per_s_per_gpu * gang.share]
        share = _mean_share(sending)
        weight = stall_weight(share, state.grow.limits.stall_share_most)

        def demand(factor: float) -> float:
            larger = grown_by(axis, "job-size", factor)
            return running(factor) * sum(
                gang.running
                * max(0.0, 1.0 - leaf_gpus / (gang.gpus * larger))
                * min(gang.bytes_per_s_per_gpu, line)
                for gang in sending
            )

        def symptom(factor: float) -> str:
            slower = share * max(0.0, demand(factor) / capacity - 1.0)
            return (
                f"spine traffic on {fabric.id}: {rate_bytes(demand(factor))} of "
                f"{rate_bytes(capacity)}; jobs run {slower:.0%} slower"
            )

        return self.constraint(
            resource,
            lambda factor: demand(factor) * weight,
            capacity,
            weakest(senders.evidence, fabric_evidence(fabric)),
            symptom,
            lambda multiple: [_more_spines(state, fabric, multiple)],
        )


def _more_spines(state: State, fabric: Fabric, multiple: float) -> Relief:
    spines = fabric.spines or 0
    required = round_up_to(spines * multiple, 1)

    def apply(now: State) -> State:
        fabrics = tuple(
            replace(one, spines=required) if one.id == fabric.id else one
            for one in now.spec.fabrics
        )
        return with_relief(now, "spines", replace(now.spec, fabrics=fabrics))

    text = f"add {count(required - spines, 'spine')} to {fabric.id} ({required:,} in total)"
    relief = Relief("spines", text, None, lead_weeks(state, "switch"), apply)
    plan = next(one for one in state.layout.fabrics if one.name == fabric.id)
    ports = (required - spines) * plan.pods * fabric.switch_ports
    return priced(state, relief, "switch-port", ports)


def _mean_share(gangs: Sequence[Gang]) -> float:
    running = sum(gang.running for gang in gangs)
    return sum(gang.running * gang.share for gang in gangs) / running if running else 0.0


def spine_bytes_per_s(fabric: Fabric, plan: FabricPlan) -> float:
    """Return the bandwidth of all spines: every port, or half of them if cores are above."""
    down = fabric.switch_ports if plan.pods == 1 else fabric.switch_ports // 2
    uplinks = plan.nodes_per_leaf * plan.rails / plan.oversubscription
    port = float(plan.leaf_up.max()) / uplinks
    return (fabric.spines or 0) * plan.pods * down * port
