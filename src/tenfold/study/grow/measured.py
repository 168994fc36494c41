"""Measured constraints: usage at a few factors, fitted and extrapolated to its limit.

A measurement may name its axis; one that does not counts for any axis. Measurements of a layer
replace what is computed for it.
"""

from collections.abc import Sequence
from dataclasses import replace as with_fields

from tenfold.model.growth.growth import Axis
from tenfold.model.growth.measured import UsagePoint
from tenfold.physics.growth.breaking import Evidence
from tenfold.physics.growth.usage import fit_usage, spread_of, usage_at
from tenfold.study.grow.layer import Constraint, Layer, figure
from tenfold.study.grow.relief import Relief, round_up_digits, with_relief
from tenfold.study.grow.state import ConstraintKey, State, scale_capacity

SPREAD_LEAST = 0.02
"""A finite sample leaves some doubt, however well its points agree."""
MEASURED_RANK = 5
"""Before computed layers: a measured cause is certain."""


class MeasuredLayer(Layer):
    """A layer that only a measurements file names."""

    breaks = "measured usage reaches its limit"
    cause_rank = MEASURED_RANK
    grows_with = ()
    needs = "`limit` in the measurements file"
    fixed_by = "more capacity"

    def __init__(self, name: str) -> None:
        self.name = name
        self.title = name[:1].upper() + name[1:]


def measured_constraints(
    state: State, axis: Axis, layers: Sequence[Layer] = ()
) -> list[Constraint]:
    """Return one constraint for each resource and queue measured along an axis."""
    known = {layer.name: layer for layer in layers}
    return [
        _constraint(state, known.get(name) or MeasuredLayer(name), resource, points)
        for (name, resource), points in _groups(state, axis).items()
    ]


def _groups(state: State, axis: Axis) -> dict[tuple[str, str], list[UsagePoint]]:
    """Return the points of each resource, separate for each axis it was measured along."""
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
        return _first(layer.unknown(resource, f"`limit` for {resource} in `--measured`"))
    # Of several limits use the lowest: it applied once and may apply again.
    key = layer.key(resource)
    limit, unit = min(limits) * state.capacity_scale(key), points[0].unit
    usage = fit_usage(points)

    def used(factor: float) -> float:
        return usage_at(usage, factor)

    def symptom(factor: float) -> str:
        return f"{resource}: {figure(used(factor), 4)} of {figure(limit, 4)} {unit}".rstrip()

    def relieve(multiple: float) -> list[Relief]:
        more = round_up_digits(multiple)
        raised = f"{figure(limit * more, 4)} {unit}".rstrip()
        return [_capacity(f"raise {resource} to {raised} (up from {figure(limit, 4)})", key, more)]

    # Points that lie on a line to the digit are still few, and the line goes on beyond them.
    evidence = Evidence("measured", max(SPREAD_LEAST, spread_of(usage)))
    return _first(layer.constraint(resource, used, limit, evidence, symptom, relieve))


def _first(constraint: Constraint) -> Constraint:
    return with_fields(constraint, cause_rank=MEASURED_RANK)


def _capacity(text: str, key: ConstraintKey, more: float) -> Relief:
    """Multiply a measured limit; what it consists of is not known."""

    def apply(now: State) -> State:
        return scale_capacity(with_relief(now, "capacity"), key, more)

    return Relief("capacity", text, None, None, apply)
