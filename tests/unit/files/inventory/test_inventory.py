"""From an inventory to a fleet file: pools, racks, names and notes."""

from pathlib import Path

import pytest

from tenfold.compose.fleet import load_facts
from tenfold.files.fleet.read import load_fleet, read_fleet
from tenfold.files.fleet.write import render_fleet_toml
from tenfold.files.inventory.inventory import FleetDraft, pools_from
from tenfold.model.errors import InputError
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.inventory import Inventory, InventoryNode
from tenfold.model.fleet.spec import FleetSpec

CATALOGUE = load_facts()


def node(name: str, accelerator: str | None = "h100", gpus: int = 8, **more: object):
    fields: dict[str, object] = {"cpus": 64, "memory_gib": 1024.0, **more}
    return InventoryNode(name=name, accelerator=accelerator, gpus=gpus, **fields)  # pyright: ignore[reportArgumentType]


def draft(*nodes: InventoryNode, **options: bool) -> FleetDraft:
    inventory = Inventory(source="test", name="alpha", nodes=nodes)
    return pools_from(inventory, CATALOGUE, **options)  # pyright: ignore[reportArgumentType]


def loaded(made: FleetDraft, folder: Path, *, unknown: bool = False) -> FleetSpec:
    path = folder / "fleet.toml"
    path.write_text(render_fleet_toml(made.rows, made.notes))
    return load_fleet(path, CATALOGUE, unknown_accelerators=unknown)


def names(made: FleetDraft) -> list[tuple[str, str | None]]:
    return [(row.name, row.node_names) for row in made.rows.pool.values()]


def test_identical_nodes_are_one_pool_with_a_folded_host_list():
    made = draft(*(node(f"n{number}") for number in (10, 2, 1, 3)), node("c1", None, 0))
    assert names(made) == [("h100", "n[1-3,10]"), ("cpu", "c1")]
    [gpu, cpu] = made.rows.pool.values()
    assert gpu.accelerator == "H100-80G-SXM"
    assert (cpu.accelerator, cpu.gpus_per_node) == (None, 0)
    assert made.notes == ()


def test_order_of_nodes_does_not_matter():
    nodes = [node("n1"), node("n2", memory_gib=512.0), node("c1", None, 0), node("n3")]
    assert draft(*nodes) == draft(*nodes[::-1])


def test_memory_is_compared_in_whole_gib():
    made = draft(node("n1", memory_gib=1007.6), node("n2", memory_gib=1008.4))
    assert names(made) == [("h100", "n[1-2]")]
    assert made.rows.pool[0].memory_gib_per_node == 1008


def test_unknown_memory_is_left_to_the_defaults():
    assert draft(node("n1", memory_gib=0.0)).rows.pool[0].memory_gib_per_node is None


def test_labels_that_decide_where_work_runs_keep_pools_apart():
    made = draft(
        node("n1", labels={"taints": "gpu", "serial": "a"}),
        node("n2", labels={"taints": "gpu", "serial": "b"}),
        node("n3", labels={"taints": "debug", "serial": "c"}),
    )
    assert names(made) == [("h100-1", "n3"), ("h100-2", "n[1-2]")]
    assert made.rows.pool[1].labels == {"taints": "gpu"}
    assert made.rows.pool[0].labels == {"taints": "debug", "serial": "c"}


def test_partitions_and_features_do_not_split_a_pool():
    made = draft(
        node("n1", labels={"partitions": "gpu,debug", "features": "ib,rack1"}),
        node("n2", labels={"partitions": "gpu", "features": "ib,rack1"}),
        node("n3", labels={"partitions": "gpu", "features": "ib,rack2"}),
    )
    assert names(made) == [("h100", "n[1-3]")]
    assert made.rows.pool[0].labels == {"features": "ib", "partitions": "gpu"}
    assert made.notes == (
        "only some nodes of pool `h100` have partitions `debug`: left out",
        "only some nodes of pool `h100` have features `rack1`, `rack2`: left out",
    )


def test_sites_name_the_pools_that_share_a_name(tmp_path: Path):
    made = draft(
        node("a1", site="eu", rack="r1", labels={"region": "europe"}),
        node("b1", site="us", rack="r1"),
        node("c1", None, 0, site="us", rack="r2"),
    )
    assert [row.name for row in made.rows.pool.values()] == ["h100-eu", "h100-us", "cpu"]
    assert [(row.name, row.region) for row in made.rows.site.values()] == [
        ("eu", "europe"),
        ("us", ""),
    ]
    spec = loaded(made, tmp_path)
    assert [(rack.id, rack.site, rack.nodes) for rack in spec.racks] == [
        ("eu-r1", "eu", "a1"),
        ("us-r1", "us", "b1"),
        ("r2", "us", "c1"),
    ]


