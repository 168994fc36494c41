"""Leaves and pods of a fabric: what hangs below one uplink, and what the uplink carries."""

from typing import NamedTuple

import numpy as np

from tenfold.model.fleet.spec import Fabric
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.growth.breaking import ASSUMED, DEFAULTED, STATED, Evidence
from tenfold.study.grow.state import State


class Unit(NamedTuple):
    """What hangs below one uplink, in GPUs, and what the uplink carries."""

    gpus: float
    up_bytes_per_s: float


def leaf_units(state: State, place: int) -> list[Unit]:
    """Return the leaves of a fabric, alike ones once.

    Switches of a dragonfly group are joined each to each: only the group's links bind.
    """
    plan = state.layout.fabrics[place]
    if plan.kind == "dragonfly" or plan.leaves == 1:
        return []
    pairs = zip(_leaf_gpus(state, place), leaf_up(plan).tolist(), strict=True)
    return [Unit(*pair) for pair in dict.fromkeys(pairs)]


def pod_units(state: State, place: int) -> list[Unit]:
    """Return the pods of a fabric, or the groups of a dragonfly, alike ones once."""
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
    """Return what leaves each leaf: built for a full leaf, and for more where one is crowded."""
    return np.maximum(plan.leaf_up, plan.leaf_hosts / plan.oversubscription)


def _leaf_gpus(state: State, place: int) -> list[float]:
    layout = state.layout
    gpus = layout.per_node([float(pool.gpus_per_node) for pool in state.spec.pools])
    hung = layout.leaf_of >= 0
    held = np.bincount(layout.leaf_of[hung], weights=gpus[hung], minlength=len(layout.leaves))
    return [float(held[at]) for at, leaf in enumerate(layout.leaves) if leaf.fabric == place]


def line_bytes_per_s(state: State, fabric: Fabric) -> float:
    """Return what a GPU of the slowest node can send; 0 where no GPU hangs on the fabric."""
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
