"""A layer of growth is one class and one line in a list: everything else goes through the list."""

import re
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import get_args

import msgspec
import pytest
from msgspec.structs import replace

import growth_builders as made
from docs.generate_reference import growth_layers
from tenfold.cli.grow.json import document
from tenfold.cli.grow.page import grow_page
from tenfold.cli.grow.render import show_grow
from tenfold.model.growth.growth import (
    Axis,
    GrowSpec,
    LeadTime,
    OrderItem,
    Pace,
    Quantity,
    grown_by,
)
from tenfold.model.growth.measured import UsagePoint
from tenfold.physics.growth.breaking import ASSUMED, STATED, Evidence
from tenfold.study.grow import layers
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.answer import GrowAnswer
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.layer import ComputedLayer, Constraint, DerivedLayer, Layer
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.registry import LAYERS
from tenfold.study.grow.relief import Relief, round_up_to, with_relief
from tenfold.study.grow.runs.layer import SimulatedLayer
from tenfold.study.grow.state import State, scale_capacity

ROOT = Path(__file__).parents[4]
KINDS = (ComputedLayer, DerivedLayer, SimulatedLayer)
QUESTION = GrowQuestion(axis="nodes", to=(2.0, 4.0))
USD_EACH = 90.0


class Licences(ComputedLayer):
    """One licence for each node."""

    name = "licences"
    breaks = "there are more nodes than licences"
    cause_rank = 58
    grows_with = ("nodes",)
    grows_by = "nodes"
    needs = "how many licences are held"
    fixed_by = "licences"
    assumes = "every node wants a licence"
    lead_times = ("nodes",)
    always_listed = True
    shown_when_constant = False

    def __init__(self, held: int | None, evidence: Evidence = STATED) -> None:
        self.held = held
        self.evidence = evidence

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        if self.held is None:
            return [self.unknown("nodes")]
        held = self.held * state.capacity_scale(self.key("nodes"))

        def wanted(factor: float) -> float:
            return state.spec.nodes * grown_by(axis, "nodes", factor)

        def seen(factor: float) -> str:
            return f"{wanted(factor):,.0f} nodes want a licence, {held:,.0f} are held"

        def relieve(multiple: float) -> list[Relief]:
            more = round_up_to(held * (multiple - 1), 1)

            def apply(now: State) -> State:
                return scale_capacity(
                    with_relief(now, "licences"), self.key("nodes"), 1 + more / held
                )

            return [Relief("licences", f"{more:,} licences more", more * USD_EACH, 2.0, apply)]

        return [self.constraint("nodes", wanted, held, self.evidence, seen, relieve)]


def inputs(grow: GrowSpec | None = None) -> GrowInputs:
    return made.given(made.fleet(power_kw=100_000.0, rack_kw=1_000.0), grow)


def climbed(layer: Layer, *, axis: Axis = "nodes", have: GrowInputs | None = None) -> GrowAnswer:
    return analyse(have or inputs(), replace(QUESTION, axis=axis), layers=(*LAYERS, layer))


def test_a_planted_layer_is_judged_relieved_priced_and_explained():
    answer = climbed(Licences(40))
    first = answer.first
    assert first is not None
    assert (first.layer, first.resource, first.grade) == ("licences", "nodes", "published")
    assert first.k == pytest.approx(40 / 32)
    assert first.symptom == "40 nodes want a licence, 40 are held"
    assert answer.sentence == "first to break: Licences, nodes, at 1.25x nodes"
    assert first.relief is not None
    assert (first.relief.code, first.relief.weeks) == ("licences", 2.0)
    more = int(first.relief.sentence.split()[0])
    assert first.usd == more * USD_EACH
    assert first.k_after is None or first.k_after > first.k
    assert any(curve.layer == "licences" for curve in answer.curves)


def test_a_planted_layer_is_printed_in_text_json_and_on_the_page(
    capsys: pytest.CaptureFixture[str],
):
    answer = climbed(Licences(40))
    show_grow(answer, QUESTION)
    text = capsys.readouterr().out
    assert "first to break: Licences, nodes" in text
    assert "licences more" in text
    told = msgspec.json.encode(document(answer, QUESTION)).decode()
    assert '"layer":"licences"' in told
    page = grow_page(answer, QUESTION)
    assert "Licences, nodes" in page
    assert "want a licence" in page


