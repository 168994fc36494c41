"""Laws of what was measured: usage at a few factors, fitted and followed to its limit.

A measurement does not say along which axis its factor runs; it is taken for the one that is
asked about. What was measured of a layer stands in place of what its figures say.
"""

from tenfold.model.measured import UsagePoint
from tenfold.physics.growth.law import Evidence, Law, Named
from tenfold.physics.growth.usage import fit_usage, spread_of, usage_at
from tenfold.study.grow.state import State

MEASURED = 5
"""Before layers that are only figured: what was seen is the cause that is sure."""


def measured_laws(state: State) -> list[Law]:
    """Return one law for each resource, and queue of it, that was measured."""
    groups: dict[tuple[str, str], list[UsagePoint]] = {}
    for point in state.inputs.measured:
        resource = f"{point.resource} {point.queue}" if point.queue else point.resource
        groups.setdefault((point.layer, resource), []).append(point)
    return [_law(layer, resource, points) for (layer, resource), points in groups.items()]


def _law(layer: str, resource: str, points: list[UsagePoint]) -> Law:
    name = Named(layer, resource, MEASURED)
    limits = [point.limit for point in points if point.limit is not None]
    if not limits:
        return name.unknown(f"the `limit` of {resource} beside its usage")
    # Of several limits the least was so at one time, and may be so again.
    limit, unit = min(limits), points[0].unit
    usage = fit_usage(points)

    def used(factor: float) -> float:
        return usage_at(usage, factor)

    def seen(factor: float) -> str:
        return f"{resource} uses {used(factor):,.4g} of {limit:,.4g} {unit}".rstrip()

    return name.law(used, limit, Evidence("measured", spread_of(usage)), seen)
