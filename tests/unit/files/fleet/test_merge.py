"""Several fleets into one: what keeps its name, what changes it, and what is gained."""

from pathlib import Path

import pytest

from tenfold.cli.fleet.importing import Target, merge
from tenfold.compose.fleet import load_fleet
from tenfold.files.fleet.merge import CapacityView
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.spec import FleetSpec

SMALL = """
name = "{name}"
[[pool]]
name = "gpu"
accelerator = "{accelerator}"
nodes = {nodes}
gpus_per_node = 8
"""
WHOLE = """
name = "{name}"
[[site]]
name = "hall"
[[site]]
name = "{name}-annex"
[[link]]
between = ["hall", "{name}-annex"]
gbps = 100
latency_ms = 1
[[fabric]]
name = "ib"
site = "hall"
[[pool]]
name = "gpu"
site = "hall"
fabric = "ib"
accelerator = "H100"
gpus_per_node = 8
node_names = "{name}[1-4]"
[[pool]]
name = "cpu-{name}"
site = "{name}-annex"
gpus_per_node = 0
node_names = "{name}-c[1-2]"
[[rack]]
name = "r1"
nodes = "{name}[1-2]"
[[domain]]
name = "pdu-1"
kind = "pdu"
members = ["r1", "gpu"]
[[tier]]
name = "scratch"
class = "hot"
site = "hall"
[[data]]
name = "corpus"
gb = 10
sites = ["hall"]
[[team]]
name = "all"
[[team]]
name = "vision"
parent = "all"
quota_gpus = {{ H100 = 16 }}
"""


def write(folder: Path, text: str, **values: object) -> Path:
    path = folder / f"{values['name']}.toml"
    path.write_text(text.format(**values))
    return path


def merged(files: list[Path], folder: Path, **options: bool) -> tuple[FleetSpec, CapacityView]:
    out = folder / "merged.toml"
    result = merge(files, Target(name="one", out=out), **options)
    assert isinstance(result.summary, CapacityView)
    return load_fleet(out), result.summary


def test_two_small_fleets_keep_their_sites_and_pools_apart(tmp_path: Path):
    files = [
        write(tmp_path, SMALL, name="vision", accelerator="H100", nodes=4),
        write(tmp_path, SMALL, name="speech", accelerator="A100", nodes=2),
    ]
    spec, view = merged(files, tmp_path)
    assert spec.name == "one"
    assert [site.id for site in spec.sites] == ["vision", "speech"]
    assert [(pool.id, pool.site, pool.node_names) for pool in spec.pools] == [
        ("vision-gpu", "vision", "vision-gpu-[1-4]"),
        ("speech-gpu", "speech", "speech-gpu-[1-2]"),
    ]
    assert [one.gpus for one in view.before] == [32, 16]
    assert view.after.gpus_by_accelerator == {"A100-80G-SXM": 16, "H100-80G-SXM": 32}
    assert (view.after.nodes, view.after.gpus, view.after.sites) == (6, 48, 2)
    assert view.after.gang_gpus_max == 32, "pooling lays no cables"


def test_every_clashing_name_is_prefixed_wherever_it_is_used(tmp_path: Path):
    files = [write(tmp_path, WHOLE, name=name) for name in ("a", "b")]
    spec, _ = merged(files, tmp_path)
    assert [site.id for site in spec.sites] == ["a-hall", "a-annex", "b-hall", "b-annex"]
    assert [(link.a, link.b) for link in spec.links] == [
        ("a-hall", "a-annex"),
        ("b-hall", "b-annex"),
    ]
    assert [(pool.id, pool.fabric) for pool in spec.pools] == [
        ("a-gpu", "a-ib"),
        ("cpu-a", "a-annex-fabric"),
        ("b-gpu", "b-ib"),
        ("cpu-b", "b-annex-fabric"),
    ]
    assert [(rack.id, rack.site, rack.nodes) for rack in spec.racks] == [
        ("a-r1", "a-hall", "a[1-2]"),
        ("b-r1", "b-hall", "b[1-2]"),
    ]
    assert [(domain.id, domain.members) for domain in spec.domains] == [
        ("a-pdu-1", ("a-r1", "a-gpu")),
        ("b-pdu-1", ("b-r1", "b-gpu")),
    ]
    assert [(tier.id, tier.site) for tier in spec.tiers] == [
        ("a-scratch", "a-hall"),
        ("b-scratch", "b-hall"),
    ]
    assert [(data.name, data.sites) for data in spec.data] == [
        ("a-corpus", ("a-hall",)),
        ("b-corpus", ("b-hall",)),
    ]
    assert [(team.id, team.parent) for team in spec.teams] == [
        ("a-all", None),
        ("a-vision", "a-all"),
        ("b-all", None),
        ("b-vision", "b-all"),
    ]