def test_a_planted_layer_that_is_assumed_says_what_it_assumes_and_raises_no_alarm():
    answer = climbed(Licences(40, ASSUMED))
    assert "assumed for Licences: every node wants a licence" in answer.assumptions
    assert answer.first is None or answer.first.layer != "licences"


def test_a_planted_layer_without_its_figure_says_what_it_needs():
    [missing] = [one for one in climbed(Licences(None)).unknown if one.layer == "licences"]
    assert missing.needs == "how many licences are held"


def test_a_planted_layer_that_an_axis_does_not_move_is_named_as_not_judged():
    unknown = climbed(Licences(40), axis="data").unknown
    [missing] = [one for one in unknown if one.layer == "licences"]
    assert missing.needs == ""


def test_a_planted_layer_waits_for_what_is_ordered_for_it():
    times = (LeadTime(thing="nodes", weeks_p50=20, weeks_p90=30),)
    grow = GrowSpec(lead_times=times, pace=Pace(today="2026-11-15", doubles_in_months=6))
    answer = climbed(Licences(40), have=inputs(grow))
    assert any("Licences breaks at 1.25x" in one for one in answer.assumptions)


def test_what_was_measured_of_a_planted_layer_stands_in_place_of_its_figures():
    points = [
        UsagePoint(layer="licences", resource="nodes", factor=k, usage=32 * k, limit=96)
        for k in (0.5, 1.0)
    ]
    answer = climbed(Licences(40), have=replace(inputs(), measured=points))
    [row] = [row for row in answer.layers if row.layer == "licences"]
    assert (row.grade, row.k) == ("measured", pytest.approx(3.0))


def test_the_layer_on_the_page_that_shows_how_is_judged_and_relieved():
    page = (ROOT / "docs" / "how-to" / "add-a-growth-layer.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    module: dict[str, object] = {}
    exec(compile(code, "licences.py", "exec"), module)
    layer = module["Licences"]
    assert isinstance(layer, type)
    opened = made.fleet(power_kw=100_000.0, rack_kw=1_000.0)
    pools = tuple(replace(pool, labels={"licences": "48"}) for pool in opened.spec.pools)
    spec = replace(opened.spec, pools=pools)
    answer = climbed(layer(), have=made.given(replace(opened, spec=spec)))
    assert answer.sentence == "first to break: Licences, pool train, at 1.50x nodes"
    assert answer.rows[0].usd
    assert "the label `licences` of pools" in [one.needs for one in climbed(layer()).unknown]


def test_the_reference_page_has_a_planted_layer():
    assert "| `licences` | there are more nodes than licences |" in growth_layers((Licences(40),))


def test_every_class_of_a_layer_is_in_the_list_once():
    found = [
        one
        for module in walk_packages(layers.__path__, f"{layers.__name__}.")
        for one in vars(import_module(module.name)).values()
        if isinstance(one, type) and issubclass(one, KINDS) and one.__module__ == module.name
    ]
    listed = [type(layer) for layer in LAYERS]
    shared = {base for one in listed for base in one.__mro__[1:]}
    assert len(set(listed)) == len(listed)
    assert set(found) - shared == set(listed)


def test_names_of_layers_are_their_own_and_made_of_plain_words():
    names = [layer.name for layer in LAYERS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", name) for name in names)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_a_layer_states_all_that_is_shown_of_it(layer: Layer):
    assert isinstance(layer, KINDS)
    for said in (layer.breaks, layer.needs, layer.fixed_by):
        assert said
        assert not said.endswith(".")
    assert set(layer.grows_with) <= set(get_args(Quantity))
    assert bool(layer.grows_by) is bool(layer.grows_with)
    assert set(layer.lead_times) <= set(get_args(OrderItem))


def test_only_the_file_of_a_layer_knows_its_name():
    """A name in text would be a join that nobody checks; others refer to the class."""
    source = Path(layers.__file__).parents[3]
    others = [
        *(source / "study" / "grow").glob("*.py"),
        *(source / "cli" / "grow").glob("*.py"),
        *(source / "report").rglob("grow*.py"),
    ]
    names = {layer.name for layer in LAYERS if "-" in layer.name}
    joined = [
        (path.name, name) for path in others for name in names if f'"{name}"' in path.read_text()
    ]
    assert len(others) > 20
    assert joined == []
