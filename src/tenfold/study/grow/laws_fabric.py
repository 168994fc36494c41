"""Laws of the fabric: uplinks of leaves and pods, spines, and links between sites.

An uplink is its leaf's own, so more jobs or more nodes do not crowd it; larger gangs do, for
more of their traffic leaves the leaf. Spines are shared by all, so they feel everything that
runs. Too little of either only stretches the part of a step that communicates: a layer
counts as broken where that costs more than the share of time that steps may stall.
"""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from tenfold.model.fleet_spec import Fabric
from tenfold.model.growth import Axis, Quantity, grown_by, moves
from tenfold.physics.fabric import FabricPlan
from tenfold.physics.growth.law import ASSUMED, STATED, SUPPOSED, Evidence, Law, Named, weakest
from tenfold.report.figures import rate_bytes
from tenfold.study.grow.history import busier, history_of
from tenfold.study.grow.laws_links import link_laws
from tenfold.study.grow.senders import NO_SENDERS, Gang, Senders, senders_on
from tenfold.study.grow.state import State

UPLINKS, SPINE = 26, 27
_SPINE_BY: tuple[Quantity, ...] = ("jobs", "job-size", "nodes")


class Unit(NamedTuple):
    """What hangs below one uplink, in GPUs, and what the uplink carries."""

    gpus: float
    up_bytes_per_s: float


class Wanted(NamedTuple):
    """What gangs of one size want of the uplink that is shortest for them."""

    strain: float
    gpus: float
    bytes_per_s: float
    up_bytes_per_s: float
    slower: float


def fabric_laws(state: State, axis: Axis) -> list[Law]:
    """Return the laws of every fabric with more than one leaf, and of links between sites."""
    laws: list[Law] = []
    history = history_of(state)
    for place, fabric in enumerate(state.spec.fabrics):
        several = state.layout.fabrics[place].leaves > 1
        if not several or not _line_bytes_per_s(state, fabric):
            continue
        senders = senders_on(state, fabric, history)
        if senders is None:
            laws += _unknown(axis, fabric)
            continue
        leaves, pods = leaf_units(state, place), pod_units(state, place)
        for below, units in (("leaves", leaves), ("pods", pods)):
            if units:
                laws.append(_uplinks(state, axis, fabric, below, units, senders))
        if leaves:
            laws.append(_spine(state, axis, fabric, max(unit.gpus for unit in leaves), senders))
    grows = any(moves(axis, quantity) for quantity in _SPINE_BY)
    return [law for law in laws if grows or not law.needs] + link_laws(state, axis, history)


def _unknown(axis: Axis, fabric: Fabric) -> list[Law]:
    """Return what nobody's traffic is known of; uplinks are only asked of larger gangs."""
    joined = fabric.kind == "dragonfly"
    names = [Named("fabric-uplinks", f"{'pods' if joined else 'leaves'} of {fabric.id}", UPLINKS)]
    if not moves(axis, "job-size"):
        names = []
    if not joined:
        names.append(Named("fabric-spine", f"fabric {fabric.id}", SPINE))
    return [name.unknown(NO_SENDERS) for name in names]


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


def _line_bytes_per_s(state: State, fabric: Fabric) -> float:
    """Return what a GPU of the slowest node can send; 0 where no GPU hangs on the fabric."""
    rates = [
        pool.nics_per_node * pool.nic_bandwidth / pool.gpus_per_node
        for pool in state.spec.pools
        if pool.fabric == fabric.id and pool.gpus
    ]
    return min(rates, default=0.0)


def _uplinks(
    state: State, axis: Axis, fabric: Fabric, below: str, units: Sequence[Unit], senders: Senders
) -> Law:
    name = Named("fabric-uplinks", f"{below} of {fabric.id}", UPLINKS)
    wide, line = state.widening(name.key), _line_bytes_per_s(state, fabric)
    gpus = sum(pool.gpus for pool in state.spec.pools if pool.fabric == fabric.id)
    limit = state.grow.limits.stall_share_most

    def worst(factor: float) -> Wanted:
        larger = grown_by(axis, "job-size", factor)
        found = [
            (_wanted(gang, min(gang.gpus * larger, gpus), units, line, wide, limit), gang.running)
            for gang in senders.gangs
        ]
        return _held(found, limit * senders.running)

    def seen(factor: float) -> str:
        want = worst(factor)
        one = "leaf" if below == "leaves" else "pod"
        if not want.bytes_per_s:
            return f"jobs stay under one {one} of {fabric.id} each"
        return (
            f"jobs of {want.gpus:,.0f} GPUs want {rate_bytes(want.bytes_per_s)} out of a {one} of "
            f"{fabric.id}, which has {rate_bytes(want.up_bytes_per_s)}: {want.slower:.0%} slower"
        )

    evidence = weakest(senders.evidence, _evidence(fabric))
    return name.law(lambda factor: worst(factor).strain, 1.0, evidence, seen)


