"""Floor: racks against the places for them in the building."""

from collections.abc import Iterable

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.growth.breaking import STATED
from tenfold.report.figures import count
from tenfold.study.grow.layer import ComputedLayer, Constraint, figure
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
    needs = "`floor_racks` under `[facility]` in the grow file"
    fixed_by = "floor space for more racks, or another site"
    lead_times = ("floor",)

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraint on floor space."""
        places, racks = state.grow.facility.floor_racks, len(state.layout.racks)
        if places is None:
            return [self.unknown("places for racks")]

        def demand(factor: float) -> float:
            return racks * grown_by(axis, "nodes", factor)

        def symptom(factor: float) -> str:
            return f"rack positions: {figure(demand(factor))} of {places:,} used"

        def relieve(multiple: float) -> list[Relief]:
            more = max(1, round_up_to(places * (multiple - 1), 1))

            def apply(now: State) -> State:
                facility = replace(now.grow.facility, floor_racks=places + more)
                return replace(
                    with_relief(now, self.name), grow=replace(now.grow, facility=facility)
                )

            text = f"add floor space for {count(more, 'rack')}, or another site"
            return [Relief("floor", text, None, lead_weeks(state, "floor"), apply)]

        return [
            self.constraint("places for racks", demand, float(places), STATED, symptom, relieve)
        ]