def test_unusable_nodes_are_skipped_and_counted():
    made = draft(
        node("n1"),
        *(node(f"n{number}", usable=False, why_unusable="drain: fan") for number in (2, 3)),
    )
    assert names(made) == [("h100", "n1")]
    assert made.notes == (
        "skipped 2 of 3 nodes as unusable",
        "skipped: n[2-3] (drain: fan)",
    )


def test_unusable_nodes_are_kept_on_request():
    made = draft(node("n1", usable=False, why_unusable="down"), keep_unusable=True)
    assert names(made) == [("h100", "n1")]


def test_a_cluster_without_usable_nodes_is_rejected():
    with pytest.raises(InputError, match="none of the 1 nodes in `test` is usable: `n1` is down"):
        draft(node("n1", usable=False, why_unusable="down"))


def test_an_unknown_accelerator_keeps_its_spelling_and_is_noted(tmp_path: Path):
    made = draft(node("n1", "Frobnicator-9000"))
    assert made.rows.pool[0].accelerator == "Frobnicator-9000"
    assert made.rows.pool[0].name == "frobnicator-9000"
    assert "`Frobnicator-9000`" in made.notes[0]
    assert loaded(made, tmp_path, unknown=True).pools[0].accelerator == "Frobnicator-9000"
    reading = read_fleet(tmp_path / "fleet.toml", CATALOGUE)
    assert [found.code for found in reading.findings] == ["unknown-accelerator"]


def test_gpus_without_a_type_take_it_from_a_feature_or_an_instance_type():
    made = draft(node("n1", None, labels={"features": "ib,a100"}))
    assert made.rows.pool[0].accelerator == "A100-80G-SXM"
    assert "from feature `a100`" in made.notes[0]
    labels = {"node.kubernetes.io/instance-type": "p5.48xlarge"}
    cloud = draft(node("n1", None, labels=labels)).rows.pool[0]
    assert (cloud.accelerator, cloud.shape) == ("H100-80G-SXM", "p5.48xlarge")


def test_gpus_that_nothing_names_are_noted():
    made = draft(node("n1", None))
    assert made.rows.pool[0].accelerator == "gpu"
    assert "without a type" in made.notes[0]


def test_vendor_words_before_a_name_are_looked_past():
    assert draft(node("n1", "nvidia-tesla-a100")).rows.pool[0].accelerator == "A100-80G-SXM"


def test_names_that_do_not_fold_become_tables_of_their_own(tmp_path: Path):
    irregular = [
        f"gke-pool-{number * 7919 % 9973:x}-{chr(97 + number % 26)}z" for number in range(60)
    ]
    made = draft(*(node(name, rack="r1") for name in irregular), node("n1", rack="r1"))
    assert made.rows.pool[0].node_names is None
    spec = loaded(made, tmp_path)
    assert sorted(hostlist.expand(spec.pools[0].node_names)) == sorted([*irregular, "n1"])
    assert sorted(hostlist.expand(spec.racks[0].nodes)) == sorted([*irregular, "n1"])


def test_a_long_rack_puts_the_nodes_of_every_pool_in_it_into_tables(tmp_path: Path):
    odd = [f"x{number * 7919 % 9973:x}y" for number in range(40)]
    nodes = [
        node(name, "h100" if place % 2 else "a100", rack="r1") for place, name in enumerate(odd)
    ]
    spec = loaded(draft(*nodes, node("z1", None, 0)), tmp_path)
    assert sorted(hostlist.expand(spec.racks[0].nodes)) == sorted(odd)
    assert spec.nodes == 41


def test_comments_cannot_break_out_of_their_line(tmp_path: Path):
    made = draft(node("n1"))
    text = render_fleet_toml(made.rows, ["bad\nname = 'x'\x00\x7f"])
    assert text.splitlines()[0] == "# bad name = 'x'  "
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    assert load_fleet(path, CATALOGUE).name == "alpha"


def test_texts_of_any_kind_survive_the_file(tmp_path: Path):
    odd = 'a "quoted" \\ text with \u20ac = signs'
    several = f"{odd}\n\x7f"
    made = draft(node("n1", labels={"odd key/with.dots": several}, rack=odd))
    spec = loaded(made, tmp_path)
    assert spec.pools[0].labels == {"odd key/with.dots": several}
    assert spec.racks[0].id == odd


@pytest.mark.parametrize("field", ["accelerator", "rack", "site"])
def test_a_name_with_control_characters_is_refused(field: str):
    with pytest.raises(InputError, match=f"control characters in `{field}`"):
        draft(node("n1", **{field: "a\x1fb"}))
