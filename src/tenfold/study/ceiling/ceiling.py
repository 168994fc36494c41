"""How far a design grows: the largest job each layer supports, and which layer limits it first.

All layers are measured in GPUs of one job, so that power, ports, storage and scaling can be ranked
together. A layer without figures in the fleet file is not ranked.
"""

from msgspec import Struct, field

from tenfold.compose.fleet import OpenFleet
from tenfold.study.ceiling.capacity_summary import CapacitySummary, capacity_summary
from tenfold.study.ceiling.compute import efficiency, gpu_memory, scale_up
from tenfold.study.ceiling.design import CeilingQuestion, Design, design_of
from tenfold.study.ceiling.fabric import fabric_layers
from tenfold.study.ceiling.failures import checkpoint_write, failures
from tenfold.study.ceiling.layers import COMPARISONS, LayerCeiling, ranked
from tenfold.study.ceiling.power import rack_power, site_power
from tenfold.study.ceiling.storage import storage_layers

__all__ = ["CeilingAnswer", "CeilingQuestion", "ceiling"]


class CeilingAnswer(Struct, frozen=True, kw_only=True):
    """Every layer, lowest ceiling first, and the first limit."""

    fleet: str
    accelerator: str
    pools: tuple[str, ...]
    gpus_today: int
    gpus_expected: int | None
    """The size in `[expects]` that the fleet is to grow to."""
    model: str | None
    gpus: int | None
    """The lowest ceiling: the largest job that the design supports."""
    binding: str | None
    sentence: str
    layers: tuple[LayerCeiling, ...]
    capacity_summary: CapacitySummary = field(name="carries")

    @property
    def short_of_expected(self) -> tuple[LayerCeiling, ...]:
        """Layers that run out before the fleet reaches its expected size."""
        required = self.gpus_expected or 0
        return tuple(one for one in self.layers if one.gpus is not None and one.gpus < required)


def ceiling(fleet: OpenFleet, question: CeilingQuestion | None = None) -> CeilingAnswer:
    """Return the largest job that each layer of a design supports."""
    design = design_of(fleet, question or CeilingQuestion())
    # Of layers with the same ceiling the first here is named: causes before effects.
    layers = ranked(
        [
            gpu_memory(design),
            *fabric_layers(design),
            rack_power(design),
            site_power(design),
            *storage_layers(design),
            checkpoint_write(design),
            failures(design),
            scale_up(design),
            efficiency(design),
        ]
    )
    binding = [one for one in layers if one.status == "binds"]
    # A limit comes before a comparison with a faster design, at whatever size.
    limits = [one for one in binding if one.layer not in COMPARISONS] or binding
    first = limits[0] if limits else None
    return CeilingAnswer(
        fleet=fleet.spec.name,
        accelerator=design.target.accelerator,
        pools=design.train.pools,
        gpus_today=design.gpus_today,
        gpus_expected=_expected(design),
        model=design.request.job.model if design.request else None,
        gpus=first.gpus if first else None,
        binding=first.layer if first else None,
        sentence=_sentence(design, first),
        layers=tuple(layers),
        capacity_summary=capacity_summary(design),
    )


def _expected(design: Design) -> int | None:
    expects = design.fleet.spec.expects
    if expects.gpus is not None:
        return expects.gpus
    return None if expects.nodes is None else expects.nodes * design.target.gpus_per_node


def _sentence(design: Design, first: LayerCeiling | None) -> str:
    if first is None or first.headroom is None:
        return "no limit can be computed: every layer lacks inputs"
    name, gpus, today = first.title, f"{first.gpus:,}", f"{design.gpus_today:,}"
    if first.headroom < 1:
        return f"over its limit today: {name} ({gpus} of {today} GPUs)"
    return f"first limit: {name}, OK up to {gpus} GPUs ({first.headroom:.2g}x today's {today})"
