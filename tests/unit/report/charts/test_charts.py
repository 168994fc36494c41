"""Charts as SVG and in a terminal: well-formed, labelled, escaped, and never without an answer."""

from collections.abc import Callable
from xml.etree import ElementTree

import pytest

from tenfold.report.charts import axes
from tenfold.report.charts.axes import Axis, range_of
from tenfold.report.charts.bars import Bar, Limit, stacked_bars
from tenfold.report.charts.points import Dot, Rule, Series, cdf_chart, line_chart, scatter_chart
from tenfold.report.charts.svg import Card, ink_on, number
from tenfold.report.charts.terminal import bars

SVG = "{http://www.w3.org/2000/svg}"
CARD = Card(title="Throughput", subtitle="of one model")
GPUS = Axis(title="GPUs", log=True, label=axes.thousands)
RATE = Axis(title="tokens a second", log=True, label=axes.si)
PLAIN = Axis(title="value", label=axes.plain)


def read(picture: str) -> ElementTree.Element:
    root = ElementTree.fromstring(picture)
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    return root


def words(picture: str) -> list[str]:
    return [one.text or "" for one in read(picture).iter(f"{SVG}text")]


def test_a_line_chart_names_its_lines_its_knee_and_its_axes():
    curve = Series(name="measured", points=((8, 1e4), (16, 2e4), (32, 3e4)))
    ideal = Series(name="ideal", points=((8, 1e4), (32, 4e4)), dashed=True, dots=False)
    made = line_chart(CARD, [curve, ideal], GPUS, RATE, [Rule(at=16, label="knee, 16")])
    for word in ("Throughput", "of one model", "GPUs", "tokens a second", "measured", "ideal"):
        assert word in words(made)
    assert "knee, 16" in words(made)
    root = read(made)
    assert len(list(root.iter(f"{SVG}circle"))) == 3
    assert "knee, 16 at 16" in str(root.findtext(f"{SVG}desc"))
    assert root.findtext(f"{SVG}title") == "Throughput"


def test_a_higher_value_stands_higher_and_a_larger_one_further_right():
    made = line_chart(CARD, [Series(name="a", points=((1, 1), (2, 5), (3, 9)))], PLAIN, PLAIN)
    circles = list(read(made).iter(f"{SVG}circle"))
    xs = [float(str(one.get("cx"))) for one in circles]
    ys = [float(str(one.get("cy"))) for one in circles]
    assert xs == sorted(xs)
    assert ys == sorted(ys, reverse=True)


def test_words_of_rules_that_would_meet_stand_in_rows():
    rules = [Rule(at=16, label="chosen, 16"), Rule(at=17, label="knee, 17")]
    made = line_chart(CARD, [Series(name="a", points=((8, 1), (64, 9)))], GPUS, PLAIN, rules)
    rows = {
        one.get("y")
        for one in read(made).iter(f"{SVG}text")
        if str(one.text).startswith(("chosen", "knee"))
    }
    assert len(rows) == 2


def test_parts_of_a_bar_add_up_to_its_length():
    bar = Bar(label="step", parts={"compute": 6.0, "exchange": 2.0, "idle": 0.0}, total="8 s")
    made = stacked_bars(CARD, [bar], PLAIN, Limit(at=10.0, label="limit 10"))
    widths = {
        hint: float(str(box.get("width")))
        for box in read(made).iter(f"{SVG}rect")
        if (hint := box.findtext(f"{SVG}title"))
    }
    assert list(widths) == ["compute: 6", "exchange: 2"]
    assert widths["compute: 6"] == pytest.approx(3 * widths["exchange: 2"], abs=0.3)
    assert {"limit 10", "8 s", "compute", "exchange"} <= set(words(made))
    assert "idle" not in words(made)


def test_the_area_of_a_dot_grows_with_its_size():
    dots = [Dot(x=1, y=1, size=8, label="8 GPUs"), Dot(x=9, y=9, size=64, chosen=True)]
    radii = [
        float(str(one.get("r")))
        for one in read(scatter_chart(CARD, dots, PLAIN, PLAIN)).iter(f"{SVG}circle")
    ]
    assert radii[0] < radii[1]


