"""What a fleet file means: defaults, layout, sums, losses and ways."""

from pathlib import Path

import pytest

from tenfold.compose.fleet import OpenFleet, check_fleet, load_fleet, open_fleet
from tenfold.model.units import GIB
from tenfold.physics.blast import Blast, blast_radius
from tenfold.physics.path import pool_paths
from tenfold.physics.totals import fleet_totals

SMALLEST = '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 4\ngpus_per_node = 8\n'


@pytest.fixture
def fleet(tmp_path: Path):
    def build(text: str, suffix: str = ".toml") -> OpenFleet:
        path = tmp_path / f"fleet{suffix}"
        path.write_text(text)
        return open_fleet(path)

    return build


def losses(opened: OpenFleet, kind: str) -> list[Blast]:
    return [row for row in blast_radius(opened.layout, opened.catalogue) if row.kind == kind]


def test_five_lines_are_a_fleet(fleet):
    spec = fleet(SMALLEST).spec
    [pool] = spec.pools
    assert (spec.nodes, spec.gpus) == (4, 32)
    assert pool.accelerator == "H100-80G-SXM"
    assert pool.node_names == "h100-[1-4]"
    assert pool.shape == "DGX-H100"
    assert pool.scaleup_gpus == 8
    assert pool.memory_bytes_per_node == 2048 * GIB
    assert "memory_gib_per_node" in pool.defaulted


def test_toml_and_yaml_mean_the_same(fleet):
    yaml = "pool:\n  - {name: h100, accelerator: H100, nodes: 4, gpus_per_node: 8}\n"
    assert fleet(SMALLEST).spec == fleet(yaml, ".yaml").spec


def test_listed_nodes_and_a_host_list_mean_the_same(fleet):
    head = '[[pool]]\nname = "a"\naccelerator = "H100"\ngpus_per_node = 8\n'
    listed = head + "".join(f'\n[[node]]\nname = "n{i}"\npool = "a"\n' for i in range(1, 5))
    folded = head + 'node_names = "n[1-4]"\n'
    assert fleet(listed).spec == fleet(folded).spec


def test_the_sums_of_a_rack_are_those_of_its_parts(fleet):
    opened = fleet(SMALLEST)
    totals = fleet_totals(opened.layout, opened.catalogue)
    assert totals.pflops == pytest.approx(32 * 0.989)
    assert totals.memory_bytes == 32 * 80 * GIB
    assert totals.power_kw == pytest.approx(4 * 10.2)
    [fabric] = totals.fabrics
    assert fabric.bisection_bytes_per_s == 2 * 8 * 50e9


def test_owned_nodes_cost_their_capital_and_their_energy(fleet):
    price = 'price = { kind = "owned", capex_usd_per_node = 350_400, lifetime_years = 4 }\n'
    site = '[[site]]\nname = "main"\npue = 1.5\nusd_per_kwh = 0.2\n\n'
    opened = fleet(site + SMALLEST + price)
    totals = fleet_totals(opened.layout, opened.catalogue)
    assert totals.usd_micros_per_hour == 4 * 10_000_000
    assert totals.energy_usd_micros_per_hour == round(4 * 10.2 * 1.5 * 0.2 * 1e6)


def test_a_stated_price_and_a_provider_are_kept(fleet):
    stated = fleet(SMALLEST + 'price = { kind = "reserved", usd_per_gpu_hour = 1.5 }\n').spec
    assert stated.pools[0].price.usd_micros_per_hour == 1_500_000
    lent = fleet(SMALLEST + 'price = { kind = "on-demand", provider = "lambda" }\n').spec
    assert lent.pools[0].price.basis == "lambda/H100-80G-SXM/on-demand"
    assert lent.pools[0].price.usd_micros_per_hour == 4_090_000


def test_an_nvl72_rack_is_one_scale_up_domain(fleet):
    text = '[[pool]]\nname = "nvl"\naccelerator = "GB200"\nnodes = 36\ngpus_per_node = 4\n'
    opened = fleet(text)
    assert opened.spec.pools[0].scaleup_gpus == 72
    assert [len(rack.cells) for rack in _views(opened)] == [18, 18]
    assert opened.spec.sites[0].rack_kw_limit >= 120


def _views(opened: OpenFleet):
    from tenfold.report.charts.rack_map import rack_views  # noqa: PLC0415

    return rack_views(opened.layout, 10)


def test_a_cpu_pool_has_no_gpus_and_a_cxl_tier_is_memory(fleet):
    text = SMALLEST + (
        '\n[[pool]]\nname = "prep"\nnodes = 3\ngpus_per_node = 0\ncpus_per_node = 96\n'
        '\n[[tier]]\nname = "pool-memory"\nclass = "cxl-memory"\n'
    )
    spec = fleet(text).spec
    assert spec.gpus == 32
    assert (spec.pools[1].accelerator, spec.pools[1].cpus_per_node) == (None, 96)
    assert spec.tiers[0].role == "memory"


DOMAINS = """
[[site]]
name = "main"
racks_per_pdu = 2

[[pool]]
name = "a"
accelerator = "H100"
nodes = 8
gpus_per_node = 8
nodes_per_rack = 2

[[fabric]]
name = "ib"
nodes_per_leaf = 4
spines = 2

[[domain]]
name = "zone-1"
kind = "cooling-zone"
members = ["a-rack-1", "r-9"]

[[rack]]
name = "r-9"
nodes = "a-[7-8]"
hall = "north"

[[tier]]
name = "scratch"
class = "hot"
shelves = 4
"""