def test_a_fleet_named_like_a_site_of_another_gets_a_prefix(tmp_path: Path):
    files = [
        write(tmp_path, SMALL, name="hall", accelerator="H100", nodes=1),
        write(tmp_path, WHOLE, name="b"),
    ]
    spec, _ = merged(files, tmp_path)
    assert [site.id for site in spec.sites] == ["hall-hall", "b-hall", "b-annex"]


def test_fleets_of_one_name_are_numbered(tmp_path: Path):
    files: list[Path] = []
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        files.append(write(tmp_path / folder, SMALL, name="gpus", accelerator="H100", nodes=1))
    spec, _ = merged(files, tmp_path)
    assert [pool.id for pool in spec.pools] == ["gpus-gpu", "gpus-2-gpu"]


def test_node_names_that_clash_are_reported_and_prefixed_on_request(tmp_path: Path):
    text = SMALL.replace("nodes = {nodes}", 'node_names = "n[1-{nodes}]"') + (
        '[[rack]]\nname = "r1"\nnodes = "n[1-2]"\n'
    )
    files = [
        write(tmp_path, text, name="a", accelerator="H100", nodes=4),
        write(tmp_path, text, name="b", accelerator="H100", nodes=2),
    ]
    with pytest.raises(InputError, match="used in more than one fleet: `n1`") as caught:
        merge(files)
    assert caught.value.code == "node-clash"
    assert "--prefix-nodes" in caught.value.hint
    spec, _ = merged(files, tmp_path, prefix_nodes=True)
    assert [pool.node_names for pool in spec.pools] == ["n[1-4]", "b-n[1-2]"]
    assert [rack.nodes for rack in spec.racks] == ["n[1-2]", "b-n[1-2]"]


def test_generated_names_that_clash_with_stated_ones_are_reported(tmp_path: Path):
    stated = SMALL.replace('"gpu"', '"x"').replace("nodes = {nodes}", 'node_names = "gpu-[2-3]"')
    files = [
        write(tmp_path, stated, name="a", accelerator="H100"),
        write(tmp_path, SMALL, name="b", accelerator="H100", nodes=2),
    ]
    with pytest.raises(InputError, match="used in more than one fleet: `gpu-2`"):
        merge(files)
    spec, _ = merged(files, tmp_path, prefix_nodes=True)
    assert [pool.node_names for pool in spec.pools] == ["gpu-[2-3]", "gpu-1,b-gpu-2"]


def test_a_fleet_name_that_is_invalid_in_a_host_list_is_cleaned(tmp_path: Path):
    files = [
        write(tmp_path, SMALL.replace("{name}", name), name=file, accelerator="H100", nodes=1)
        for file, name in (("a", "east, [old]"), ("b", "west"))
    ]
    spec, _ = merged(files, tmp_path)
    assert [pool.node_names for pool in spec.pools] == ["east-old-gpu-[1-1]", "west-gpu-[1-1]"]


def test_racks_that_only_nodes_name_are_declared_beside_declared_ones(tmp_path: Path):
    listed = (
        'name = "b"\n[[pool]]\nname = "p"\naccelerator = "H100"\ngpus_per_node = 8\n'
        '[[node]]\nname = "x1"\npool = "p"\nrack = "r1"\n'
        '[[node]]\nname = "x2"\npool = "p"\n'
    )
    files = [write(tmp_path, WHOLE, name="a"), write(tmp_path, listed, name="b")]
    spec, _ = merged(files, tmp_path)
    assert [(rack.id, rack.nodes) for rack in spec.racks] == [("a-r1", "a[1-2]"), ("b-r1", "x1")]
    assert hostlist.expand(spec.pools[-1].node_names) == ["x1", "x2"]


def test_what_the_fleets_expect_stays_only_where_they_agree(tmp_path: Path):
    files = [
        write(
            tmp_path,
            SMALL + "[expects]\ngpus = {gpus}\n",
            name=name,
            gpus=gpus,
            nodes=1,
            accelerator="H100",
        )
        for name, gpus in (("a", 8), ("b", 16))
    ]
    result = merge(files)
    assert "\n[expects]" not in result.toml
    assert any("different `[expects]` tables" in note for note in result.notes)


def test_one_fleet_is_nothing_to_merge(tmp_path: Path):
    file = write(tmp_path, SMALL, name="a", accelerator="H100", nodes=1)
    with pytest.raises(InputError, match="merge needs at least two fleets"):
        merge([file])


def test_a_fleet_with_errors_is_rejected_with_all_of_them(tmp_path: Path):
    good = write(tmp_path, SMALL, name="a", accelerator="H100", nodes=1)
    bad = write(tmp_path, SMALL + "nonsense = 1\n", name="b", accelerator="H100", nodes=-1)
    with pytest.raises(InvalidFile) as caught:
        merge([good, bad])
    assert len(caught.value.findings) == 2
