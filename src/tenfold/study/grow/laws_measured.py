"""Laws of what was measured: usage at a few factors, fitted and followed to its limit.

A measurement may say along which axis its factor ran; one that does not is taken for the axis
that is asked about. What was measured of a layer stands in place of what its figures say.
"""

from tenfold.model.growth import Axis
from tenfold.model.measured import UsagePoint
from tenfold.physics.growth.law import Evidence, Law, Named
from tenfold.physics.growth.usage import fit_usage, spread_of, usage_at
from tenfold.study.grow.state import State

MEASURED = 5
"""Before layers that are only figured: what was seen is the cause that is sure."""


def measured_laws(state: State, axis: Axis) -> list[Law]:
    """Return one law for each resource, and queue of it, that was measured along an axis."""
    return [
        _law(state, layer, resource, points)
        for (layer, resource), points in _groups(state, axis).items()
    ]


def of_measurement(law: Law) -> bool:
    """Return whether a law is of what was measured, and not of figures."""
    return law.cause_rank == MEASURED


def _groups(state: State, axis: Axis) -> dict[tuple[str, str], list[UsagePoint]]:
    """Return the points of each resource; what was measured along two axes is no one line."""
    points = [point for point in state.inputs.measured if point.along(axis)]
    axes: dict[tuple[str, str, str], dict[Axis | None, bool]] = {}
    for point in points:
        axes.setdefault((point.layer, point.resource, point.queue), {})[point.axis] = True
    groups: dict[tuple[str, str], list[UsagePoint]] = {}
    for point in points:
        resource = f"{point.resource} {point.queue}" if point.queue else point.resource
        if point.axis and len(axes[point.layer, point.resource, point.queue]) > 1:
            resource = f"{resource} along {point.axis}"
        groups.setdefault((point.layer, resource), []).append(point)
    return groups


def _law(state: State, layer: str, resource: str, points: list[UsagePoint]) -> Law:
    name = Named(layer, resource, MEASURED)
    limits = [point.limit for point in points if point.limit is not None]
    if not limits:
        return name.unknown(f"the `limit` of {resource} beside its usage")
    # Of several limits the least was so at one time, and may be so again.
    limit, unit = min(limits) * state.widening(name.key), points[0].unit
    usage = fit_usage(points)

    def used(factor: float) -> float:
        return usage_at(usage, factor)

    def seen(factor: float) -> str:
        return f"{resource} uses {used(factor):,.4g} of {limit:,.4g} {unit}".rstrip()

    return name.law(used, limit, Evidence("measured", spread_of(usage)), seen)
