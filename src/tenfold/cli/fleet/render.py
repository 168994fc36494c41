"""Print the output of `tenfold fleet show` and `tenfold fleet domains`."""

from collections.abc import Sequence

from msgspec.structs import replace
from rich.columns import Columns
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.tree import Tree

from tenfold.cli.output import show, table
from tenfold.cli.screen import Text
from tenfold.compose.fleet import OpenFleet
from tenfold.model.fleet import hostlist
from tenfold.physics.blast import Blast
from tenfold.physics.path import pool_paths
from tenfold.physics.totals import FleetTotals, fleet_totals
from tenfold.report.charts.rack_map import COLOURS, RackView, rack_views
from tenfold.report.figures import (
    count,
    delay_us,
    dollars,
    pflops,
    power_kw,
    quantity_bytes,
    rate_bytes,
    share,
)

CELLS_MAX = 8
RELATIONS = {
    "same-scale-up": "same scale-up domain",
    "same-node": "same node",
    "same-leaf": "same leaf",
    "other-leaf": "other leaf",
    "other-pod": "other pod",
    "other-site": "site",
}
"""Where the other GPU is, in words; JSON has the ids."""


def fleet_json(fleet: OpenFleet) -> dict[str, object]:
    """Return the JSON of `fleet show`: the description, totals and GPU-to-GPU paths."""
    return {
        "fleet": fleet.spec,
        "totals": fleet_totals(fleet.layout, fleet.catalogue),
        "paths": {
            pool.id: [
                {
                    "relation": path.relation,
                    "bytes_per_s": path.bytes_per_s,
                    "latency_us": path.latency_us,
                    "site": path.site,
                    "legs": path.legs,
                }
                for path in pool_paths(fleet.layout, pool, fleet.catalogue)
            ]
            for pool in fleet.spec.pools
        },
    }


def show_fleet(fleet: OpenFleet, racks: int) -> None:
    """Print the tree, the rack map, GPU-to-GPU paths and totals."""
    totals = fleet_totals(fleet.layout, fleet.catalogue)
    show(_tree(fleet, totals), "")
    views = rack_views(fleet.layout, racks)
    hidden = totals.racks - len(views)
    show(Columns([_rack(fleet, view) for view in views], padding=(0, 2)))
    if hidden > 0:
        more = "1 more rack" if hidden == 1 else f"{hidden:,} more racks"
        show(Text(f"... and {more} (show more with --racks)", style="dim"))
    paths = _paths(fleet)
    if paths.row_count:
        show("", paths)
    show("", _totals_table(totals))
    show("")
    for pool in fleet.spec.pools:
        if pool.defaulted:
            keys = ", ".join(pool.defaulted)
            show(Text(f"assumed for pool {pool.id}: {keys}", style="dim"))


def _tree(fleet: OpenFleet, totals: FleetTotals) -> Tree:
    spec = fleet.spec
    tree = Tree(Text(f"{spec.name}: {count(spec.gpus, 'GPU')} on {count(spec.nodes, 'node')}"))
    for site in spec.sites:
        label = " ".join(part for part in (site.id, site.region) if part)
        tags = [*site.residency, *site.certifications]
        tagged = f" ({', '.join(tags)})" if tags else ""
        branch = tree.add(Text(f"site {label}{tagged}"))
        for place, (pool, pool_totals) in enumerate(zip(spec.pools, totals.pools, strict=True)):
            if pool.site != site.id:
                continue
            memory = f"{quantity_bytes(pool_totals.memory_bytes)} GPU memory, " if pool.gpus else ""
            nodes = (
                f"{count(pool.nodes, 'node')} of {pool.gpus_per_node} x {pool.accelerator}"
                if pool.accelerator
                else count(pool.nodes, "CPU-only node")
            )
            branch.add(
                Text.assemble(
                    (f"pool {pool.id}", COLOURS[place % len(COLOURS)]),
                    f": {nodes}, {memory}{power_kw(pool_totals.power_kw)}",
                )
            )
        for fabric in totals.fabrics:
            if any(one.id == fabric.fabric and one.site == site.id for one in spec.fabrics):
                # One GPU has nothing to exchange with.
                rate = fabric.bisection_bytes_per_s
                bisection = f", bisection {rate_bytes(rate)}" if rate else ""
                branch.add(
                    Text(
                        f"fabric {fabric.fabric}: {fabric.kind}, "
                        f"{count(fabric.leaves, 'leaf').replace('leafs', 'leaves')}{bisection}"
                    )
                )
        for tier in spec.tiers:
            if tier.site == site.id:
                branch.add(
                    Text(
                        f"tier {tier.id}: {tier.role}, {tier.capacity / 1e12:,.0f} TB, "
                        f"read {rate_bytes(tier.read_bandwidth)}, {tier.streams:,} streams"
                    )
                )
    for link in spec.links:
        tree.add(Text(f"link {link.a} - {link.b}: {rate_bytes(link.bandwidth)}"))
    return tree


