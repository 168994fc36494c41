"""Check that every name in a fleet file refers to something."""

from tenfold.files.core.document import Table
from tenfold.files.fleet.checks.names import References, require_fact
from tenfold.files.fleet.checks.sites import check_sites
from tenfold.files.fleet.checks.trees import check_domains, check_teams
from tenfold.files.fleet.nodes import check_nodes
from tenfold.files.fleet.rows import FleetRows, PoolRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.finding import Finding, Path
from tenfold.physics.limits import CODES


def check_references(
    rows: FleetRows,
    values: Table,
    catalogue: Catalogue,
    findings: list[Finding],
    unknown_accelerators: bool,
) -> None:
    """Add a finding for each duplicate name, unknown name and cycle."""
    refs = References(values, findings)
    if not isinstance(values.get("pool"), list) or not values["pool"]:
        refs.add(
            "empty-fleet",
            "the file declares no pool",
            "add `[[pool]]` with `name`, `accelerator`, `nodes` and `gpus_per_node`",
            (),
        )
    for position, pool in rows.pool.items():
        _check_pool(pool, ("pool", position), refs, catalogue, unknown_accelerators)
    check_sites(rows, refs, catalogue)
    check_nodes(rows, refs.names, findings)
    check_domains(rows, refs)
    check_teams(rows, refs, catalogue)
    for place, code in enumerate(rows.lint.ignore):
        if code not in CODES:
            refs.add(
                "unknown-warning",
                f"unknown warning `{code}`",
                f"valid warnings: {', '.join(CODES)}",
                ("lint", "ignore", place),
            )
    model = rows.expects.model
    if model is not None:
        require_fact(catalogue.models, model, ("expects", "model"), refs)


def _check_pool(
    pool: PoolRow, path: Path, refs: References, catalogue: Catalogue, unknown_accelerators: bool
) -> None:
    several_sites = len(refs.names["site"]) > 1
    if pool.site is None and several_sites:
        refs.add(
            "which-site",
            f"pool `{pool.name}` needs a `site`: the file declares several",
            f'add `site = "{refs.names["site"][0]}"` or another site',
            path,
        )
    refs.require_site(pool.site, (*path, "site"))
    refs.require("fabric", pool.fabric, (*path, "fabric"))
    if pool.accelerator is not None and not unknown_accelerators:
        require_fact(catalogue.accelerators, pool.accelerator, (*path, "accelerator"), refs)
    if pool.shape is not None:
        require_fact(catalogue.nodes, pool.shape, (*path, "shape"), refs)
    _check_pool_gpus(pool, path, refs, catalogue)
    _check_price(pool, path, refs, catalogue)


def _check_price(pool: PoolRow, path: Path, refs: References, catalogue: Catalogue) -> None:
    price = pool.price
    if price is None:
        return
    stated = (price.usd_per_gpu_hour, price.usd_per_node_hour, price.capex_usd_per_node)
    if any(figure is not None for figure in stated):
        return
    shape = None if pool.shape is None else catalogue.nodes.find(pool.shape)
    named = pool.accelerator or (shape.accelerator if shape else None)
    part = None if named is None else catalogue.accelerators.find(named)
    facts = [] if part is None else catalogue.prices_of(part.name, price.kind)
    known_providers = sorted(fact.provider for fact in facts)
    if price.provider is None or price.kind in ("owned", "reserved"):
        refs.add(
            "price-incomplete",
            f"pool `{pool.name}` has a price kind but no price",
            "add `usd_per_gpu_hour` or `capex_usd_per_node`; for on-demand and spot, a `provider` "
            "is enough",
            (*path, "price"),
        )
    elif price.provider not in known_providers:
        refs.add(
            "unknown-provider",
            f"no {price.kind} price from `{price.provider}` for `{named}`",
            f"known providers: {', '.join(known_providers) or 'none'}; or set `usd_per_gpu_hour`",
            (*path, "price", "provider"),
        )


def _check_pool_gpus(pool: PoolRow, path: Path, refs: References, catalogue: Catalogue) -> None:
    shape = None if pool.shape is None else catalogue.nodes.find(pool.shape)
    if pool.accelerator is None and shape is None:
        if pool.gpus_per_node != 0 and pool.shape is None:
            refs.add(
                "missing-accelerator",
                f"pool `{pool.name}` has neither `accelerator` nor `shape`",
                'add `accelerator = "H100"`, `shape = "dgx-h100"`, or `gpus_per_node = 0`',
                path,
            )
        return
    if pool.accelerator is not None and pool.gpus_per_node == 0:
        refs.add(
            "accelerator-without-gpus",
            f"pool `{pool.name}` names an accelerator but has no GPUs per node",
            "raise `gpus_per_node`, or remove `accelerator`",
            (*path, "gpus_per_node"),
        )
    if shape is None or pool.accelerator is None:
        return
    part = catalogue.accelerators.find(pool.accelerator)
    if part is not None and shape.accelerator != part.name:
        refs.add(
            "shape-mismatch",
            f"pool `{pool.name}` names `{part.name}`, but shape `{shape.name}` "
            f"has `{shape.accelerator or 'no accelerator'}`",
            "remove one of the two keys",
            (*path, "shape"),
        )
