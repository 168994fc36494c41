"""Warnings about a fleet design: small hosts, overloaded racks, single points of failure.

Each rule is a function that yields warnings; `[lint] ignore` in a fleet file turns rules off
by code, and its other keys set thresholds.
"""

from collections.abc import Iterator

import numpy as np

from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.finding import Finding, Path
from tenfold.model.fleet.spec import FleetSpec, Pool
from tenfold.model.units import GIB
from tenfold.physics.blast import blast_radius
from tenfold.physics.fabric import binding_layers
from tenfold.physics.layout import Layout

CODES = (
    "host-memory-small",
    "host-memory-for-model",
    "host-cpus-few",
    "pcie-lanes",
    "nvme-slow",
    "storage-not-parallel",
    "node-over-rack-power",
    "rack-over-power",
    "site-over-power",
    "single-point",
    "nic-unlike-fabric",
    "gpudirect-without-rdma",
    "uplinks-bind",
    "uplinks-bind-later",
    "fabric-full",
    "quota-over-fleet",
    "site-unlinked",
)
LANES_PER_GPU = 16
SHARED_ROLES = ("gpu-direct", "hot", "warm")
CROWDED_GPUS_PER_NODE = 8
RATES_APART = 0.1
"""NICs and links whose rates differ by less are taken for the same class."""
TCP_LINKS = "Ethernet-"


def lint(layout: Layout, catalogue: Catalogue) -> list[Finding]:
    """Return every warning about a fleet, in the order of the rules."""
    ignored = layout.spec.lint.ignore
    rules = (
        _host_memory(layout.spec, catalogue),
        _host_cpus(layout.spec),
        _host_slots(layout.spec),
        _file_systems(layout.spec),
        _power(layout),
        _single_points(layout, catalogue),
        _ports(layout.spec, catalogue),
        _uplinks(layout),
        _teams(layout.spec),
        _site_links(layout.spec),
    )
    found = [one for rule in rules for one in rule]
    assert all(one.code in CODES for one in found), "every warning is in the list of codes"
    return [one for one in found if one.code not in ignored]


def _warning(code: str, message: str, hint: str, path: Path) -> Finding:
    return Finding(code=code, message=message, hint=hint, path=path, severity="warning")


def _gpu_pools(spec: FleetSpec) -> Iterator[tuple[int, Pool]]:
    return ((place, pool) for place, pool in enumerate(spec.pools) if pool.gpus_per_node)


def _host_memory(spec: FleetSpec, catalogue: Catalogue) -> Iterator[Finding]:
    """Host memory must hold the weights while loading, and a copy while saving."""
    preset = None if spec.expects.model is None else catalogue.models.find(spec.expects.model)
    for place, pool in _gpu_pools(spec):
        path: Path = ("pool", place, "memory_gib_per_node")
        memory_gib = pool.memory_bytes_per_node / GIB
        floor_gib = spec.lint.host_memory_gib
        if pool.nodes > 1 and pool.gpus_per_node >= 4 and memory_gib < floor_gib:
            yield _warning(
                "host-memory-small",
                f"pool `{pool.id}` has {memory_gib:,.0f} GiB of RAM per node; "
                f"multi-node training needs {floor_gib:,.0f}",
                f"raise `memory_gib_per_node` to {floor_gib:,.0f}",
                path,
            )
        if preset is None:
            continue
        needed_gib = spec.lint.host_memory_ratio * preset.shape.params * 2 / GIB
        if memory_gib < needed_gib:
            yield _warning(
                "host-memory-for-model",
                f"pool `{pool.id}` has {memory_gib:,.0f} GiB of RAM per node, less than "
                f"{spec.lint.host_memory_ratio:g}x the weights of `{preset.name}` "
                f"({needed_gib:,.0f} GiB)",
                "raise `memory_gib_per_node`, or set `host_memory_ratio` in `[lint]` "
                "if each node loads only its own shard",
                path,
            )