def _rack(fleet: OpenFleet, view: RackView) -> Panel:
    lines: list[Text] = []
    for pool, gpus in view.cells[:CELLS_MAX]:
        blocks = "#" * min(gpus, 8) + ("+" if gpus > 8 else "") if gpus else "cpu"
        lines.append(Text(blocks.ljust(8), style=COLOURS[pool % len(COLOURS)]))
    if len(view.cells) > CELLS_MAX:
        lines.append(Text(f"+{len(view.cells) - CELLS_MAX} more", style="dim"))
    over = view.power_kw > view.power_kw_limit
    power = Text(
        f"{view.power_kw:.1f}/{view.power_kw_limit:g} kW", style="bold red" if over else "dim"
    )
    return Panel(Group(*lines, power), title=view.name, title_align="left", expand=False)


def _paths(fleet: OpenFleet) -> Table:
    rows = [
        [
            pool.id,
            f"{RELATIONS.get(path.relation, path.relation)} {path.site}".rstrip(),
            rate_bytes(path.bytes_per_s),
            delay_us(path.latency_us),
        ]
        for pool in fleet.spec.pools
        if pool.gpus_per_node
        for path in pool_paths(fleet.layout, pool, fleet.catalogue)
    ]
    return table("", ["pool", "GPU to GPU", ">bandwidth", ">latency"], rows)


def _totals_table(totals: FleetTotals) -> Table:
    several = len(totals.fabrics) > 1
    bisection = [
        [
            f"bisection {one.fabric}" if several else "bisection",
            rate_bytes(one.bisection_bytes_per_s),
        ]
        for one in totals.fabrics
        if one.bisection_bytes_per_s
    ]
    money = [("capacity", totals.usd_micros_per_hour)]
    money.append(("energy", totals.energy_usd_micros_per_hour))
    money.append(("storage", totals.storage_usd_micros_per_hour))
    parts = ", ".join(f"{name} {dollars(micros)}" for name, micros in money if micros)
    bases = [f"{pool.pool}: {pool.price_basis}" for pool in totals.pools if pool.price_basis]
    hourly = (
        f"{dollars(sum(micros for _, micros in money))} ({parts})" if parts else "no prices known"
    )
    rows = [
        [
            "GPUs",
            f"{totals.gpus:,} on {count(totals.nodes, 'node')} in {count(totals.racks, 'rack')}",
        ],
        ["16-bit, dense", pflops(totals.pflops)],
        ["GPU memory", quantity_bytes(totals.memory_bytes)],
        *bisection,
        ["power", f"{power_kw(totals.power_kw)}, {power_kw(totals.facility_kw)} with PUE"],
        ["cost per hour", hourly],
    ]
    if bases:
        rows.append(["price basis", ", ".join(bases)])
    if totals.unpriced:
        rows.append(["pools without a price", ", ".join(totals.unpriced)])
    return table("", ["total", ""], rows)


def _merge_equal_rows(rows: Sequence[Blast]) -> list[Blast]:
    """Merge consecutively numbered domains with the same effect into one row."""
    folded: list[tuple[Blast, list[str]]] = []
    for row in rows:
        last, names = folded[-1] if folded else (None, [])
        same = last is not None and replace(row, name=last.name, count=last.count) == last
        if same and row.name.rstrip("0123456789") == names[-1].rstrip("0123456789"):
            names.append(row.name)
        else:
            folded.append((row, [row.name]))
    return [
        replace(row, name=hostlist.fold(names), count=row.count * len(names))
        if len(names) > 1
        else row
        for row, names in folded
    ]


def domains_table(rows: Sequence[Blast], most: int) -> Group:
    """Return the blast radius as a table, with at most `most` rows of each kind."""
    printed: dict[str, int] = {}
    lines: list[list[str]] = []
    for row in _merge_equal_rows(rows):
        printed[row.kind] = printed.get(row.kind, 0) + 1
        if printed[row.kind] > most:
            continue
        effect = ", ".join(row.tiers)
        if row.tiers and row.tier_share_lost < 1:
            effect = f"{share(row.tier_share_lost)} of {effect}"
        if row.network_share_lost:
            effect = f"{share(row.network_share_lost)} of the fabric"
        lines.append(
            [
                row.kind,
                row.name,
                f"{row.count:,}",
                f"{row.nodes:,}",
                f"{row.gpus:,}",
                share(row.gpu_share),
                f"{row.pflops:,.1f}",
                f"{row.gang_gpus_left:,}",
                effect,
            ]
        )
    columns = [
        "kind",
        "domain",
        ">count",
        ">nodes",
        ">GPUs",
        ">share",
        ">PFLOP/s",
        ">max job",
        "also lost",
    ]
    grid = table("", columns, lines)
    hidden = sum(number - most for number in printed.values() if number > most)
    if not hidden:
        return Group(grid)
    return Group(grid, Text(f"... {count(hidden, 'row')} not shown (see --most)", style="dim"))