def test_a_share_of_values_ends_at_all_of_them():
    made = cdf_chart(CARD, {"waits": [3.0, 1.0, 2.0]}, PLAIN)
    assert "waits: 33.3% at 1 to 100% at 3" in str(read(made).findtext(f"{SVG}desc"))


EMPTY: list[Callable[[], str]] = [
    lambda: line_chart(CARD, [], GPUS, RATE),
    lambda: line_chart(CARD, [Series(name="a", points=())], GPUS, RATE),
    lambda: line_chart(CARD, [Series(name="a", points=((8, 5),))], GPUS, RATE),
    lambda: line_chart(CARD, [Series(name="a", points=((0, 0), (-1, float("inf"))))], GPUS, RATE),
    lambda: scatter_chart(CARD, [], PLAIN, PLAIN),
    lambda: scatter_chart(CARD, [Dot(x=0, y=0, size=0)], PLAIN, PLAIN),
    lambda: stacked_bars(CARD, [], PLAIN),
    lambda: stacked_bars(CARD, [Bar(label="none", parts={})], PLAIN),
    lambda: cdf_chart(CARD, {}, PLAIN),
    lambda: cdf_chart(CARD, {"one": [7.0]}, RATE),
]


@pytest.mark.parametrize("draw", EMPTY)
def test_nothing_or_a_single_point_is_still_a_picture(draw: Callable[[], str]):
    made = draw()
    assert read(made).findtext(f"{SVG}desc")
    assert "nan" not in made.lower()
    assert made == draw()


def test_names_are_escaped_wherever_they_stand():
    name = "<script>&\"'\x00"
    made = line_chart(
        Card(title=name, subtitle=name),
        [Series(name=name, points=((1, 1),)), Series(name="b", points=((2, 2),))],
        Axis(title=name, label=lambda value: f"<{value:g}>"),
        PLAIN,
        [Rule(at=1, label=name)],
    )
    assert "<script>" not in made
    assert read(made).findtext(f"{SVG}title") == "<script>&\"'\\u0000"
    read(stacked_bars(CARD, [Bar(label=name, parts={name: 1.0}, total=name)], PLAIN))
    read(scatter_chart(CARD, [Dot(x=1, y=1, label=name)], PLAIN, PLAIN))


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 10.0], (0, 2, 4, 6, 8, 10)),
        ([0.0, 0.9], (0, 0.2, 0.4, 0.6, 0.8, 1.0)),
        ([3.0, 47.0], (0, 10, 20, 30, 40, 50)),
    ],
)
def test_ticks_stand_at_one_two_and_five(values: list[float], ticks: tuple[float, ...]):
    assert range_of(PLAIN, values).ticks == pytest.approx(ticks)


def test_ticks_of_a_log_axis_are_decades_where_it_spans_many():
    assert range_of(RATE, [2.0, 150.0]).ticks == pytest.approx((2, 5, 10, 20, 50, 100))
    assert range_of(RATE, [1.0, 1e5]).ticks == pytest.approx((1, 10, 100, 1e3, 1e4, 1e5))


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (axes.si(950), "950"),
        (axes.si(1234), "1.23k"),
        (axes.si(999_999), "1M"),
        (axes.si(-2e9), "-2G"),
        (axes.short(70.6e9), "70.6B"),
        (axes.usd(1.5), "$1.50"),
        (axes.usd(685_609), "$686k"),
        (axes.usd(-3e9), "-$3B"),
        (axes.thousands(16_384), "16,384"),
        (axes.percent(0.985), "98.5%"),
        (axes.plain(0.05), "0.05"),
        (axes.plain(2_500), "2,500"),
        (axes.unit("ms")(12.0), "12 ms"),
        (number(-0.01), "0"),
        (ink_on("#f59e0b"), "#111827"),
        (ink_on("#2563eb"), "#ffffff"),
    ],
)
def test_numbers_are_short(said: str, expected: str):
    assert said == expected


def test_terminal_bars_keep_to_the_width_and_leave_out_what_is_not_there():
    made = bars({"compute": 6.0, "exchange": 2.0, "idle": 0.0}, width=60).plain
    first, second = made.splitlines()
    assert first.endswith("6   75%")
    assert second.endswith("2   25%")
    assert first.count("\u2588") == 3 * second.count("\u2588") != 0
    assert max(len(line) for line in (first, second)) <= 60
    assert bars({}).plain == ""