def test_each_domain_takes_down_what_depends_on_it(fleet):
    opened = fleet(DOMAINS)
    racks = {row.name: row.nodes for row in losses(opened, "rack")}
    assert racks == {"r-9": 2, "a-rack-1": 2, "a-rack-2": 2, "a-rack-3": 2}
    assert [row.gpus for row in losses(opened, "leaf")] == [32, 32]
    assert [row.gang_gpus_left for row in losses(opened, "leaf")] == [32, 32]
    [zone] = losses(opened, "cooling-zone")
    assert (zone.nodes, zone.gpu_share) == (4, 0.5)
    assert [row.nodes for row in losses(opened, "pdu")] == [4, 4]
    assert [row.name for row in losses(opened, "hall")] == ["north"]
    [spine] = losses(opened, "spine")
    assert (spine.count, spine.nodes, spine.network_share_lost) == (2, 0, 0.5)
    assert spine.gang_gpus_left == 64
    [shelf] = losses(opened, "shelf")
    assert (shelf.count, shelf.tier_share_lost, shelf.tiers) == (4, 0.25, ("scratch",))
    [site] = losses(opened, "site")
    assert (site.gpus, site.gang_gpus_left, site.tiers) == (64, 0, ("scratch",))


def test_a_rail_switch_takes_bandwidth_and_no_node(fleet):
    opened = fleet(SMALLEST.replace("nodes = 4", "nodes = 32") + RAILS)
    for row in losses(opened, "leaf"):
        assert (row.nodes, row.count) == (0, 8)
        assert row.network_share_lost == pytest.approx(1 / 8 / 2)


RAILS = '\n[[fabric]]\nname = "rails"\nkind = "rail-optimised"\nnodes_per_leaf = 16\n'


def test_a_stated_leaf_holds_its_racks_and_the_rest_is_filled(fleet):
    text = DOMAINS + '\n[[domain]]\nname = "leaf-x"\nkind = "leaf"\nmembers = ["r-9"]\n'
    rows = {row.name: row.nodes for row in losses(fleet(text), "leaf")}
    assert rows == {"leaf-x": 2, "ib-leaf-1": 4, "ib-leaf-2": 2}


def test_a_dense_node_is_a_large_failure_domain(fleet):
    thin = fleet(SMALLEST.replace("nodes = 4", "nodes = 16").replace("_node = 8", "_node = 2"))
    fat = fleet(SMALLEST)
    assert losses(fat, "node")[0].gpu_share == 4 * losses(thin, "node")[0].gpu_share


def test_gpudirect_lowers_latency(fleet):
    def way(text: str):
        opened = fleet(SMALLEST + text)
        paths = pool_paths(opened.layout, opened.spec.pools[0], opened.catalogue)
        return next(path for path in paths if path.relation == "same-leaf")

    direct, bounced = way("gpudirect = true\n"), way("gpudirect = false\n")
    assert bounced.latency_us > direct.latency_us + 5
    assert bounced.bytes_per_s < direct.bytes_per_s == 50e9


def test_a_slow_link_between_sites_is_the_bottleneck(fleet):
    text = (
        '[[site]]\nname = "oslo"\n[[site]]\nname = "bergen"\n'
        '[[link]]\nbetween = ["oslo", "bergen"]\ngbps = 10\nlatency_ms = 7\n'
        + SMALLEST
        + 'site = "oslo"\n'
    )
    opened = fleet(text)
    far = pool_paths(opened.layout, opened.spec.pools[0], opened.catalogue)[-1]
    assert (far.relation, far.bytes_per_s) == ("other-site", 1.25e9)
    assert far.latency_us > 7000


def test_a_good_fleet_of_a_thousand_nodes_has_no_findings(tmp_path: Path):
    path = tmp_path / "fleet.toml"
    path.write_text(
        '[[site]]\nname = "main"\nrack_kw = 45\nracks_per_pdu = 8\n\n'
        '[[fabric]]\nname = "ib"\nnodes_per_leaf = 4\n\n'
        '[[pool]]\nname = "a"\naccelerator = "H100"\nnodes = 1000\ngpus_per_node = 8\n'
    )
    check = check_fleet(path)
    assert (check.faults, check.warnings) == ((), ())


def test_a_warning_can_be_ignored_and_a_threshold_moved(tmp_path: Path):
    path = tmp_path / "fleet.toml"
    path.write_text(SMALLEST + "memory_gib_per_node = 128\n")
    assert [found.code for found in check_fleet(path).warnings] == ["host-memory-small"]
    path.write_text('[lint]\nignore = ["host-memory-small"]\n' + path.read_text())
    assert check_fleet(path).warnings == ()
    path.write_text("[lint]\nhost_memory_gib = 96\n" + SMALLEST + "memory_gib_per_node = 128\n")
    assert check_fleet(path).warnings == ()


def test_loading_raises_with_all_errors(tmp_path: Path):
    from tenfold.model.errors import InvalidFile  # noqa: PLC0415

    path = tmp_path / "fleet.toml"
    path.write_text('[[pool]]\nname = "a"\nnodes = -1\ncolour = "red"\n')
    with pytest.raises(InvalidFile) as caught:
        load_fleet(path)
    assert len(caught.value.findings) == 3
