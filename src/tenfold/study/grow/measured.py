"""Laws of what was measured: usage at a few factors, fitted and followed to its limit.

A measurement may say along which axis its factor ran; one that does not is taken for the axis
that is asked about. What was measured of a layer stands in place of what its figures say.
"""

from collections.abc import Sequence
from dataclasses import replace as with_fields

from tenfold.model.growth.growth import Axis
from tenfold.model.growth.measured import UsagePoint
from tenfold.physics.growth.law import Evidence
from tenfold.physics.growth.usage import fit_usage, spread_of, usage_at
from tenfold.study.grow.layer import Law, Layer
from tenfold.study.grow.relief import Relief, taken, times
from tenfold.study.grow.state import LawKey, State, widen

MEASURED_RANK = 5
"""Before layers that are only figured: what was seen is the cause that is sure."""


class MeasuredLayer(Layer):
    """A layer that a table of measurements names, and that has no law of its own here."""

    breaks = "what was measured of it reaches its limit"
    cause_rank = MEASURED_RANK
    grows_with = ()
    needs = "the `limit` of what was measured"
    fixed_by = "more capacity"

    def __init__(self, name: str) -> None:
        self.name = name


def measured_laws(state: State, axis: Axis, layers: Sequence[Layer] = ()) -> list[Law]:
    """Return one law for each resource, and queue of it, that was measured along an axis."""
    known = {layer.name: layer for layer in layers}
    return [
        _law(state, known.get(name) or MeasuredLayer(name), resource, points)
        for (name, resource), points in _groups(state, axis).items()
    ]


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


def _law(state: State, layer: Layer, resource: str, points: list[UsagePoint]) -> Law:
    limits = [point.limit for point in points if point.limit is not None]
    if not limits:
        return _first(layer.unknown(resource, f"the `limit` of {resource} beside its usage"))
    # Of several limits the least was so at one time, and may be so again.
    key = layer.key(resource)
    limit, unit = min(limits) * state.widening(key), points[0].unit
    usage = fit_usage(points)

    def used(factor: float) -> float:
        return usage_at(usage, factor)

    def seen(factor: float) -> str:
        return f"{resource} uses {used(factor):,.4g} of {limit:,.4g} {unit}".rstrip()

    def relieve(dose: float) -> list[Relief]:
        return [_capacity(resource, key, times(dose))]

    evidence = Evidence("measured", spread_of(usage))
    return _first(layer.law(resource, used, limit, evidence, seen, relieve))


def _first(law: Law) -> Law:
    return with_fields(law, cause_rank=MEASURED_RANK)


def _capacity(resource: str, key: LawKey, more: float) -> Relief:
    """What was measured has a limit, and nobody said what it is made of."""

    def apply(now: State) -> State:
        return widen(taken(now, "capacity"), key, more)

    text = f"{more:g} times the capacity of {resource}"
    return Relief("capacity", text, None, None, apply)
