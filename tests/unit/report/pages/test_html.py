"""The page that reports share: well-formed, self-contained, and safe with any text."""

import re
from xml.etree import ElementTree

from tenfold.report.charts.axes import Axis, plain
from tenfold.report.charts.points import Series, line_chart
from tenfold.report.charts.svg import Card
from tenfold.report.pages.html import (
    Section,
    charts_html,
    list_html,
    page,
    pairs_html,
    prose_html,
    table_html,
    tiles_html,
)

ODD = "<b onload='x'>&\x07`code`"


def read(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def test_a_page_holds_its_sections_in_order():
    made = page("Plan", [Section("One", prose_html("first")), Section("Two", "")], lead="In short")
    root = read(made)
    assert made.startswith("<!DOCTYPE html>\n")
    assert [one.text for one in root.iter("h2")] == ["One", "Two"]
    assert root.findtext("head/title") == "Plan"
    assert root.findtext("body/main/p") == "In short"


def test_an_empty_page_is_a_page():
    assert read(page("", [])).findtext("body/main/h1") == ""


def test_a_page_loads_nothing_and_runs_nothing():
    axis = Axis(title="x", label=plain)
    chart = line_chart(Card(title="c"), [Series(name="a", points=((1, 1), (2, 2)))], axis, axis)
    made = page("Plan", [Section("Chart", charts_html(chart))])
    assert "<script" not in made
    assert "default-src 'none'" in made
    assert re.findall(r"""(?:src|href)=|url\(|@import""", made) == []
    assert read(made).find(".//{http://www.w3.org/2000/svg}svg") is not None


def test_every_text_is_escaped():
    parts = [
        prose_html(ODD),
        list_html([ODD]),
        table_html([ODD], [[ODD]]),
        pairs_html([(ODD, ODD)]),
        tiles_html([(ODD, ODD)]),
    ]
    made = page(ODD, [Section(ODD, "".join(parts))], lead=ODD, foot=ODD)
    read(made)
    assert "<b onload" not in made
    assert "<code>code</code>" in made


def test_columns_of_figures_stand_to_the_right_and_the_best_row_is_marked():
    rows = [("fast", 1_024, "$1.50", "12 ms"), ("slow", 8, "$685,609", "98%")]
    root = read(table_html(("name", "GPUs", "cost", "pace"), rows, best=1))
    kinds = [cell.get("class") for cell in root.iter("th")]
    assert kinds == ["s", "n", "n", "n"]
    assert [cell.text for cell in root.iter("td")][:2] == ["fast", "1,024"]
    assert [row.get("class") for row in root.findall("table/tbody/tr")] == [None, "best"]


def test_nothing_to_show_shows_nothing():
    assert list_html([]) == pairs_html([]) == tiles_html([]) == charts_html("") == ""
    assert read(table_html(("a",), [])).findall("table/tbody/tr") == []
