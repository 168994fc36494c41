"""A shape with other wishes about the places of its nodes, to see which wish is in its way."""

from msgspec.structs import replace

from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.job.job import Shape


def with_where(shape: Shape, where: PlacementConstraints | None) -> Shape:
    """Return a shape with other wishes about places."""
    if where is not None and not where.key:
        where = None
    old = shape.where.key if shape.where else ""
    stem = shape.key.removesuffix(old).rstrip() if old else shape.key
    return replace(shape, key=f"{stem} {where.key}" if where else stem, where=where)


def without_topology(shape: Shape) -> Shape:
    """Return a shape whose members need not stand near each other; tags stay."""
    if shape.where is None:
        return shape
    return with_where(shape, replace(shape.where, within="", how="preferred"))


def without_tags(shape: Shape) -> Shape:
    """Return a shape that does not mind which tags its nodes bear; places stay."""
    if shape.where is None:
        return shape
    return with_where(shape, replace(shape.where, needs=(), avoids=()))


def requires_topology(where: PlacementConstraints | None) -> bool:
    """Return whether a gang may be turned away because of where its nodes stand."""
    return where is not None and bool(where.within) and where.how in ("required", "balanced")
