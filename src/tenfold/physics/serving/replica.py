"""A model on devices under an engine, and what one step of it carries: the inputs of the step
model.

Every field is an array with one entry per configuration, so one call times a thousand plans.
"""

from dataclasses import dataclass, fields, replace

from tenfold.physics.arrays import Floats
from tenfold.physics.serving.devices import Devices
from tenfold.physics.serving.kv_cache import ReplicaLayout, Widths
from tenfold.physics.serving.shapes import Shapes

RATE_NAMES = ("compute", "weights", "cache", "prompt_attention", "link", "link_pcie")
"""Efficiencies that grow with the speed of a stack."""
FLOOR_NAMES = (
    "layer_floor_s",
    "step_floor_s",
    "sequence_s",
    "request_s",
    "hop_s",
    "bulk_hop_s",
    "stage_s",
    "elementwise",
    "expert_floor_s",
    "scan_s",
)
"""Times that shrink with it."""


@dataclass(frozen=True, slots=True)
class Efficiency:
    """The efficiencies of an engine; one array entry per configuration or a scalar."""

    compute: Floats
    """Share of the matmul ceiling reached by large matrix products."""
    compute_8: Floats
    compute_4: Floats
    power: Floats
    """Exponent of watts per ceiling TFLOP/s: parts with little power per multiply throttle under
    load.
    """
    weights: Floats
    """Share of the memory rate reached when weights are read."""
    cache: Floats
    """Share of the memory rate reached by decode attention."""
    prompt_attention: Floats
    """Share of the 16-bit ceiling reached by prompt attention."""
    overlap_p: Floats
    """p-norm that joins multiply and weight reads: 1 adds them, large values hide the smaller."""
    scan_s: Floats
    """Time per cached token and layer of attention that does not split long contexts over the
    chip.
    """
    query: Floats
    """Share of the 16-bit ceiling reached by the arithmetic of decode attention."""
    odd_group: Floats
    """Share of the group that re-reads the cache where the group size is no power of two (0 in
    newer engines).
    """
    elementwise: Floats
    """Passes over the hidden state per layer outside the products."""
    expert_pad_tokens: Floats
    """Rows each visited expert wastes to tile padding."""
    expert: Floats
    """Efficiency of grouped expert products relative to dense ones."""
    expert_half_ffn: Floats
    """Expert width per rank at which grouped products lose half of their efficiency."""
    mixed: Floats
    """Further efficiency of products that widen 4-bit weights to 16 bit on the way."""
    permute: Floats
    """Passes over each routed copy of the hidden state for sorting tokens to experts and back."""
    layer_floor_s: Floats
    expert_floor_s: Floats
    """Further launch floor of a layer that routes."""
    step_floor_s: Floats
    sequence_s: Floats
    """Host and sampling time per running sequence and step."""
    request_s: Floats
    """Host time per admitted request."""
    link: Floats
    """Share of the switched link rate reached by all-reduce."""
    link_pcie: Floats
    hop_s: Floats
    """Latency of a small all-reduce per doubling of ranks on a switched link; PCIe takes
    `hop_pcie` times that.
    """
    bulk_hop_s: Floats
    """Further latency of an all-reduce of megabytes, where the library leaves its low-latency
    protocol.
    """
    hop_pcie: Floats
    stage_s: Floats
    """Fixed cost of handing a micro-batch to the next pipeline stage."""

    def scaled(self, factor: Floats) -> "Efficiency":
        """Return the profile sped up by `factor` in every rate and floor (a calibration by one
        number).
        """
        changed = {name: getattr(self, name) * factor for name in RATE_NAMES}
        changed |= {name: getattr(self, name) / factor for name in FLOOR_NAMES}
        return replace(self, **changed)


EFFICIENCY_NAMES = tuple(field.name for field in fields(Efficiency))


@dataclass(frozen=True, slots=True)
class Load:
    """The tokens and sequences of one step, per replica."""

    sequences: Floats
    """Running sequences that decode one token each."""
    context_tokens: Floats
    """Mean cached tokens per running sequence."""
    prompt_tokens: Floats
    """Prompt tokens processed in the step, all sequences together."""
    prompt_span_tokens: Floats
    """Mean cached tokens a prompt token attends to (half the prompt when it is not cut)."""


@dataclass(frozen=True, slots=True)
class Replica:
    """A model on devices under an engine: all that does not change from step to step."""

    shape: Shapes
    device: Devices
    layout: ReplicaLayout
    widths: Widths
    math_bits: Floats
    """Width of the multiply: 16, 8 or 4."""
    expert_math_bits: Floats
    efficiency: Efficiency
