"""Whatever a fleet file holds, reading it ends in a fleet or in findings, never in a traceback."""

import string
from pathlib import Path

import pytest
import tomli
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold.facts.loader import load_catalogue
from tenfold.files.fleet.read import read_fleet
from tenfold.files.fleet.rows import SINGLE_TABLES, TABLES
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet import hostlist
from tenfold.physics.blast import blast_radius
from tenfold.physics.layout import lay_out
from tenfold.physics.limits import lint
from tenfold.physics.totals import fleet_totals

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").glob("**/fleet*.toml"))
CATALOGUE = load_catalogue()
relaxed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def survives(path: Path, catalogue: Catalogue = CATALOGUE) -> bool:
    """Read, lay out, lint and sum; True where the file was good."""
    try:
        reading = read_fleet(path, catalogue)
    except InputError as error:
        assert error.message
        assert error.hint
        return False
    if reading.spec is None:
        assert reading.findings
        return False
    layout = lay_out(reading.spec)
    reading.located(lint(layout, catalogue))
    fleet_totals(layout, catalogue)
    blast_radius(layout, catalogue)
    return True


@relaxed
@given(data=st.data())
def test_a_mutated_example_never_ends_in_a_traceback(tmp_path: Path, data: st.DataObject):
    text = data.draw(st.sampled_from(EXAMPLES)).read_text()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 30))
        junk = data.draw(st.text(string.printable, max_size=12) | st.sampled_from(WORDS))
        text = text[:start] + junk + text[start + length :]
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    survives(path)


WORDS = ["-1", "0", "nan", "inf", "[]", "{}", '""', "1e400", "true", "[[pool]]", "1979-05-27"]
names = st.sampled_from(["a", "b", "main", "H100", "n[1-4]", "hot", "air", "", "fat-tree"])
numbers = st.integers(-2, 70) | st.floats() | st.integers(-(10**30), 10**30)
values = st.recursive(
    names | numbers | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)


def tables_of(row: type) -> st.SearchStrategy[dict[str, object]]:
    return st.dictionaries(st.sampled_from(row.__struct_encode_fields__), values, max_size=8)


documents = st.fixed_dictionaries(
    {},
    optional={
        **{table: st.lists(tables_of(row), max_size=3) for table, row in TABLES.items()},
        **{table: tables_of(row) for table, row in SINGLE_TABLES.items()},
    },
)


@relaxed
@given(document=documents)
def test_any_tables_at_all_end_in_a_fleet_or_findings(tmp_path: Path, document: object):
    import yaml  # noqa: PLC0415

    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump(document))
    survives(path)


good_pools = st.fixed_dictionaries(
    {"accelerator": st.sampled_from(["H100", "A100", "MI300X", "GB200", "L40S", "T4"])},
    optional={
        "nodes_per_rack": st.integers(1, 9),
        "gpus_per_node": st.sampled_from([1, 4, 8, 16]),
        "nic_gbps": st.sampled_from([25, 100, 400]),
        "power_kw_per_node": st.floats(0.5, 20),
    },
)


@relaxed
@given(
    pools=st.lists(good_pools, min_size=1, max_size=4),
    nodes=st.integers(1, 200),
    kind=st.sampled_from(["fat-tree", "rail-optimised", "dragonfly"]),
    ratio=st.sampled_from([1, 2, 4]),
)
def test_a_good_file_is_laid_out_with_every_node_in_one_rack_and_leaf(
    tmp_path: Path, pools: list[dict[str, object]], nodes: int, kind: str, ratio: int
):
    lines = [f'[[fabric]]\nname = "f"\nkind = "{kind}"\noversubscription = {ratio}']
    for place, pool in enumerate(pools):
        lines.append(f'[[pool]]\nname = "p{place}"\nnodes = {nodes}')
        lines += [f"{key} = {value!r}".replace("'", '"') for key, value in pool.items()]
    path = tmp_path / "fleet.toml"
    path.write_text("\n".join(lines))
    reading = read_fleet(path, CATALOGUE)
    assert reading.spec is not None, reading.findings
    layout = lay_out(reading.spec)
    assert len(layout.rack_of) == reading.spec.nodes == nodes * len(pools)
    assert (layout.rack_of >= 0).all()
    assert (layout.leaf_of >= 0).all()
    rows = blast_radius(layout, CATALOGUE)
    for kind_of_row in ("rack", "site"):
        assert sum(row.gpus for row in rows if row.kind == kind_of_row) == reading.spec.gpus
    assert sum(row.nodes for row in rows if row.kind == "rack") == reading.spec.nodes


@given(st.lists(st.from_regex(r"[a-z]{1,4}-?[0-9]{0,4}[a-z]{0,2}", fullmatch=True), max_size=40))
def test_a_folded_host_list_unfolds_to_the_same_names(names: list[str]):
    assert hostlist.expand(hostlist.fold(names)) == names


@given(st.text(alphabet="n[]-,0123456789 a", max_size=30))
def test_any_text_is_a_host_list_or_an_error_that_says_why(text: str):
    try:
        hostlist.expand(text)
    except hostlist.HostlistError as error:
        assert str(error)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.parent.name)
def test_every_example_is_without_fault(path: Path):
    own = path.parent / "facts"
    assert survives(path, load_catalogue(own if own.is_dir() else None))


@relaxed
@given(text=st.text(max_size=200))
def test_any_text_is_toml_or_an_error_with_a_line(tmp_path: Path, text: str):
    path = tmp_path / "fleet.toml"
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    try:
        tomli.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except tomli.TOMLDecodeError:
        with pytest.raises(InputError):
            read_fleet(path, CATALOGUE)
    else:
        survives(path)
