"""Larger nodes to scale up to, and what each takes with it when it is lost.

A fat node is a fat failure domain: every option stands beside its blast radius and
beside what its racks draw, which are the two ends of scaling up.
"""

from msgspec import Struct

from tenfold.model.hardware import NodeShape
from tenfold.physics.blast import Blast, blast_radius
from tenfold.study.design import Design

OPTIONS_MAX = 5


class NodeBlast(Struct, frozen=True, kw_only=True):
    """What the loss of one node takes today."""

    gpus: int
    gpu_share: float
    gang_gpus_left: int
    sentence: str


class VerticalOption(Struct, frozen=True, kw_only=True):
    """A larger node, or the whole scale-up domain that nodes of its kind form."""

    shape: str
    accelerator: str
    gpus: int
    memory_gib: float
    power_kw: float | None
    rack_kw_limit: float
    fits_rack: bool | None
    blast_share: float
    """Part of today's arithmetic that one such domain is, at most all of it."""
    sentence: str


def node_blast(design: Design) -> NodeBlast:
    """Return the blast radius of one node, or of one scale-up domain that spans several."""
    rows = blast_radius(design.fleet.layout, design.fleet.catalogue)
    node = next(row for row in rows if row.kind == "node" and row.name.endswith(design.pools[0].id))
    ground = design.ground
    if ground.scaleup_gpus > ground.gpus_per_node:
        node = _widest_rack(rows, design) or node
    what = node.name if node.kind == "node" else f"rack {node.name}"
    return NodeBlast(
        gpus=node.gpus,
        gpu_share=node.gpu_share,
        gang_gpus_left=node.gang_gpus_left,
        sentence=(
            f"the loss of {what} takes {node.gpus:,} GPUs ({node.gpu_share:.1%} of the fleet) "
            f"and stops every job on them; {node.gang_gpus_left:,} are left for the next one"
        ),
    )


def _widest_rack(rows: list[Blast], design: Design) -> Blast | None:
    racks = [row for row in rows if row.kind == "rack" and row.name.startswith(design.pools[0].id)]
    return max(racks, key=lambda row: row.gpus, default=None)


def vertical_options(design: Design) -> tuple[VerticalOption, ...]:
    """Return nodes on sale with more memory than today's, smallest first."""
    catalogue, ground = design.fleet.catalogue, design.ground
    today = catalogue.accelerators.get(ground.accelerator)
    room_gib = today.memory_gib * ground.gpus_per_node
    made = [
        _option(design, shape)
        for shape in catalogue.nodes
        if not shape.provider and _runs_as(design, shape, today.runtime)
    ]
    larger = [one for one in made if one.memory_gib > room_gib]
    larger.sort(key=lambda one: (one.memory_gib, one.power_kw or 0.0))
    return tuple(larger[:OPTIONS_MAX])


def _runs_as(design: Design, shape: NodeShape, runtime: str) -> bool:
    part = design.fleet.catalogue.accelerators.find(shape.accelerator or "")
    return part is not None and part.runtime == runtime and shape.gpus > 0


def _option(design: Design, shape: NodeShape) -> VerticalOption:
    fleet = design.fleet
    part = fleet.catalogue.accelerators.get(shape.accelerator or "")
    gpus = max(shape.gpus, shape.scaleup_gpus or 0)
    power_kw = None if shape.power_kw is None else shape.power_kw * gpus / shape.gpus
    limit = next(site.rack_kw_limit for site in fleet.spec.sites if site.id == design.site)
    now = fleet.catalogue.accelerators.get(design.ground.accelerator).training_tflops
    share = min(1.0, gpus * part.training_tflops / max(1.0, now * design.gpus_today))
    fits = None if power_kw is None else power_kw <= limit
    draws = "unknown power" if power_kw is None else f"{power_kw:.1f} of {limit:g} kW a rack"
    over = " (does not fit)" if fits is False else ""
    return VerticalOption(
        shape=shape.name,
        accelerator=part.name,
        gpus=gpus,
        memory_gib=part.memory_gib * gpus,
        power_kw=power_kw,
        rack_kw_limit=limit,
        fits_rack=fits,
        blast_share=share,
        sentence=(
            f"{shape.name}: {part.memory_gib * gpus:,.0f} GiB in one domain, {draws}{over}; "
            f"its loss takes as much as {share:.1%} of today's arithmetic"
        ),
    )
