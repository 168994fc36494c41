"""Time of one engine step: decode tokens and prompt tokens pass the layers together.

Every term is a physical one (weights read, multiply, cache read, prompt attention, element-wise
traffic, all-reduce, launch floor) with one efficiency each. Compute and weight reads add more
than they overlap: a p-norm with p near 1.7 beats the classical max() on every engine version.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.arrays import Floats
from tenfold.physics.serving.replica import Load, Replica
from tenfold.physics.training.collectives import HOP_S

# Half of the protocol change is paid at this message size (NCCL on A100 and H100: 1 to 8 MB).
_BULK_BYTES = 2.0e6


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one step on one pipeline stage, by cause."""

    products_s: Floats
    experts_s: Floats
    cache_s: Floats
    prompt_attention_s: Floats
    elementwise_s: Floats
    links_s: Floats
    floor_s: Floats

    @property
    def total_s(self) -> Floats:
        """Sum over all causes."""
        return (
            self.products_s
            + self.experts_s
            + self.cache_s
            + self.prompt_attention_s
            + self.elementwise_s
            + self.links_s
            + self.floor_s
        )


def step_time(replica: Replica, load: Load) -> StepTime:
    """Return the time of one step on the slowest stage, for a micro-batch of `load`."""
    layout = replica.layout
    groups = layout.attention_dp
    tokens = (load.sequences + load.prompt_tokens) / groups
    sequences = load.sequences / groups
    return StepTime(
        products_s=_products_s(replica, tokens, sequences),
        experts_s=_experts_s(replica, tokens),
        cache_s=_cache_s(replica, sequences, load.context_tokens),
        prompt_attention_s=_prompt_attention_s(
            replica, load.prompt_tokens / groups, load.prompt_span_tokens
        ),
        elementwise_s=_elementwise_s(replica, tokens, sequences),
        links_s=_links_s(replica, tokens),
        floor_s=_floor_s(replica, sequences),
    )


def _products_s(replica: Replica, tokens: Floats, sequences: Floats) -> Floats:
    fixed, overlap_p = replica.fixed, replica.efficiency.overlap_p
    body = _join(2.0 * fixed.weights * tokens / fixed.rate, fixed.weights_read_s, overlap_p)
    # The head stays in 16 bit and sees only the tokens that will be sampled.
    tail = _join(2.0 * fixed.head * sequences / fixed.head_rate, fixed.head_read_s, overlap_p)
    # The last stage carries the head on top of its layers, and the slowest stage sets the pace.
    return body + tail


def _experts_s(replica: Replica, tokens: Floats) -> Floats:
    fixed, eff = replica.fixed, replica.efficiency
    all_tokens = tokens * replica.layout.attention_dp
    visited = fixed.experts * -np.expm1(all_tokens * fixed.unvisited_log)
    rows = all_tokens * replica.shape.topk + visited * eff.expert_pad_tokens
    read = fixed.expert * visited * replica.widths.expert_bytes / fixed.read_rate
    return _join(2.0 * fixed.expert * rows / fixed.expert_rate, read, eff.overlap_p)


def _cache_s(replica: Replica, sequences: Floats, context_tokens: Floats) -> Floats:
    shape, layout, eff = replica.shape, replica.layout, replica.efficiency
    local = np.where(shape.window > 0, shape.window_share, 0.0)
    kept = np.where(shape.window > 0, np.minimum(context_tokens, shape.window), context_tokens)
    tokens = sequences * ((1.0 - local) * context_tokens + local * kept)
    read = tokens * replica.fixed.cache_bytes_per_token * replica.fixed.reread
    read_s = read / (replica.device.memory_bytes_per_s * eff.cache)
    scan_s = eff.scan_s * context_tokens * shape.layers / layout.pp
    # Every query head works on what its group read once: 29 heads per group (Falcon) or a latent
    # that 128 heads share (DeepSeek) are bound by arithmetic, not by reading.
    width = np.where(shape.mla_rank > 0, shape.mla_rank, shape.head_dim)
    flops = 4.0 * tokens * shape.heads / layout.tp * width * shape.layers / layout.pp
    return np.maximum(read_s, scan_s) + flops / (replica.device.ceiling_16_flops * eff.query)


