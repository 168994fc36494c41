"""Floor: racks against the places for them in the building."""

from collections.abc import Iterable

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.growth.law import STATED
from tenfold.report.figures import count
from tenfold.study.grow.layer import FiguredLayer, Law
from tenfold.study.grow.relief import Relief, lead_weeks, taken, up
from tenfold.study.grow.state import State


class Floor(FiguredLayer):
    """Racks by the fleet's own pattern, on the floor there is."""

    name = "floor"
    breaks = "more racks are needed than the building has places for"
    cause_rank = 23
    grows_with = ("nodes",)
    needs = "`floor_racks`: how many racks the building holds"
    fixed_by = "room for more racks, or another site"
    lead_times = ("floor",)

    def laws(self, state: State, axis: Axis) -> Iterable[Law]:
        """Return the law of the floor."""
        places, racks = state.grow.facility.floor_racks, len(state.layout.racks)
        if places is None:
            return [self.unknown("places for racks")]

        def wanted(factor: float) -> float:
            return racks * grown_by(axis, "nodes", factor)

        def seen(factor: float) -> str:
            return f"{wanted(factor):,.1f} racks stand on {places:,} places"

        def relieve(dose: float) -> list[Relief]:
            more = max(1, up(places * (dose - 1), 1))

            def apply(now: State) -> State:
                facility = replace(now.grow.facility, floor_racks=places + more)
                return replace(taken(now, self.name), grow=replace(now.grow, facility=facility))

            text = f"room for {count(more, 'rack')} more, or another site"
            return [Relief("floor", text, None, lead_weeks(state, "floor"), apply)]

        return [self.law("places for racks", wanted, float(places), STATED, seen, relieve)]
