"""Collective time by group size, ranks inside the scale-up domain, and bytes.

Note: between nodes the bus bandwidth of a group is NIC per GPU times the ranks *of that group*
inside a node, because every such rank drives its own NIC.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.training.arrays import Flags, Values

# Shares of the scale-up datasheet rate reached by large NCCL messages (A100 and H100 timings).
RING_SHARE = 0.76
ALLTOALL_SHARE = 0.69
START_S = 25.0e-6
# One more node in the ring adds this to every collective (SimAI NIC tables: half-bandwidth
# message grows by about 15 MB a node).
HOP_S = 12.0e-6


@dataclass(frozen=True, slots=True)
class Fabric:
    """What a group of ranks communicates over."""

    scaleup_bytes_s: Values
    nic_bytes_s: Values
    start_s: Values = START_S
    hop_s: Values = HOP_S


def ring_bytes_s(
    fabric: Fabric, ranks: Values, inside: Values, share: float = RING_SHARE
) -> Values:
    """Return the bus bandwidth of a ring over `ranks`, `inside` of them in one node."""
    local = fabric.scaleup_bytes_s * share
    across = np.minimum(local, fabric.nic_bytes_s * inside)
    return np.where(ranks > inside, across, local)


def reduce_scatter_s(fabric: Fabric, total_bytes: Values, ranks: Values, inside: Values) -> Values:
    """Return the time of a reduce-scatter (or all-gather) of `total_bytes` unsharded."""
    nodes = ranks / inside
    latency = np.where(ranks > 1, fabric.start_s + fabric.hop_s * (nodes - 1.0), 0.0)
    moved = total_bytes * (1.0 - 1.0 / ranks)
    return latency + moved / ring_bytes_s(fabric, ranks, inside)


def all_reduce_s(fabric: Fabric, total_bytes: Values, ranks: Values, inside: Values) -> Values:
    """Return the time of an all-reduce: two halves of a ring, one start."""
    nodes = ranks / inside
    latency = np.where(ranks > 1, fabric.start_s + 2.0 * fabric.hop_s * (nodes - 1.0), 0.0)
    moved = 2.0 * total_bytes * (1.0 - 1.0 / ranks)
    return latency + moved / ring_bytes_s(fabric, ranks, inside)


def all_to_all_s(fabric: Fabric, rank_bytes: Values, ranks: Values, inside: Values) -> Values:
    """Return the time when each rank spreads `rank_bytes` evenly over the group."""
    local = rank_bytes * (inside - 1.0) / ranks / (fabric.scaleup_bytes_s * ALLTOALL_SHARE)
    away = rank_bytes * (ranks - inside) / ranks / fabric.nic_bytes_s
    latency = np.where(ranks > 1, fabric.start_s, 0.0)
    return latency + np.maximum(local, away)


def send_s(fabric: Fabric, sent_bytes: Values, crosses_node: Flags) -> Values:
    """Return the time of one point-to-point send."""
    rate = np.where(crosses_node, fabric.nic_bytes_s, fabric.scaleup_bytes_s * RING_SHARE)
    return 0.5 * fabric.start_s + sent_bytes / rate
