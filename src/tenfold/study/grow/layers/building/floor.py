"""Floor: racks against the places for them in the building."""

from collections.abc import Iterable
from dataclasses import replace as with_fields

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis
from tenfold.physics.growth.breaking import DEFAULTED, STATED
from tenfold.report.figures import count
from tenfold.study.grow.cost.prices import priced
from tenfold.study.grow.layer import ComputedLayer, Constraint, figure
from tenfold.study.grow.racks import racks_at, racks_stated
from tenfold.study.grow.relief import Relief, lead_weeks, round_up_to, with_relief
from tenfold.study.grow.state import State


class Floor(ComputedLayer):
    """Racks by the fleet's own pattern, on the floor there is."""

    name = "floor"
    title = "Floor space"
    labels = (("places for racks", "Floor space for racks"),)
    breaks = "more racks are needed than the building has positions for"
    cause_rank = 23
    grows_with = ("nodes",)
    grows_by = "racks of the nodes; racks of spares stay the same"
    needs = "`floor_racks` under `[facility]` in the grow file"
    fixed_by = "floor space for more racks, or another site"
    lead_times = ("floor",)

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraint on floor space."""
        places, racks = state.grow.facility.floor_racks, racks_at(state, axis)
        if places is None:
            return [self.unknown("places for racks")]

        def symptom(factor: float) -> str:
            return f"rack positions: {figure(racks(factor))} of {places:,} used"

        def relieve(multiple: float) -> list[Relief]:
            more = max(1, round_up_to(places * (multiple - 1), 1))

            def apply(now: State) -> State:
                facility = replace(now.grow.facility, floor_racks=places + more)
                return replace(
                    with_relief(now, self.name), grow=replace(now.grow, facility=facility)
                )

            text = f"add floor space for {count(more, 'rack')}, or another site"
            relief = Relief("floor", text, None, lead_weeks(state, "floor"), apply)
            return [priced(state, relief, "rack-position", more)]

        evidence = STATED if racks_stated(state) else DEFAULTED
        found = self.constraint(
            "places for racks", racks, float(places), evidence, symptom, relieve
        )
        # Racks are whole, so what may be off is how many nodes need one, not a rack.
        wide = 1 + evidence.spread

        def highest(factor: float) -> float:
            return found.utilisation(factor * wide)

        def lowest(factor: float) -> float:
            return found.utilisation(factor / wide)

        return [with_fields(found, bounds=(highest, lowest))]
