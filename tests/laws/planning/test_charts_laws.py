"""Whatever the values and words, a chart is well-formed SVG with finite places inside its card."""

import re
from xml.etree import ElementTree

from hypothesis import given
from hypothesis import strategies as st

from tenfold.report.charts import axes
from tenfold.report.charts.axes import Axis, range_of
from tenfold.report.charts.bars import Bar, Limit, stacked_bars
from tenfold.report.charts.points import Dot, Rule, Series, cdf_chart, line_chart, scatter_chart
from tenfold.report.charts.svg import Card
from tenfold.report.charts.terminal import bars

finite = st.floats(allow_nan=False, allow_infinity=False)
any_float = st.floats()
points = st.lists(st.tuples(any_float, any_float), max_size=12).map(tuple)
labels = st.sampled_from([axes.si, axes.short, axes.usd, axes.thousands, axes.percent, axes.plain])
some_axis = st.builds(
    Axis,
    title=st.text(max_size=8),
    log=st.booleans(),
    from_zero=st.booleans(),
    label=labels,
    most=st.none() | finite,
)
cards = st.builds(Card, title=st.text(max_size=60), subtitle=st.text(max_size=20))
PLACES = ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height")


def check(picture: str) -> None:
    root = ElementTree.fromstring(picture)
    width, height = float(str(root.get("width"))), float(str(root.get("height")))
    for element in root.iter():
        for name in PLACES:
            value = element.get(name)
            assert value is None or re.fullmatch(r"-?\d+(\.\d)?", value), (name, value)
        for step in str(element.get("points") or "").split():
            x, y = (float(part) for part in step.split(","))
            assert 0 <= x <= width
            assert 0 <= y <= height


@given(cards, st.lists(points, max_size=3), some_axis, some_axis, st.lists(any_float, max_size=3))
def test_lines(card: Card, many: list[tuple[tuple[float, float], ...]], x: Axis, y: Axis, at):
    series = [Series(name=f"line {place}", points=one) for place, one in enumerate(many)]
    rules = [Rule(at=one, label="here") for one in at]
    made = line_chart(card, series, x, y, rules)
    check(made)
    assert made == line_chart(card, series, x, y, rules)


@given(cards, points, any_float, some_axis, some_axis, st.text(max_size=9))
def test_scatters(card: Card, many, size: float, x: Axis, y: Axis, label: str):
    dots = [Dot(x=a, y=b, size=size, label=label, chosen=a > b) for a, b in many]
    check(scatter_chart(card, dots, x, y))


@given(
    cards,
    st.lists(st.dictionaries(st.text(max_size=5), any_float, max_size=4), max_size=4),
    some_axis,
    st.none() | any_float,
)
def test_bars(card: Card, many: list[dict[str, float]], x: Axis, at: float | None):
    made = [Bar(label=f"bar {place}", parts=parts) for place, parts in enumerate(many)]
    check(stacked_bars(card, made, x, None if at is None else Limit(at=at, label="limit")))


@given(cards, st.lists(any_float, max_size=30), some_axis)
def test_distributions(card: Card, values: list[float], x: Axis):
    check(cdf_chart(card, {"values": values}, x))


@given(st.lists(finite, min_size=1, max_size=9), st.booleans())
def test_a_range_holds_its_values_and_its_ticks(values: list[float], from_zero: bool):
    axis = Axis(title="", label=axes.plain, from_zero=from_zero)
    made = range_of(axis, values)
    assert made.low < made.high
    assert all(made.low <= tick <= made.high for tick in made.ticks)
    assert 2 <= len(made.ticks) <= 12
    steps = [made.share(value) for value in sorted(values)]
    assert steps == sorted(steps)


@given(st.dictionaries(st.text(max_size=40), any_float, max_size=6), st.integers(40, 200))
def test_terminal_bars_fit(values: dict[str, float], width: int):
    made = bars(values, width=width).plain
    assert made.count("\u2588") <= width * max(1, len(values))
