"""Shapes with some placement constraints dropped, to see which constraint blocks them."""

from msgspec.structs import replace

from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.job.job import Shape


def with_where(shape: Shape, where: PlacementConstraints | None) -> Shape:
    """Return a shape with other placement constraints."""
    if where is not None and not where.key:
        where = None
    old = shape.where.key if shape.where else ""
    stem = shape.key.removesuffix(old).rstrip() if old else shape.key
    return replace(shape, key=f"{stem} {where.key}" if where else stem, where=where)


def without_topology(shape: Shape) -> Shape:
    """Return a shape without topology constraints; tags stay."""
    if shape.where is None:
        return shape
    return with_where(shape, replace(shape.where, within="", how="preferred"))


def without_tags(shape: Shape) -> Shape:
    """Return a shape without tag constraints; topology stays."""
    if shape.where is None:
        return shape
    return with_where(shape, replace(shape.where, needs=(), avoids=()))


def requires_topology(where: PlacementConstraints | None) -> bool:
    """Return whether topology constraints can keep a gang from starting."""
    return where is not None and bool(where.within) and where.how in ("required", "balanced")
