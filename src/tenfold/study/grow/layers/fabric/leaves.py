"""Leaves and pods of a fabric: GPUs below one uplink, and the bandwidth of that uplink."""

from typing import NamedTuple

import numpy as np

from tenfold.model.fleet.spec import Fabric
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.growth.breaking import ASSUMED, DEFAULTED, STATED, Evidence
from tenfold.study.grow.state import State


class Unit(NamedTuple):
    """GPUs below one uplink, and the bandwidth of the uplink."""

    gpus: float
    up_bytes_per_s: float


def leaf_units(state: State, place: int) -> list[Unit]:
    """Return the distinct leaves of a fabric.

    Switches of a dragonfly group are fully connected: only the links of the group are a limit.
    """
    plan = state.layout.fabrics[place]
    if plan.kind == "dragonfly" or plan.leaves == 1:
        return []
    pairs = zip(_leaf_gpus(state, place), leaf_up(plan).tolist(), strict=True)
    return [Unit(*pair) for pair in dict.fromkeys(pairs)]


def pod_units(state: State, place: int) -> list[Unit]:
    """Return the distinct pods of a fabric, or groups of a dragonfly."""
    plan = state.layout.fabrics[place]
    if plan.pods == 1:
        return []
    starts = np.arange(0, plan.leaves, plan.leaves_per_pod)
    gpus = np.add.reduceat(np.asarray(_leaf_gpus(state, place)), starts)
    ratio = 1.0 if plan.kind == "dragonfly" else plan.core_oversubscription
    up = np.maximum(plan.pod_up, np.add.reduceat(leaf_up(plan), starts) / ratio)
    pairs = zip(gpus.tolist(), up.tolist(), strict=True)
    return [Unit(*pair) for pair in dict.fromkeys(pairs)]


def leaf_up(plan: FabricPlan) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the uplink bandwidth of each leaf: for a full leaf, or more if it is overfull."""
    return np.maximum(plan.leaf_up, plan.leaf_hosts / plan.oversubscription)


def _leaf_gpus(state: State, place: int) -> list[float]:
    layout = state.layout
    gpus = layout.per_node([float(pool.gpus_per_node) for pool in state.spec.pools])
    attached = layout.leaf_of >= 0
    held = np.bincount(
        layout.leaf_of[attached], weights=gpus[attached], minlength=len(layout.leaves)
    )
    return [float(held[at]) for at, leaf in enumerate(layout.leaves) if leaf.fabric == place]


def line_bytes_per_s(state: State, fabric: Fabric) -> float:
    """Return what a GPU of the slowest node can send; 0 if the fabric has no GPUs."""
    rates = [
        pool.nics_per_node * pool.nic_bandwidth / pool.gpus_per_node
        for pool in state.spec.pools
        if pool.fabric == fabric.id and pool.gpus
    ]
    return min(rates, default=0.0)


def fabric_evidence(fabric: Fabric) -> Evidence:
    """Return how well the switches of a fabric are known."""
    stated = not fabric.defaulted and fabric.nodes_per_leaf is not None
    return ASSUMED if fabric.defaulted else STATED if stated else DEFAULTED
