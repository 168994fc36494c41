"""Ceilings of the fabric: its ports, and jobs at full bandwidth within its uplinks."""

from msgspec.structs import replace

from tenfold.decide.layout.search import search
from tenfold.model.fleet.spec import Fabric
from tenfold.physics.fabric import FabricPlan
from tenfold.report.figures import count
from tenfold.study.ceiling.design import Design, grown
from tenfold.study.ceiling.layers import CeilingGrade, LayerBuilder, LayerCeiling

NO_FABRIC = "no fabric connects these nodes"
FAR_NODES = 16_384
"""More nodes than one switch holds, so that leaves are sized as in a large fabric."""


def fabric_layers(design: Design) -> list[LayerCeiling]:
    """Return uplinks of leaves and pods, and ports."""
    fabric, plan = design.fabric, design.fabric_plan
    if fabric is None or plan is None:
        names = ("leaf-uplinks", "pod-uplinks", "fabric-ports")
        return [LayerBuilder(name, "", design.gpus_today).unknown(NO_FABRIC) for name in names]
    return [
        leaf_uplinks(design, fabric),
        pod_uplinks(design, fabric),
        fabric_ports(design, fabric, plan),
    ]


def leaf_uplinks(design: Design, fabric: Fabric) -> LayerCeiling:
    """Return the largest job at full bandwidth: one leaf, if its uplinks are oversubscribed."""
    below = "group" if fabric.kind == "dragonfly" else "leaf"
    name = LayerBuilder("leaf-uplinks", f"{fabric.id} {below} uplinks", design.gpus_today)
    if fabric.oversubscription <= 1:
        return name.free(_grade(fabric), f"fabric {fabric.id} has non-blocking uplinks")
    target = grown(design, max(design.gpus_today, FAR_NODES * design.target.gpus_per_node))
    ceiling = target.nodes_per_leaf * target.gpus_per_node
    return _narrow(design, name, ceiling, below, fabric.oversubscription)


def pod_uplinks(design: Design, fabric: Fabric) -> LayerCeiling:
    """Return the largest job inside one pod, if the core above it is oversubscribed."""
    name = LayerBuilder("pod-uplinks", f"{fabric.id} pod uplinks", design.gpus_today)
    if fabric.kind == "dragonfly" or fabric.core_oversubscription <= 1:
        return name.free(
            _grade(fabric), f"fabric {fabric.id} is not oversubscribed above its leaves"
        )
    target = grown(design, max(design.gpus_today, FAR_NODES * design.target.gpus_per_node))
    ceiling = target.nodes_per_pod * target.gpus_per_node
    ratio = fabric.oversubscription * fabric.core_oversubscription
    return _narrow(design, name, ceiling, "pod", ratio)


def _narrow(
    design: Design, name: LayerBuilder, ceiling: int, below: str, ratio: float
) -> LayerCeiling:
    fabric = design.fabric
    assert fabric is not None, "oversubscribed uplinks belong to a fabric"
    rate = design.target.nic_bytes_per_s / 1e9
    loss = _loss(design, 2 * ceiling)
    slower = (
        ""
        if loss is None or design.request is None
        else f"; {design.request.job.model} is {loss:.0%} slower at {2 * ceiling:,} GPUs"
    )
    text = (
        f"one {below} has {ceiling:,} GPUs at {rate:.1f} GB/s each; larger jobs cross {ratio:g}:1 "
        f"uplinks at {rate / ratio:.1f} GB/s{slower}"
    )
    return name.binds(ceiling, _grade(fabric), text, loss)


def _loss(design: Design, gpus: int) -> float | None:
    """Return the share of throughput that oversubscribed uplinks cost a job of this size."""
    if design.request is None:
        return None
    thin = grown(design, gpus)
    wide = replace(thin, leaf_oversubscription=1.0, pod_oversubscription=1.0)
    ours, theirs = search(design.request, thin, gpus), search(design.request, wide, gpus)
    if not ours.found or not theirs.found:
        return None
    return max(0.0, 1 - float(theirs.step_s[0]) / float(ours.step_s[0]))


def fabric_ports(design: Design, fabric: Fabric, plan: FabricPlan) -> LayerCeiling:
    """Return how many GPUs fit on the fabric before it needs another switch tier."""
    name = LayerBuilder("fabric-ports", f"{fabric.id} switch ports", design.gpus_today)
    nodes = plan.nodes_max
    each = 1 if fabric.kind == "rail-optimised" else design.pools[0].nics_per_node
    alone = plan.leaves == 1 and fabric.nodes_per_leaf is None and fabric.kind != "dragonfly"
    if alone:
        nodes = max(nodes, fabric.switch_ports // each)
    others = plan.nodes - sum(pool.nodes for pool in design.pools)
    ceiling = max(0, nodes - others) * design.target.gpus_per_node
    built = "one leaf" if plan.leaves == 1 else f"leaves of {plan.nodes_per_leaf:,} nodes"
    used = (
        f", {others:,} of which {'is' if others == 1 else 'are'} in other pools" if others else ""
    )
    text = (
        f"{fabric.switch_ports}-port switches with {built} can connect {count(nodes, 'node')}"
        f"{used}; more nodes need another switch tier"
    )
    return name.binds(ceiling, _grade(fabric), text)


def _grade(fabric: Fabric) -> CeilingGrade:
    stated = not fabric.defaulted and fabric.nodes_per_leaf is not None
    return "stated" if stated else "supposed"
