"""Switch ports: ports that nodes need against ports available.

A fabric takes nodes until it needs another tier of switches. A fabric that is not in the fleet file
is sized for today's nodes by default, and so says little about growth.
"""

from collections.abc import Iterable

from msgspec.structs import replace

from tenfold.model.fleet.spec import Fabric
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.growth.breaking import STATED
from tenfold.report.figures import count
from tenfold.study.grow.cost.prices import priced
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.fabric.leaves import fabric_evidence
from tenfold.study.grow.relief import Relief, lead_weeks, round_up_to, with_relief
from tenfold.study.grow.state import State, scale_capacity


class SwitchPorts(ComputedLayer):
    """Ports of each fabric, or the free ports stated in the grow file."""

    name = "switch-ports"
    breaks = "nodes need more ports than the switches have"
    cause_rank = 10
    grows_with = ("nodes",)
    grows_by = "ports of the nodes"
    needs = "a `[[fabric]]` that connects the nodes"
    fixed_by = "more switches, or another switch tier"
    assumes = "fabrics missing from the fleet file use typical switches"
    lead_times = ("switch",)

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return one constraint on all ports if the free ones are stated, else one per fabric."""
        free = state.grow.facility.ports_free
        if free is not None:
            return [self._free(state, axis, free)]
        pairs = zip(state.spec.fabrics, state.layout.fabrics, strict=True)
        constraints = [
            self._fabric(state, axis, fabric, plan) for fabric, plan in pairs if plan.nodes
        ]
        return constraints or [self.unknown("fabrics")]

    def _free(self, state: State, axis: Axis, free: int) -> Constraint:
        used = sum(pool.nodes * pool.nics_per_node for pool in state.spec.pools)
        there = used + free

        def demand(factor: float) -> float:
            return used * grown_by(axis, "nodes", factor)

        def symptom(factor: float) -> str:
            return f"switch ports: {demand(factor):,.0f} of {there:,} used"

        def relieve(multiple: float) -> list[Relief]:
            more = round_up_to(there * (multiple - 1), 1)

            def plug(now: State) -> State:
                facility = replace(now.grow.facility, ports_free=free + more)
                return replace(
                    with_relief(now, "switches"), grow=replace(now.grow, facility=facility)
                )

            text = f"add {count(more, 'switch port')}"
            relief = Relief("switches", text, None, lead_weeks(state, "switch"), plug)
            return [priced(state, relief, "switch-port", more)]

        return self.constraint("all fabrics", demand, float(there), STATED, symptom, relieve)

    def _fabric(self, state: State, axis: Axis, fabric: Fabric, plan: FabricPlan) -> Constraint:
        resource = f"fabric {fabric.id}"
        # A larger fleet would be planned with more switch tiers; the existing switches have theirs.
        there = next(one for one in state.inputs.fleet.layout.fabrics if one.name == fabric.id)
        most = there.nodes_max * state.capacity_scale(self.key(resource))

        def demand(factor: float) -> float:
            return plan.nodes * grown_by(axis, "nodes", factor)

        def symptom(factor: float) -> str:
            return f"node ports on {fabric.id}: {demand(factor):,.0f} of {most:,.0f} used"

        def relieve(multiple: float) -> list[Relief]:
            times = max(2, fabric.switch_ports // 2)

            def add(now: State) -> State:
                return scale_capacity(
                    with_relief(now, "switch-layer"), self.key(resource), float(times)
                )

            text = f"add a switch tier above {fabric.id} (room for {times}x the nodes)"
            relief = Relief("switch-layer", text, None, lead_weeks(state, "switch"), add)
            # Each node port below goes up once more: a port on either side.
            return [priced(state, relief, "switch-port", 2 * most * multiple * plan.rails)]

        return self.constraint(
            resource, demand, float(most), fabric_evidence(fabric), symptom, relieve
        )