def _wanted(
    gang: Gang, gpus: float, units: Sequence[Unit], line: float, wide: float, limit: float
) -> Wanted:
    """Return what gangs of so many GPUs want of the uplink that is shortest for them.

    Partners are spread evenly over a gang, so `g` of its `n` GPUs below one uplink send the
    part `1 - g / n` of their traffic over it.
    """
    rate = min(gang.bytes_per_s_per_gpu, line)
    best = Wanted(0.0, gpus, 0.0, units[0].up_bytes_per_s * wide, 0.0)
    for unit in units:
        sent = unit.gpus * max(0.0, 1.0 - unit.gpus / gpus) * rate if gpus else 0.0
        up = unit.up_bytes_per_s * wide
        over = sent / up if up else inf
        if over * _bearable(gang.share, limit) > best.strain:
            slower = gang.share * max(0.0, over - 1.0)
            best = Wanted(over * _bearable(gang.share, limit), gpus, sent, up, slower)
    return best


def _bearable(share: float, limit: float) -> float:
    """Return 1 over how many times its capacity may be wanted before steps stall too long.

    A step of which the part `s` communicates grows by `s` times what is wanted too much, and
    no more than `limit` of it may be that growth.
    """
    if share <= 0.0 or limit >= 1.0:
        return 0.0
    return 1.0 / (1.0 + limit / (1.0 - limit) / share)


def _held(found: Sequence[tuple[Wanted, float]], least: float) -> Wanted:
    """Return what gangs with at least so many running GPUs want, or more.

    Gangs with fewer cannot make the fleet lose more than the limit, whatever befalls them.
    """
    ordered = sorted(found, key=lambda one: -one[0].strain)
    running = 0.0
    for want, gpus in ordered:
        running += gpus
        if running >= least:
            return want
    return ordered[-1][0]


def _spine(state: State, axis: Axis, fabric: Fabric, leaf_gpus: float, senders: Senders) -> Law:
    """Spines stay as they are when nodes and their leaves are added."""
    name = Named("fabric-spine", f"fabric {fabric.id}", SPINE)
    if fabric.spines is None:
        # As many as the leaves need is what is supposed: a factor would give that back.
        return name.unknown(f"`spines` of fabric `{fabric.id}`")
    there = next(one for one in state.inputs.fleet.layout.fabrics if one.name == fabric.id)
    carried = spine_bytes_per_s(fabric, there) * state.widening(name.key)
    running, line = busier(axis, senders.load), _line_bytes_per_s(state, fabric)
    sending = [gang for gang in senders.gangs if gang.bytes_per_s_per_gpu * gang.share]
    share = _mean_share(sending)
    bearable = _bearable(share, state.grow.limits.stall_share_most)

    def wanted(factor: float) -> float:
        larger = grown_by(axis, "job-size", factor)
        return running(factor) * sum(
            gang.running
            * max(0.0, 1.0 - leaf_gpus / (gang.gpus * larger))
            * min(gang.bytes_per_s_per_gpu, line)
            for gang in sending
        )

    def seen(factor: float) -> str:
        slower = share * max(0.0, wanted(factor) / carried - 1.0)
        return (
            f"jobs want {rate_bytes(wanted(factor))} of the spines of {fabric.id}, which carry "
            f"{rate_bytes(carried)}: {slower:.0%} slower"
        )

    evidence = weakest(senders.evidence, _evidence(fabric))
    return name.law(lambda factor: wanted(factor) * bearable, carried, evidence, seen)


def _mean_share(gangs: Sequence[Gang]) -> float:
    running = sum(gang.running for gang in gangs)
    return sum(gang.running * gang.share for gang in gangs) / running if running else 0.0


def spine_bytes_per_s(fabric: Fabric, plan: FabricPlan) -> float:
    """Return what all spines take from leaves: every port, or half where pods have cores above."""
    down = fabric.switch_ports if plan.pods == 1 else fabric.switch_ports // 2
    uplinks = plan.nodes_per_leaf * plan.rails / plan.oversubscription
    port = float(plan.leaf_up.max()) / uplinks
    return (fabric.spines or 0) * plan.pods * down * port


def _evidence(fabric: Fabric) -> Evidence:
    stated = not fabric.defaulted and fabric.nodes_per_leaf is not None
    return ASSUMED if fabric.defaulted else STATED if stated else SUPPOSED
