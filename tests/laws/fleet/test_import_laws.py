"""What holds for every export, sound or broken, and for every inventory."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold.compose.fleet import load_facts
from tenfold.files.fleet.read import load_fleet
from tenfold.files.fleet.write import render_fleet_toml
from tenfold.files.inventory.inventory import pools_from
from tenfold.files.inventory.nodes_csv import read_nodes_csv
from tenfold.files.kubernetes.nodes import read_kubernetes_nodes
from tenfold.files.slurm.nodes import read_slurm_nodes
from tenfold.model.errors import TenfoldError
from tenfold.model.fleet import hostlist
from tenfold.model.fleet.inventory import Inventory, InventoryNode

CATALOGUE = load_facts()
SLURM_JSON = {
    "meta": {"slurm": {"cluster": "alpha"}},
    "nodes": [
        {
            "name": "n1",
            "cpus": {"set": True, "infinite": False, "number": 64},
            "real_memory": 1048576,
            "gres": "gpu:h100:8(S:0-1)",
            "state": ["IDLE", "DRAIN"],
            "features": "ib",
            "partitions": ["gpu"],
            "operating_system": "Linux 6.1",
        }
    ],
}
SINFO_JSON = {
    "sinfo": [
        {
            "nodes": {"total": 2, "nodes": ["n1", "n2"]},
            "partition": {"name": "gpu"},
            "node": {"state": ["IDLE"]},
            "cpus": {"total": 128, "maximum": 64},
            "memory": {"maximum": 512000},
            "gres": {"total": "gpu:a100:4"},
        }
    ]
}
KUBERNETES = {
    "kind": "List",
    "items": [
        {
            "kind": "Node",
            "metadata": {
                "name": "gpu-1",
                "labels": {
                    "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb",
                    "nvidia.com/gpu.count": "8",
                    "nvidia.com/gpu.replicas": "2",
                },
            },
            "spec": {"unschedulable": False, "taints": [{"key": "a", "effect": "NoSchedule"}]},
            "status": {
                "capacity": {"cpu": "64", "memory": "1073741824Ki", "nvidia.com/gpu": "56"},
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"osImage": "Ubuntu"},
            },
        }
    ],
}
SLURM_TEXT = """\
NodeName=n1 Arch=x86_64 CPUTot=64 AvailableFeatures=ib Gres=gpu:h100:8(S:0-1)
   OS=Linux 6.1 RealMemory=1048576 State=IDLE+DRAIN Partitions=gpu
   Reason=bad cable [root@2026-01-01T00:00:00]
"""
CSV = (
    'name,accelerator,gpus,cpus,memory_gib,rack,site,owner\n"g[1-3]",H100,8,64,2048,r1,eu,vision\n'
)

anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from(["gpu:h100:8", "-1", "9e99", "1Ki", "n[1-", "IDLE*"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=5,
)


def mutated_json(document: object) -> st.SearchStrategy[str]:
    """The document with one value anywhere in it replaced, or dropped, or the text cut."""
    places = list(_places(document))

    @st.composite
    def build(draw: st.DrawFn) -> str:
        copy = json.loads(json.dumps(document))
        for _ in range(draw(st.integers(1, 3))):
            *way, last = draw(st.sampled_from(places))
            target = copy
            try:
                for step in way:
                    target = target[step]
                if draw(st.booleans()):
                    target[last] = draw(anything)
                else:
                    del target[last]
            except (KeyError, IndexError, TypeError):
                continue
        return json.dumps(copy)

    return build() | mutated_text(json.dumps(document))


def _places(value: object, way: tuple[object, ...] = ()):
    items = list(value.items()) if isinstance(value, dict) else []
    if isinstance(value, list):
        items = list(enumerate(value))
    for key, inner in items:
        yield (*way, key)
        yield from _places(inner, (*way, key))


@st.composite
def mutated_text(draw: st.DrawFn, text: str) -> str:
    """The text with a piece cut out and another put in."""
    start = draw(st.integers(0, len(text)))
    end = draw(st.integers(start, min(len(text), start + 20)))
    return text[:start] + draw(st.text(max_size=12)) + text[end:]


def importing_raises_nothing_else(read: Callable[[str, str], Inventory], text: str) -> None:
    try:
        made = pools_from(read(text, "saved"), CATALOGUE, keep_unusable=True)
        render_fleet_toml(made.rows, made.notes)
    except TenfoldError as error:
        assert error.code
        assert error.message
        assert error.hint


@given(mutated_json(SLURM_JSON) | mutated_json(SINFO_JSON) | mutated_text(SLURM_TEXT) | st.text())
def test_a_broken_slurm_export_never_ends_in_a_traceback(text: str):
    importing_raises_nothing_else(read_slurm_nodes, text)


@given(mutated_json(KUBERNETES) | st.text())
def test_a_broken_kubernetes_export_never_ends_in_a_traceback(text: str):
    importing_raises_nothing_else(read_kubernetes_nodes, text)


@given(mutated_text(CSV) | st.text())
def test_a_broken_csv_never_ends_in_a_traceback(text: str):
    importing_raises_nothing_else(read_nodes_csv, text)


node_names = st.from_regex(r"[a-z]{1,3}(-?[0-9]{1,4})?(-[a-z]{2})?", fullmatch=True)
texts = st.text(min_size=1, max_size=12)
lines = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
nodes = st.builds(
    InventoryNode,
    name=node_names,
    accelerator=st.none() | st.sampled_from(["h100", "NVIDIA-A100-SXM4-80GB", "mi300x"]) | lines,
    gpus=st.sampled_from([0, 1, 4, 8]),
    cpus=st.integers(1, 256),
    memory_gib=st.floats(0, 4096),
    rack=st.none() | st.sampled_from(["r1", "r2", "eu-r1"]) | lines,
    site=st.none() | st.sampled_from(["eu", "us", "main"]) | lines,
    labels=st.dictionaries(
        st.sampled_from(["partitions", "features", "owner"]) | texts, texts, max_size=2
    ),
    usable=st.booleans(),
    why_unusable=texts,
)
inventories = st.lists(nodes, min_size=1, max_size=30, unique_by=lambda one: one.name)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(inventories, st.booleans())
def test_a_fleet_file_holds_the_nodes_and_gpus_of_its_inventory(
    tmp_path: Path, members: list[InventoryNode], keep: bool
):
    kept = [node for node in members if node.usable or keep]
    inventory = Inventory(source="law", name="law", nodes=tuple(members))
    if not kept:
        with pytest.raises(TenfoldError):
            pools_from(inventory, CATALOGUE, keep_unusable=keep)
        return
    made = pools_from(inventory, CATALOGUE, keep_unusable=keep)
    path = tmp_path / "fleet.toml"
    path.write_text(render_fleet_toml(made.rows, made.notes), "utf-8")
    spec = load_fleet(path, CATALOGUE, unknown_accelerators=True)
    gpus = {
        name: pool.gpus_per_node for pool in spec.pools for name in hostlist.expand(pool.node_names)
    }
    assert gpus == {node.name: node.gpus for node in kept}
    racked = [name for rack in spec.racks for name in hostlist.expand(rack.nodes)]
    assert sorted(racked) == sorted(node.name for node in kept if node.rack is not None)
    again = pools_from(reversed_order(inventory), CATALOGUE, keep_unusable=keep)
    assert again.rows == made.rows


def reversed_order(inventory: Inventory) -> Inventory:
    return Inventory(source="law", name="law", nodes=inventory.nodes[::-1])
