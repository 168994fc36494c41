"""Check sites, their fabrics, racks and tiers, and the links between sites."""

from collections.abc import Mapping
from typing import cast

from tenfold.files.fleet.checks.names import References, require_fact
from tenfold.files.fleet.rows import FleetRows
from tenfold.model.facts.catalogue import Catalogue


def check_sites(rows: FleetRows, refs: References, catalogue: Catalogue) -> None:
    """Add a finding for each unknown or missing site, cooling, link or tier class."""
    for position, site in rows.site.items():
        if site.cooling is not None:
            require_fact(catalogue.cooling, site.cooling, ("site", position, "cooling"), refs)
    for position, fabric in rows.fabric.items():
        if fabric.link is not None:
            require_fact(catalogue.links, fabric.link, ("fabric", position, "link"), refs)
    for position, tier in rows.tier.items():
        require_fact(catalogue.tiers, tier.tier_class, ("tier", position, "class"), refs)
    for table in ("fabric", "rack", "tier"):
        _check_site_of(table, getattr(rows, table), refs)
    _check_links(rows, refs)
    for position, data in rows.data.items():
        for place, name in enumerate(data.sites):
            refs.require_site(name, ("data", position, "sites", place))


def _check_site_of(table: str, placed: Mapping[int, object], refs: References) -> None:
    several_sites = len(refs.names["site"]) > 1
    for position, row in placed.items():
        site = cast(str | None, getattr(row, "site", None))
        refs.require_site(site, (table, position, "site"))
        # The site of a rack is that of its nodes.
        if several_sites and site is None and table != "rack":
            refs.add(
                "which-site",
                f"{table} `{getattr(row, 'name', '')}` needs a `site`: the file declares several",
                f'add `site = "{refs.names["site"][0]}"` or another site',
                (table, position),
            )


def _check_links(rows: FleetRows, refs: References) -> None:
    linked: dict[tuple[str, ...], int] = {}
    for position, link in rows.link.items():
        for end, site in enumerate(link.between):
            refs.require("site", site, ("link", position, "between", end))
        ends = tuple(sorted(link.between))
        if ends[0] == ends[1]:
            refs.add(
                "link-to-itself",
                f"link connects site `{ends[0]}` to itself",
                "name two different sites in `between`",
                ("link", position, "between"),
            )
        elif ends in linked:
            refs.add(
                "duplicate-link",
                f"sites `{ends[0]}` and `{ends[1]}` have two links",
                "combine them into one link with the total bandwidth",
                ("link", position),
            )
        linked.setdefault(ends, position)
