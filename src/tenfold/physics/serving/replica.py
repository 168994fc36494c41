"""A model on devices under an engine, and what one step of it carries: the inputs of the step
model.

Every field is an array with one entry per configuration, so one call times a thousand plans.
"""

from dataclasses import dataclass, field, fields, replace

import numpy as np

from tenfold.physics.arrays import Floats
from tenfold.physics.serving.devices import Devices
from tenfold.physics.serving.kv_cache import ReplicaLayout, Widths, kv_bytes_per_token
from tenfold.physics.serving.shapes import Shapes, dense_weights, expert_weights

# An H100 in 8 bit: where the power exponent changes nothing.
_WATTS_PER_TFLOP = 0.5

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
class Fixed:
    """What follows from a replica alone, computed once: thousands of loads are tried on one."""

    read_rate: Floats
    weights: Floats
    """Weights of a rank that every token passes."""
    rate: Floats
    weights_read_s: Floats
    head: Floats
    """Weights of a rank that turn the last hidden state into logits."""
    head_rate: Floats
    head_read_s: Floats
    experts: Floats
    unvisited_log: Floats
    """Logarithm of the share of experts that one token does not visit."""
    expert: Floats
    """Weights of one expert of all layers on one rank."""
    expert_rate: Floats
    cache_bytes_per_token: Floats
    reread: Floats
    """How often a cached token is read."""


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
    fixed: Fixed = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "fixed", _fixed(self))


def _fixed(replica: Replica) -> Fixed:
    shape, layout, eff, device = replica.shape, replica.layout, replica.efficiency, replica.device
    read_rate = device.memory_bytes_per_s * eff.weights
    weights = dense_weights(shape) / (layout.tp * layout.pp)
    head = shape.vocab * shape.hidden / layout.tp
    experts = np.maximum(shape.experts, 1.0)
    ranks = layout.tp * layout.attention_dp
    group = np.where(shape.mla_rank > 0, 1.0, shape.heads / np.maximum(shape.kv_heads, 1.0))
    odd = np.where(np.log2(group) % 1.0 > 0, eff.odd_group, 0.0)
    return Fixed(
        read_rate=read_rate,
        weights=weights,
        rate=_multiply_rate(replica, replica.math_bits),
        weights_read_s=weights * replica.widths.dense_bytes / read_rate,
        head=head,
        head_rate=device.ceiling_16_flops * eff.compute,
        head_read_s=2.0 * head / read_rate,
        experts=experts,
        unvisited_log=np.log1p(-np.minimum(shape.topk / experts, 0.999)),
        expert=expert_weights(shape) * shape.moe_layers / layout.pp / ranks,
        expert_rate=_expert_rate(replica),
        cache_bytes_per_token=kv_bytes_per_token(shape, replica.widths, layout),
        reread=1.0 + odd * (group - 1.0),
    )


def _expert_rate(replica: Replica) -> Floats:
    eff, width = replica.efficiency, replica.shape.ffn / replica.layout.tp
    mixed = np.where(
        (replica.expert_math_bits >= 16) & (replica.widths.expert_bytes < 1), eff.mixed, 1.0
    )
    rate = _multiply_rate(replica, replica.expert_math_bits) * eff.expert * mixed
    return rate * width / (width + eff.expert_half_ffn)


def _multiply_rate(replica: Replica, bits: Floats) -> Floats:
    device, eff = replica.device, replica.efficiency
    is_16, is_8 = bits >= 16, bits >= 8
    narrow = np.where(is_8, device.ceiling_8_flops, device.ceiling_4_flops)
    ceiling = np.where(is_16, device.ceiling_16_flops, narrow)
    share = np.where(is_16, 1.0, np.where(is_8, eff.compute_8, eff.compute_4))
    watts = device.tdp_w / (ceiling / 1e12) / _WATTS_PER_TFLOP
    return ceiling * share * eff.compute * watts**eff.power
