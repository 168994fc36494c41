"""The blast radius of each failure domain: what its loss takes down.

Nodes in a lost domain are down; a lost spine or rail switch only reduces network
bandwidth, and a lost shelf only a tier. `gang_gpus_left` is the largest set of GPUs that
can still communicate: the largest gang that can still start.
"""

from collections.abc import Iterator
from typing import get_args

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.spec import DomainKind
from tenfold.physics.fabric import Floats, Ints
from tenfold.physics.layout import Layout

KINDS: tuple[DomainKind, ...] = get_args(DomainKind)


class Blast(Struct, frozen=True, kw_only=True):
    """One domain (or `count` identical ones) and what its loss takes down."""

    kind: DomainKind
    name: str
    count: int = 1
    nodes: int = 0
    gpus: int = 0
    gpu_share: float = 0.0
    pflops: float = 0.0
    power_kw: float = 0.0
    racks: int = 0
    gang_gpus_left: int = 0
    network_share_lost: float = 0.0
    """Share of the cross-leaf bandwidth of its fabric that is lost."""
    tiers: tuple[str, ...] = ()
    tier_share_lost: float = 0.0


def blast_radius(layout: Layout, catalogue: Catalogue) -> list[Blast]:
    """Return every domain of a fleet, by kind and then in the order of the file."""
    return _rows(_Radius(layout, catalogue))


def _rows(radius: "_Radius") -> list[Blast]:
    rows = [
        *radius.singles(),
        *radius.racks(),
        *radius.leaves(),
        *radius.stated("pdu"),
        *radius.stated("cooling-zone"),
        *radius.spines(),
        *radius.halls(),
        *radius.sites(),
        *radius.shelves(),
    ]
    return sorted(rows, key=lambda row: KINDS.index(row.kind))


def domain_members(layout: Layout, catalogue: Catalogue) -> dict[tuple[DomainKind, str], Ints]:
    """Return the numbers of the nodes that each domain of `blast_radius` takes down.

    A row for any node of a pool has all of them, since it may be any.
    """
    radius = _Radius(layout, catalogue)
    found: dict[tuple[DomainKind, str], Ints] = {}
    for row in _rows(radius):
        lost = radius.lost.get((row.kind, row.name))
        if lost is not None:
            found[row.kind, row.name] = lost
    for place, pool in enumerate(layout.spec.pools):
        start, end = layout.pool_start[place], layout.pool_start[place + 1]
        found["node", f"any node of {pool.id}"] = np.arange(start, end)
    return found