def _host_cpus(spec: FleetSpec) -> Iterator[Finding]:
    """CPUs feed the GPUs: NVIDIA-Certified Systems have at least 6 cores for each."""
    for place, pool in _gpu_pools(spec):
        each = pool.cpus_per_node / pool.gpus_per_node
        if pool.gpus_per_node >= 4 and each < spec.lint.cpus_per_gpu:
            needed = -(-spec.lint.cpus_per_gpu * pool.gpus_per_node // 1)
            yield _warning(
                "host-cpus-few",
                f"pool `{pool.id}` has {each:.3g} CPUs per GPU; loading data and driving "
                f"{pool.gpus_per_node} GPUs needs {spec.lint.cpus_per_gpu:g}",
                f"raise `cpus_per_node` to {needed:.0f}, or lower `cpus_per_gpu` in `[lint]`",
                ("pool", place, "cpus_per_node"),
            )


def _file_systems(spec: FleetSpec) -> Iterator[Finding]:
    """A petabyte that many nodes read belongs on a parallel file system over many servers."""
    for place, tier in enumerate(spec.tiers):
        readers = sum(p.nodes for p in spec.pools if p.site == tier.site and p.gpus_per_node)
        held_tb = tier.capacity / 1e12
        large = tier.role in SHARED_ROLES and held_tb >= spec.lint.single_shelf_tb
        if large and tier.shelves == 1 and readers > 1:
            yield _warning(
                "storage-not-parallel",
                f"tier `{tier.id}` holds {held_tb:,.0f} TB on one shelf, read by {readers:,} GPU "
                "nodes",
                "use a parallel file system (Lustre, GPFS) over at least 2 shelves, or raise "
                "`single_shelf_tb` in `[lint]`",
                ("tier", place, "shelves"),
            )


def _host_slots(spec: FleetSpec) -> Iterator[Finding]:
    for place, pool in _gpu_pools(spec):
        lanes = pool.gpus_per_node * LANES_PER_GPU
        if pool.pcie_lanes is not None and not pool.pcie_switched and lanes > pool.pcie_lanes:
            yield _warning(
                "pcie-lanes",
                f"pool `{pool.id}` puts {pool.gpus_per_node} GPUs ({lanes} lanes) on "
                f"{pool.pcie_lanes} PCIe lanes",
                f"use at most {max(1, pool.pcie_lanes // LANES_PER_GPU)} GPUs per node, or set "
                "`pcie_switched = true` if the board has PCIe switches",
                ("pool", place, "gpus_per_node"),
            )
        rate = pool.nvme_bandwidth / 1e9 / max(1, pool.nvme_drives)
        if pool.nvme_drives and rate < spec.lint.nvme_gb_per_s_per_drive:
            yield _warning(
                "nvme-slow",
                f"pool `{pool.id}` has NVMe drives of {rate:.1f} GB/s; staging and checkpoints "
                f"need {spec.lint.nvme_gb_per_s_per_drive:g}",
                "use faster drives, or lower `nvme_gb_per_s_per_drive` in `[lint]`",
                ("pool", place, "nvme_gb_per_s_per_node"),
            )


def _power(layout: Layout) -> Iterator[Finding]:
    spec = layout.spec
    for place, pool in enumerate(spec.pools):
        site = next(one for one in spec.sites if one.id == pool.site)
        node_kw = pool.power_w_per_node / 1000
        if node_kw > site.rack_kw_limit and pool.gpus_per_node > CROWDED_GPUS_PER_NODE:
            yield _warning(
                "node-over-rack-power",
                f"one node of pool `{pool.id}` draws {node_kw:.1f} kW; the rack limit of site "
                f"`{site.id}` is {site.rack_kw_limit:g} kW",
                f"use at most {CROWDED_GPUS_PER_NODE} GPUs per node, or raise `rack_kw`",
                ("pool", place),
            )
    yield from _rack_power(layout)
    for place, site in enumerate(spec.sites):
        drawn = sum(p.nodes * p.power_w_per_node for p in spec.pools if p.site == site.id) / 1000
        if site.power_kw_limit is not None and drawn * site.pue > site.power_kw_limit:
            yield _warning(
                "site-over-power",
                f"site `{site.id}` draws {drawn * site.pue:,.0f} kW at a PUE of {site.pue:g}, "
                f"above its {site.power_kw_limit:,.0f} kW",
                "raise `power_kw`, or move nodes to another site",
                ("site", place, "power_kw"),
            )


def _rack_power(layout: Layout) -> Iterator[Finding]:
    """Yield one warning per pool, since the racks of a pool are identical."""
    spec = layout.spec
    kw = layout.per_node([pool.power_w_per_node / 1000 for pool in spec.pools])
    drawn = np.bincount(layout.rack_of, weights=kw, minlength=len(layout.racks))
    limits = np.asarray([rack.power_kw_limit for rack in layout.racks])
    over = np.flatnonzero(drawn > limits + 1e-9)
    stated = len(spec.racks)
    for number in over[over < stated].tolist():
        yield _rack_warning(layout, number, drawn, 1, ("rack", number))
    made = over[over >= stated]
    if len(made):
        first_node = np.searchsorted(np.sort(layout.rack_of), made)
        order = np.argsort(layout.rack_of, kind="stable")
        pools = layout.pool_of[order[first_node]]
        for place in dict.fromkeys(pools.tolist()):
            own = made[pools == place]
            path: Path = ("pool", place, "nodes_per_rack")
            yield _rack_warning(layout, int(own[0]), drawn, len(own), path)


def _rack_warning(
    layout: Layout, number: int, drawn: np.ndarray, count: int, path: Path
) -> Finding:
    rack = layout.racks[number]
    more = "1 more rack is" if count == 2 else f"{count - 1:,} more racks are"
    others = f"; {more} over the limit too" if count > 1 else ""
    return _warning(
        "rack-over-power",
        f"rack `{rack.name}` draws {float(drawn[number]):.1f} kW, over its limit of "
        f"{rack.power_kw_limit:g} kW{others}",
        "put fewer nodes in the rack, or raise `rack_kw` of the site",
        path,
    )


def _single_points(layout: Layout, catalogue: Catalogue) -> Iterator[Finding]:
    """Warn if several racks depend on one switch, PDU or cooling zone."""
    if len(layout.racks) < 2:
        return
    share = layout.spec.lint.domain_share
    # An assumed fabric is no reason for a warning.
    stated = [domain.id for domain in layout.spec.domains]
    guessed = [
        leaf.name
        for leaf in layout.leaves
        if layout.spec.fabrics[leaf.fabric].defaulted and leaf.name not in stated
    ]
    for row in blast_radius(layout, catalogue):
        if row.kind in ("leaf", "pdu", "cooling-zone") and row.racks > 1 and row.gpu_share > share:
            if row.name in guessed:
                continue
            yield _warning(
                "single-point",
                f"losing {row.kind} `{row.name}` takes down "
                + ("all GPUs" if row.gpu_share == 1 else f"{row.gpu_share:.0%} of all GPUs"),
                f"spread the racks over more than one {row.kind}",
                _fabric_path(layout, row.name),
            )
    for place, plan in enumerate(layout.fabrics):
        if plan.spines == 1 and plan.leaves > 1:
            yield _warning(
                "single-point",
                f"fabric `{plan.name}` has one spine: losing it stops every job larger than a leaf",
                "use at least two spines",
                ("fabric", place, "spines"),
            )


def _fabric_path(layout: Layout, name: str) -> Path:
    for place, domain in enumerate(layout.spec.domains):
        if domain.id == name:
            return ("domain", place)
    leaf = next((one for one in layout.leaves if one.name == name), None)
    return ("fabric", leaf.fabric) if leaf else ()


def _ports(spec: FleetSpec, catalogue: Catalogue) -> Iterator[Finding]:
    """NICs and the links of their fabric must be of one rate; GPUDirect needs RDMA."""
    stated = [fabric for fabric in spec.fabrics if not fabric.defaulted]
    links = {fabric.id: catalogue.links.find(fabric.link) for fabric in stated}
    for place, pool in _gpu_pools(spec):
        link = links.get(pool.fabric) if pool.fabric is not None else None
        if link is None or not link.gb_per_s:
            continue
        nic, port = pool.nic_bandwidth / 1e9, link.gb_per_s
        if abs(nic / port - 1) > RATES_APART:
            slower = "links" if port < nic else "NICs"
            yield _warning(
                "nic-unlike-fabric",
                f"pool `{pool.id}` has NICs of {nic:g} GB/s on fabric `{pool.fabric}` with links "
                f"of {port:g} GB/s ({link.name}): the {slower} limit the nodes",
                "set `nic_gbps` of the pool and `link` of the fabric to the same rate",
                ("pool", place, "nic_gbps"),
            )
        if pool.gpudirect and "gpudirect" not in pool.defaulted and link.name.startswith(TCP_LINKS):
            yield _warning(
                "gpudirect-without-rdma",
                f"pool `{pool.id}` sets `gpudirect`, but {link.name} is kernel TCP without RDMA",
                "set `link` of the fabric to RoCE or InfiniBand, or `gpudirect = false`",
                ("pool", place, "gpudirect"),
            )


def _uplinks(layout: Layout) -> Iterator[Finding]:
    growth = layout.spec.expects.nodes
    for place, plan in enumerate(layout.fabrics):
        path: Path = ("fabric", place, "oversubscription")
        for layer in binding_layers(plan):
            unit = layer.code.split("-")[0]
            yield _warning(
                "uplinks-bind",
                f"fabric `{plan.name}` is oversubscribed {layer.ratio:g}:1 from {layer.below} to "
                f"{layer.above}: jobs larger than one {unit} compete for the uplinks",
                f"make the uplinks non-blocking, or keep each job inside one {unit}",
                path if layer.code != "pod-uplinks" else ("fabric", place, "core_oversubscription"),
            )
        if growth is None or len(layout.fabrics) > 1:
            continue
        if growth > plan.nodes_max:
            yield _warning(
                "fabric-full",
                f"fabric `{plan.name}` has ports for {plan.nodes_max:,} nodes, but "
                f"{growth:,} are expected",
                "add a switch layer or use larger switches before the nodes arrive",
                ("expects", "nodes"),
            )
        if plan.leaves == 1 and plan.oversubscription > 1 and growth > plan.nodes_per_leaf:
            yield _warning(
                "uplinks-bind-later",
                f"fabric `{plan.name}` has one leaf today; with the expected {growth:,} nodes, its "
                f"{plan.oversubscription:g}:1 uplinks limit jobs of more than "
                f"{plan.nodes_per_leaf:,} nodes",
                "plan non-blocking uplinks before you add a second leaf",
                path,
            )


def _teams(spec: FleetSpec) -> Iterator[Finding]:
    have: dict[str, int] = {}
    for pool in spec.pools:
        if pool.accelerator is not None:
            have[pool.accelerator] = have.get(pool.accelerator, 0) + pool.gpus
    granted: dict[str, int] = {}
    parents = {team.parent for team in spec.teams}
    for place, team in enumerate(spec.teams):
        for accelerator, gpus in team.quota_gpus.items():
            if team.id not in parents:
                granted[accelerator] = granted.get(accelerator, 0) + gpus
            if granted.get(accelerator, 0) > have.get(accelerator, 0):
                yield _warning(
                    "quota-over-fleet",
                    f"team quotas, including `{team.id}`, add up to {granted[accelerator]:,} "
                    f"{accelerator}; the fleet has {have.get(accelerator, 0):,}",
                    "lower `quota_gpus` so that the total fits the fleet",
                    ("team", place, "quota_gpus"),
                )


def _site_links(spec: FleetSpec) -> Iterator[Finding]:
    joined = [end for link in spec.links for end in (link.a, link.b)]
    for place, site in enumerate(spec.sites):
        if len(spec.sites) > 1 and site.id not in joined:
            yield _warning(
                "site-unlinked",
                f"site `{site.id}` has no link to another site",
                "add a `[[link]]` with `between`, `gbps` and `latency_ms`",
                ("site", place),
            )