def _prompt_attention_s(replica: Replica, prompt_tokens: Floats, span: Floats) -> Floats:
    shape, layout = replica.shape, replica.layout
    local = np.where(shape.window > 0, shape.window_share, 0.0)
    kept = np.where(shape.window > 0, np.minimum(span, shape.window), span)
    reach = (1.0 - local) * span + local * kept
    width = shape.heads * np.where(shape.mla_rank > 0, shape.head_dim + 32.0, shape.head_dim)
    flops = 4.0 * prompt_tokens * reach * width * shape.layers / (layout.tp * layout.pp)
    return flops / (replica.device.ceiling_16_flops * replica.efficiency.prompt_attention)


def _elementwise_s(replica: Replica, tokens: Floats, sequences: Floats) -> Floats:
    shape, layout, eff = replica.shape, replica.layout, replica.efficiency
    visited = np.where(shape.experts > 0, shape.topk + shape.shared_experts, 1.0)
    inner = (
        shape.ffn * visited * (1.0 + shape.gated) + 2.0 * shape.heads * shape.head_dim
    ) / layout.tp
    per_token = 2.0 * (eff.elementwise * shape.hidden + inner) * shape.layers / layout.pp
    # Under attention data parallel the copies of a token are spread over the ranks that hold
    # experts.
    copies = 2.0 * eff.permute * shape.topk * shape.hidden * shape.moe_layers / layout.pp
    logits = sequences * shape.vocab * 4.0 * 3.0 / layout.tp
    return (tokens * (per_token + copies) + logits) / replica.fixed.read_rate


def _links_s(replica: Replica, tokens: Floats) -> Floats:
    shape, layout, eff, device = replica.shape, replica.layout, replica.efficiency, replica.device
    rate = device.link_bytes_per_s * np.where(device.switched > 0, eff.link, eff.link_pcie)
    network = device.network_bytes_per_s * eff.link
    layers = shape.layers / layout.pp
    payload = tokens * shape.hidden * 2.0
    # Attention and feed-forward in parallel (GPT-J, Falcon) share one all-reduce.
    reduces = layers * (2.0 - shape.parallel_block)
    ring = 2.0 * (layout.tp - 1.0) / layout.tp
    # Between nodes, every rank of a node sends over its own NIC.
    inside = np.minimum(layout.tp, device.domain)
    ring_rate = np.where(layout.tp > device.domain, np.minimum(rate, network * inside), rate)
    reduce_s = reduces * (ring * payload / ring_rate + _latency_s(replica, layout.tp, payload))
    # Experts spread over data parallel attention: every token goes out to its experts and
    # returns.
    others = (layout.attention_dp - 1.0) / layout.attention_dp
    sent = others * payload * np.minimum(shape.topk, layout.attention_dp)
    spreads = 2.0 * shape.moe_layers / layout.pp
    away = np.maximum(layout.attention_dp - device.domain, 0.0) / layout.attention_dp
    out = payload * np.minimum(shape.topk, layout.attention_dp)
    spread_s = spreads * (
        np.maximum(sent / rate, out * away / network)
        + _latency_s(replica, layout.attention_dp, payload)
    )
    # Where a replica has more ranks than a node, stages lie on different ones.
    apart = layout.gpus > device.domain
    hand_over_rate = np.where(apart, np.minimum(rate, network), rate)
    hand_over_s = np.where(layout.pp > 1, eff.stage_s + payload / hand_over_rate, 0.0)
    return reduce_s + spread_s + hand_over_s


def _latency_s(replica: Replica, ranks: Floats, payload_bytes: Floats) -> Floats:
    eff = replica.efficiency
    bulk_s = eff.bulk_hop_s * payload_bytes / (payload_bytes + _BULK_BYTES)
    scale = np.where(replica.device.switched > 0, 1.0, eff.hop_pcie)
    nodes = np.maximum(np.ceil(ranks / replica.device.domain), 1.0)
    across_s = 2.0 * HOP_S * (nodes - 1.0)
    return (eff.hop_s + bulk_s) * scale * np.log2(np.maximum(ranks, 1.0)) + across_s


def _floor_s(replica: Replica, sequences: Floats) -> Floats:
    shape, layout, eff = replica.shape, replica.layout, replica.efficiency
    layers_s = eff.layer_floor_s * shape.layers + eff.expert_floor_s * shape.moe_layers
    return layers_s / layout.pp + eff.step_floor_s + eff.sequence_s * sequences


def _join(multiply_s: Floats, read_s: Floats, overlap_p: Floats) -> Floats:
    return (multiply_s**overlap_p + read_s**overlap_p) ** (1.0 / overlap_p)
