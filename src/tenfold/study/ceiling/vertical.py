"""Larger nodes to scale up to, and the blast radius of each.

A large node is a large failure domain: every option comes with its blast radius and its rack power,
the two limits of scaling up.
"""

from msgspec import Struct

from tenfold.model.fleet.hardware import Accelerator, NodeShape
from tenfold.model.fleet.spec import GENERATED_RACK
from tenfold.physics.blast import Blast, blast_radius
from tenfold.report import figures
from tenfold.report.figures import count
from tenfold.study.ceiling.design import Design

OPTIONS_MAX = 5


class NodeBlast(Struct, frozen=True, kw_only=True):
    """The blast radius of one node today."""

    gpus: int
    gpu_share: float
    gang_gpus_left: int
    sentence: str


class VerticalOption(Struct, frozen=True, kw_only=True):
    """A larger node, or the whole scale-up domain of such nodes."""

    shape: str
    accelerator: str
    gpus: int
    memory_gib: float
    power_kw: float | None
    rack_kw_limit: float
    fits_rack: bool | None
    blast_share: float
    """Share of today's FLOPS in one such domain, at most 1."""
    sentence: str


def node_blast(design: Design) -> NodeBlast:
    """Return the blast radius of one node, or of one scale-up domain that spans several."""
    rows = blast_radius(design.fleet.layout, design.fleet.catalogue)
    node = next(
        row
        for row in rows
        if row.kind == "node" and row.name == f"any node of {design.pools[0].id}"
    )
    target = design.target
    if target.scaleup_gpus > target.gpus_per_node:
        node = _widest_rack(rows, design) or node
    what = f"any node in pool {design.pools[0].id}" if node.kind == "node" else f"rack {node.name}"
    remain = "remains" if node.gang_gpus_left == 1 else "remain"
    return NodeBlast(
        gpus=node.gpus,
        gpu_share=node.gpu_share,
        gang_gpus_left=node.gang_gpus_left,
        sentence=(
            f"losing {what} takes out {count(node.gpus, 'GPU')} "
            f"({figures.share(node.gpu_share)} of the fleet) and stops every job on it; "
            f"{count(node.gang_gpus_left, 'GPU')} {remain} for the largest job"
        ),
    )


def _widest_rack(rows: list[Blast], design: Design) -> Blast | None:
    made = f"{design.pools[0].id}{GENERATED_RACK}"
    racks = [row for row in rows if row.kind == "rack" and row.name.startswith(made)]
    return max(racks, key=lambda row: row.gpus, default=None)


def vertical_options(design: Design) -> tuple[VerticalOption, ...]:
    """Return available nodes with more memory than today's and at least as many FLOPS."""
    catalogue, target = design.fleet.catalogue, design.target
    today = catalogue.accelerators.get(target.accelerator)
    gpus = max(target.gpus_per_node, target.scaleup_gpus)
    least = gpus / design.gpus_today
    made = [
        _option(design, shape)
        for shape in catalogue.nodes
        if not shape.provider and _succeeds(design, shape, today)
    ]
    larger = [
        one
        for one in made
        if one.memory_gib > today.memory_gib * gpus and one.blast_share >= min(1.0, least)
    ]
    larger.sort(key=lambda one: (one.memory_gib, one.power_kw or 0.0))
    return tuple(larger[:OPTIONS_MAX])


def _succeeds(design: Design, shape: NodeShape, today: Accelerator) -> bool:
    """Return whether a shape runs the same software, is not older and has as good links."""
    part = design.fleet.catalogue.accelerators.find(shape.accelerator or "")
    if part is None or part.runtime != today.runtime or not shape.gpus:
        return False
    joined = (shape.scaleup_gpus or part.scaleup_gpus) > 1 or design.target.scaleup_gpus == 1
    return joined and part.released >= today.released


def _option(design: Design, shape: NodeShape) -> VerticalOption:
    fleet = design.fleet
    part = fleet.catalogue.accelerators.get(shape.accelerator or "")
    gpus = max(shape.gpus, shape.scaleup_gpus or 0)
    power_kw = None if shape.power_kw is None else shape.power_kw * gpus / shape.gpus
    limit = next(site.rack_kw_limit for site in fleet.spec.sites if site.id == design.site)
    now = fleet.catalogue.accelerators.get(design.target.accelerator).training_tflops
    share = min(1.0, gpus * part.training_tflops / max(1.0, now * design.gpus_today))
    fits = None if power_kw is None else power_kw <= limit
    draws = "unknown power" if power_kw is None else f"{power_kw:.1f} of {limit:g} kW per rack"
    # A scale-up domain may be several nodes: 18 trays make an NVL72.
    nodes = gpus // shape.gpus
    name = shape.name if nodes == 1 else f"{nodes} x {shape.name}"
    over = " (over the limit)" if fits is False else ""
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
            f"{name}: {count(gpus, 'GPU')} with {part.memory_gib * gpus:,.0f} GiB, "
            f"{draws}{over}; blast radius {figures.share(share)} of today's FLOPS"
        ),
    )
