"""Repair staff: repairs and nodes against the technicians who look after them."""

from collections.abc import Iterable
from math import ceil

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.breaking import STATED
from tenfold.report.figures import count
from tenfold.study.grow.cost.prices import at_price, unit_cost
from tenfold.study.grow.layer import ComputedLayer, Constraint, figure
from tenfold.study.grow.layers.upkeep.faults import NO_FAILURES, faults_of, nodes_at, operated
from tenfold.study.grow.relief import NEARLY, Relief
from tenfold.study.grow.state import State

REPAIRS, CARE = "repairs", "nodes a person"


class OperationsLayer(ComputedLayer):
    """Repairs a day, and nodes per technician if a limit is stated."""

    name = "operations"
    title = "Repair staff"
    labels = ((REPAIRS, "Repair staff"), (CARE, "Nodes per technician"))
    breaks = "there are more repairs a day, or more nodes, than the technicians can handle"
    cause_rank = 42
    grows_with = ("nodes",)
    grows_by = "nodes that fail"
    needs = "`crew` and `repairs_per_person_day` under `[operations]` in the grow file"
    fixed_by = "more technicians"
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraints on repairs and on nodes per technician."""
        stated = state.grow.operations
        crew, repairs, nodes = (
            stated.crew,
            stated.repairs_per_person_day,
            stated.nodes_per_person_most,
        )
        if crew is None or repairs is None:
            yield self.unknown(REPAIRS)
        else:
            yield self._repairs(state, axis, crew, repairs)
        if crew is not None and nodes is not None:
            yield self._care(state, axis, crew, nodes)

    def _repairs(self, state: State, axis: Axis, crew: float, each: float) -> Constraint:
        faults = faults_of(state)
        if faults is None:
            return self.unknown(REPAIRS, NO_FAILURES)
        nodes, most = nodes_at(state, axis), crew * each

        def repairs(factor: float) -> float:
            return faults.per_node_day * faults.technician_share * nodes(factor)

        def symptom(factor: float) -> str:
            return (
                f"repairs needed per day: {figure(repairs(factor))}; "
                f"{_technicians(crew)} can do {figure(most)}"
            )

        def relieve(multiple: float) -> list[Relief]:
            return [_people(state, crew, multiple)]

        return self.constraint(REPAIRS, repairs, most, faults.evidence, symptom, relieve)

    def _care(self, state: State, axis: Axis, crew: float, each: float) -> Constraint:
        nodes, most = nodes_at(state, axis), crew * each

        def symptom(factor: float) -> str:
            return f"nodes to maintain: {nodes(factor):,.0f} of {most:,.0f} ({_technicians(crew)})"

        def relieve(multiple: float) -> list[Relief]:
            return [_people(state, crew, multiple)]

        return self.constraint(CARE, nodes, most, STATED, symptom, relieve)


def _technicians(crew: float) -> str:
    return "1 technician" if crew == 1 else f"{crew:g} technicians"


def _people(state: State, crew: float, multiple: float) -> Relief:
    """A fraction is a technician who also has other work; hires are whole people."""
    more = max(1, ceil(crew * (multiple - 1) * NEARLY))
    text = f"hire {count(more, 'technician')} ({crew + more:g} in total)"
    apply = operated("people", lambda old: replace(old, crew=crew + more))
    relief = Relief("people", text, None, None, apply)
    return at_price(relief, unit_cost(state, "technician"), "technician", more)
