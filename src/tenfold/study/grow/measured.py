"""Laws of what was measured: usage at a few factors, fitted and followed to its limit.

A measurement may say along which axis its factor ran; one that does not is taken for the axis
that is asked about. What was measured of a layer stands in place of what its figures say.
"""

from collections.abc import Sequence
from dataclasses import replace as with_fields

from tenfold.model.growth.growth import Axis
from tenfold.model.growth.measured import UsagePoint
from tenfold.physics.growth.breaking import Evidence
from tenfold.physics.growth.usage import fit_usage, spread_of, usage_at
from tenfold.study.grow.layer import Constraint, Layer
from tenfold.study.grow.relief import Relief, round_up_digits, with_relief
from tenfold.study.grow.state import ConstraintKey, State, scale_capacity

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


def measured_constraints(
    state: State, axis: Axis, layers: Sequence[Layer] = ()
) -> list[Constraint]:
    """Return one law for each resource, and queue of it, that was measured along an axis."""
    known = {layer.name: layer for layer in layers}
    return [
        _constraint(state, known.get(name) or MeasuredLayer(name), resource, points)
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


def _constraint(state: State, layer: Layer, resource: str, points: list[UsagePoint]) -> Constraint:
    limits = [point.limit for point in points if point.limit is not None]
    if not limits:
        return _first(layer.unknown(resource, f"the `limit` of {resource} beside its usage"))
    # Of several limits the least was so at one time, and may be so again.
    key = layer.key(resource)
    limit, unit = min(limits) * state.capacity_scale(key), points[0].unit
    usage = fit_usage(points)

    def used(factor: float) -> float:
        return usage_at(usage, factor)

    def symptom(factor: float) -> str:
        return f"{resource} uses {used(factor):,.4g} of {limit:,.4g} {unit}".rstrip()

    def relieve(multiple: float) -> list[Relief]:
        return [_capacity(resource, key, round_up_digits(multiple))]

    evidence = Evidence("measured", spread_of(usage))
    return _first(layer.constraint(resource, used, limit, evidence, symptom, relieve))


def _first(constraint: Constraint) -> Constraint:
    return with_fields(constraint, cause_rank=MEASURED_RANK)


def _capacity(resource: str, key: ConstraintKey, more: float) -> Relief:
    """What was measured has a limit, and nobody said what it is made of."""

    def apply(now: State) -> State:
        return scale_capacity(with_relief(now, "capacity"), key, more)

    text = f"{more:g} times the capacity of {resource}"
    return Relief("capacity", text, None, None, apply)
