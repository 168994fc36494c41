"""The page of `tenfold grow`: well-formed, safe with any text, and the same again."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from msgspec.structs import replace

from growth_builders import fleet, given, tier
from tenfold.cli.grow.page import grow_page
from tenfold.cli.main import main
from tenfold.report.charts.axes import percent, plain, si, thousands
from tenfold.report.charts.growth import (
    ROWS_MOST,
    LayerCurve,
    LayerHeadroom,
    efficiency_chart,
    headroom_chart,
    strain_chart,
    wait_chart,
)
from tenfold.report.pages.grow import GrowPage, grow_report
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.answer import UtilisationCurve
from tenfold.study.grow.question import GrowQuestion

ODD = "<b onload='x'>&\x07`code`"
EXAMPLE = Path(__file__).parents[4] / "examples" / "bank-three-sites" / "fleet.toml"


def odd_page() -> GrowPage:
    return GrowPage(
        title=ODD,
        lead=ODD,
        axis=ODD,
        most=10.0,
        month=([ODD], [[ODD]]),
        bottlenecks=([ODD], [[ODD]]),
        top=ODD,
        stages=([ODD], [[ODD]]),
        orders=([ODD], [[ODD]]),
        layers=([ODD], [[ODD]]),
        curves=[LayerCurve(name=ODD, points=((1.0, 0.2), (10.0, 1e9)))],
        headrooms=[LayerHeadroom(name=ODD, k=None), LayerHeadroom(name=ODD, k=0.01, first=True)],
        breaks={ODD: 0.5},
        waits=((1.0, 0.0), (10.0, 3.0)),
        wait_limit_s=14_400.0,
        efficiency=((1.0, 0.8), (10.0, 2.0)),
        efficiency_least=0.8,
        limits=[(ODD, ODD)],
        unknown=[ODD],
        assumptions=[ODD],
    )


def test_a_page_is_safe_with_any_text():
    made = grow_report(odd_page())
    assert "<b onload" not in made
    assert "<script" not in made
    assert "\x07" not in made


def test_the_report_names_what_breaks_and_what_is_not_known():
    question = GrowQuestion(axis="nodes")
    answer = analyse(given(fleet(rack_kw=70.0, tiers=(tier(),))), question)
    made = grow_page(answer, question)
    assert answer.first is not None
    assert answer.first.resource in made
    first, chart, costs, rows = (
        made.index(part)
        for part in ("First to break", "Headroom of each layer", "What it costs", "in order</h2>")
    )
    assert first < chart < costs < rows
    assert "Utilisation by layer" in made
    assert "Floor space (needs" in made
    assert "What the fixes add to a month" in made


def test_a_fleet_that_breaks_nowhere_has_a_page():
    question = GrowQuestion(axis="traffic", to=(2.0,))
    made = grow_page(analyse(given(fleet()), question), question)
    assert "None of the limits checked is reached at up to 2x traffic." in made


@pytest.mark.parametrize(
    "chart",
    [
        wait_chart([(1.0, 0.5), (4.0, 2.0)], 14_400.0, "jobs"),
        efficiency_chart([(1.0, 0.8), (4.0, 1.6)], 0.8, "job-size"),
    ],
)
def test_charts_of_wait_and_efficiency_are_well_formed(chart: str):
    ElementTree.fromstring(chart)


def test_the_headroom_chart_counts_the_layers_that_it_leaves_out():
    layers = [LayerHeadroom(name=f"Layer {n}", k=1.5 + n) for n in range(ROWS_MOST + 1)]
    assert "1 layer with more headroom is not shown" in headroom_chart(layers, 10.0, "nodes")
    layers.append(LayerHeadroom(name="last", k=None))
    assert "2 layers with more headroom are not shown" in headroom_chart(layers, 10.0, "nodes")


def test_headroom_is_drawn_with_its_range_and_never_as_a_single_dot():
    one = LayerHeadroom(name="Ports", k=2.25, low=2.14, high=2.36, first=True)
    rest = [
        LayerHeadroom(name="Racks", k=400.0, low=300.0, high=None),
        LayerHeadroom(name="Power", k=4.0, low=3.0, high=None, assumed=True),
        LayerHeadroom(name="Store", k=None),
        LayerHeadroom(name="Cooling", k=0.016, low=0.016, over=True),
    ]
    drawn = headroom_chart([one, *rest], 10.0, "nodes")
    ElementTree.fromstring(drawn)
    for words in (
        "2.25x (2.14-2.36x)",
        "&gt;10x",
        "4.00x (3.00x+)",
        "by assumed values",
        "over today",
    ):
        assert words in drawn
    assert headroom_chart([one], 10.0, "nodes") == ""
    assert wait_chart([(1.0, 0.5)], 14_400.0, "jobs") == ""
    assert efficiency_chart([(1.0, 0.5)], 0.8, "jobs") == ""
    assert strain_chart([LayerCurve(name="x", points=((1.0, 0.5),))], "jobs", []) == ""


def test_figures_are_written_out():
    assert [percent(15.0), percent(0.996), percent(0.5)] == ["1,500%", "99.6%", "50%"]
    assert [plain(999.96), si(999.7), thousands(1.5e13)] == ["1,000", "1k", "15,000,000,000,000"]


def test_the_option_writes_a_page_and_keeps_one_that_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    page = tmp_path / "grow.html"
    words = ["grow", str(EXAMPLE), "--axis", "nodes", "--to", "2", "--html", str(page)]
    assert main(words) == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "note: report written to" in capsys.readouterr().err
    assert main(words) == 2
    assert main([*words, "--force"]) == 0


def test_two_runs_give_the_same_bytes_whatever_the_hash_seed(tmp_path: Path):
    made: list[tuple[bytes, bytes]] = []
    for seed in ("1", "2"):
        page = tmp_path / f"{seed}.html"
        words = [
            "grow",
            str(EXAMPLE),
            "--axis",
            "all",
            "--to",
            "2,5",
            "--json",
            "--html",
            str(page),
        ]
        ran = subprocess.run(
            [sys.executable, "-m", "tenfold", *words],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        made.append((ran.stdout, page.read_bytes()))
    assert made[0] == made[1]


def test_a_curve_of_runs_ends_where_runs_were_made():
    question = GrowQuestion(axis="nodes", to=(4.0,))
    answer = analyse(given(fleet()), question)
    rising = ((1.0, 0.1), (2.0, 1.2), (3.0, 1.2), (4.0, 1.2))
    curve = UtilisationCurve(layer="queue", resource="waits", label="Queue wait", points=rising)
    made = grow_page(replace(answer, curves=(curve,)), question)
    assert "wait, P90: 0.4 at 1x to 4.8 at 2x" in made