class _Radius:
    """The per-node figures that every row is summed from."""

    def __init__(self, layout: Layout, catalogue: Catalogue) -> None:
        self.layout = layout
        self.lost: dict[tuple[DomainKind, str], Ints] = {}
        """The nodes that each row takes down."""
        pools = layout.spec.pools
        parts = [catalogue.accelerators.find(pool.accelerator or "") for pool in pools]
        tflops = [part.training_tflops if part else 0.0 for part in parts]
        self.gpus = layout.per_node([float(pool.gpus_per_node) for pool in pools])
        self.pflops = self.gpus * layout.per_node(tflops) / 1000
        self.power_kw = layout.per_node([pool.power_w_per_node / 1000 for pool in pools])
        self.gpus_total = max(1.0, float(self.gpus.sum()))
        self.per_fabric = self._by(layout.fabric_of, len(layout.fabrics))

    def _by(self, group_of: Ints, groups: int) -> Floats:
        """Sum GPUs by group; nodes in no group (-1) are left out."""
        known = group_of >= 0
        sums = np.bincount(group_of[known], weights=self.gpus[known], minlength=groups)
        return sums.astype(np.float64)

    def row(self, kind: DomainKind, name: str, lost: Ints, tiers: tuple[str, ...] = ()) -> Blast:
        """Return what the loss of these nodes takes down."""
        self.lost[kind, name] = lost
        gone = np.bincount(
            self.layout.fabric_of[lost][self.layout.fabric_of[lost] >= 0],
            weights=self.gpus[lost][self.layout.fabric_of[lost] >= 0],
            minlength=len(self.per_fabric),
        )
        gpus = float(self.gpus[lost].sum())
        return Blast(
            kind=kind,
            name=name,
            nodes=len(lost),
            gpus=round(gpus),
            gpu_share=gpus / self.gpus_total,
            pflops=float(self.pflops[lost].sum()),
            power_kw=float(self.power_kw[lost].sum()),
            racks=len(np.unique(self.layout.rack_of[lost])),
            gang_gpus_left=round(float((self.per_fabric - gone).max(initial=0.0))),
            tiers=tiers,
            tier_share_lost=1.0 if tiers else 0.0,
        )

    def singles(self) -> Iterator[Blast]:
        """Yield one GPU and one node of each pool, representing all of them."""
        for place, pool in enumerate(self.layout.spec.pools):
            node = np.asarray([self.layout.pool_start[place]])
            whole = self.row("node", f"any node of {pool.id}", node)
            if pool.gpus_per_node:
                yield Blast(
                    kind="gpu",
                    name=f"any gpu of {pool.id}",
                    count=pool.gpus,
                    gpus=1,
                    gpu_share=1 / self.gpus_total,
                    pflops=whole.pflops / pool.gpus_per_node,
                    gang_gpus_left=max(
                        whole.gang_gpus_left,
                        round(float(self.per_fabric.max(initial=0.0))) - 1,
                    ),
                )
            yield replace(whole, count=pool.nodes)

    def racks(self) -> Iterator[Blast]:
        yield from self._grouped("rack", self.layout.rack_of, [r.name for r in self.layout.racks])

    def leaves(self) -> Iterator[Blast]:
        """A leaf takes its nodes; a rail switch only one NIC of each node in its group."""
        for row, place in zip(
            self._grouped("leaf", self.layout.leaf_of, [leaf.name for leaf in self.layout.leaves]),
            self.layout.leaves,
            strict=True,
        ):
            plan = self.layout.fabrics[place.fabric]
            if plan.kind != "rail-optimised" or plan.rails < 2:
                yield row
                continue
            yield Blast(
                kind="leaf",
                name=f"any rail switch of {row.name}",
                count=plan.rails,
                gang_gpus_left=round(float(self.per_fabric.max(initial=0.0))),
                network_share_lost=1 / plan.rails / plan.leaves,
            )

    def _grouped(self, kind: DomainKind, group_of: Ints, names: list[str]) -> Iterator[Blast]:
        order = np.argsort(group_of, kind="stable")
        bounds = np.searchsorted(group_of[order], np.arange(len(names) + 1))
        for place, name in enumerate(names):
            yield self.row(kind, name, order[bounds[place] : bounds[place + 1]])

    def stated(self, kind: DomainKind) -> Iterator[Blast]:
        """Domains of the file, then those that a site makes from its racks in order."""
        spec = self.layout.spec
        for domain in spec.domains:
            if domain.kind == kind:
                tiers = tuple(tier.id for tier in spec.tiers if tier.id in domain.members)
                yield self.row(kind, domain.id, self.layout.members(domain), tiers)
        for place, site in enumerate(spec.sites):
            size = site.racks_per_pdu if kind == "pdu" else site.racks_per_cooling_zone
            if size is None or kind not in ("pdu", "cooling-zone"):
                continue
            racks = [n for n, rack in enumerate(self.layout.racks) if rack.site == place]
            for number, start in enumerate(range(0, len(racks), size)):
                lost = np.flatnonzero(np.isin(self.layout.rack_of, racks[start : start + size]))
                yield self.row(kind, f"{site.id}-{kind}-{number + 1}", lost)

    def spines(self) -> Iterator[Blast]:
        yield from self.stated("spine")
        per_leaf = self._by(self.layout.leaf_of, len(self.layout.leaves))
        for plan in self.layout.fabrics:
            if plan.spines == 0:
                continue
            alone = plan.spines == 1
            fabric_wide = float(self.per_fabric.max(initial=0.0))
            yield Blast(
                kind="spine",
                name=f"any spine of {plan.name}",
                count=plan.spines * plan.pods,
                network_share_lost=1 / plan.spines / plan.pods,
                gang_gpus_left=round(float(per_leaf.max(initial=0.0)) if alone else fabric_wide),
            )

    def halls(self) -> Iterator[Blast]:
        yield from self.stated("hall")
        halls = dict.fromkeys(rack.hall for rack in self.layout.racks if rack.hall)
        for hall in halls:
            racks = [n for n, rack in enumerate(self.layout.racks) if rack.hall == hall]
            yield self.row("hall", hall, np.flatnonzero(np.isin(self.layout.rack_of, racks)))

    def sites(self) -> Iterator[Blast]:
        spec = self.layout.spec
        names = [site.id for site in spec.sites]
        site_of = np.asarray([names.index(pool.site) for pool in spec.pools])[self.layout.pool_of]
        for place, site in enumerate(spec.sites):
            tiers = tuple(tier.id for tier in spec.tiers if tier.site == site.id)
            yield self.row("site", site.id, np.flatnonzero(site_of == place), tiers)

    def shelves(self) -> Iterator[Blast]:
        yield from self.stated("shelf")
        for tier in self.layout.spec.tiers:
            yield Blast(
                kind="shelf",
                name=f"any shelf of {tier.id}",
                count=tier.shelves,
                gang_gpus_left=round(float(self.per_fabric.max(initial=0.0))),
                tiers=(tier.id,),
                tier_share_lost=1 / tier.shelves,
            )
