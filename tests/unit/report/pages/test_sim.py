"""Pages and small charts of simulated runs: well-formed, self-contained, safe with any text."""

from xml.etree import ElementTree

from tenfold.report.charts.axes import Axis, plain
from tenfold.report.charts.gantt import GanttBar, GanttRow, gantt
from tenfold.report.charts.runs import span, time_unit, times_chart
from tenfold.report.charts.svg import Card
from tenfold.report.charts.terminal import levels, shares_line
from tenfold.report.pages.compare import ComparePage, Overlay, compare_report
from tenfold.report.pages.sim import RunPage, sim_report

ODD = "<b onload='x'>&\x07`code`"
HOURS = Axis(title="hours", from_zero=True, label=plain)


def bars(count: int, group: str = "t") -> list[GanttBar]:
    return [GanttBar("n1", 0, 2, float(n), n + 0.5, f"{group}{n}", ODD) for n in range(count)]


def page_of(rows: list[GanttRow], runs: list[GanttBar]) -> RunPage:
    curve = [(0.0, 0.5), (3_600.0, 1.0)]
    return RunPage(
        title=ODD,
        lead=ODD,
        tiles=[("50%", ODD)],
        figures=[(ODD, ODD)],
        allocated=curve,
        waiting=curve,
        running=curve,
        down=curve,
        waits_s=[0.0, 10.0],
        jcts_s=[5.0],
        rows=rows,
        bars=runs,
        shown=ODD,
        teams=(["team", ">jobs"], [[ODD, "3"]]),
        assumed=[ODD],
    )


def test_a_gantt_chart_has_a_box_for_each_run_and_a_name_for_each_rack():
    rows = [GanttRow("r1", "n1", 8), GanttRow("r2", "n2", 8)]
    root = ElementTree.fromstring(gantt(Card(title="Runs"), rows, bars(3), HOURS))
    hints = [one for one in root.iter() if one.tag.endswith("title")]
    assert len(hints) == 1 + 3
    words = [one.text for one in root.iter() if one.tag.endswith("text")]
    assert {"r1", "r2"} <= set(words)


def test_of_many_teams_the_smaller_ones_share_a_colour():
    drawn = gantt(Card(title="Runs"), [GanttRow("r1", "n1", 8)], bars(12), HOURS)
    words = [one.text for one in ElementTree.fromstring(drawn).iter() if one.tag.endswith("text")]
    assert sum(word is not None and word.startswith("t") for word in words) == 7
    assert "others" in words


def test_a_fleet_without_runs_is_drawn_empty():
    assert "No runs." in gantt(Card(title="Runs"), [], [], HOURS)


def test_the_page_of_a_run_is_well_formed_whatever_names_are():
    made = sim_report(page_of([GanttRow(ODD, "n1", 8)], bars(2, ODD)))
    root = ElementTree.fromstring(made)
    heads = [one.text for one in root.iter("h2")]
    assert heads == [
        "Results",
        "Over time",
        "By job",
        "By rack",
        "By team",
        "Assumptions",
    ]
    assert "<script" not in made
    assert "onload='x'" not in made
    assert ">jobs</th>" in made


def test_nodes_that_never_go_down_are_not_drawn():
    quiet = page_of([], [])
    assert "Nodes down" in sim_report(quiet)
    calm = RunPage(
        **{name: getattr(quiet, name) for name in quiet.__struct_fields__} | {"down": []}
    )
    assert "Nodes down" not in sim_report(calm)


def test_the_page_of_a_comparison_lays_policies_over_each_other():
    curves = {"fifo": [(0.0, 0.1)], ODD: [(0.0, 0.2)]}
    times = {"fifo": [1.0, 2.0], ODD: [0.0]}
    one = Overlay(
        title=ODD,
        table=(["figure", "fifo"], [["wait", "2 h"]]),
        scores=(["figure", ">before"], []),
        allocated=curves,
        waiting=curves,
        waits_s=times,
        jcts_s=times,
    )
    made = compare_report(
        ComparePage(title="T", lead="L", overlays=[one], failed=[ODD], notes=[ODD])
    )
    root = ElementTree.fromstring(made)
    assert len([one for one in root.iter() if one.tag.endswith("svg")]) == 4
    assert [one.text for one in root.iter("h2")][1:] == ["Failed runs", "Notes"]
    assert "Scorecard" not in made


def test_times_are_said_in_the_unit_that_people_would_use():
    assert [span(one) for one in (5, 60, 5_400, 86_400, 2_592_000)] == [
        "5 s",
        "1 min",
        "1.5 h",
        "1 d",
        "30 d",
    ]
    assert [time_unit(one).name for one in (10, 600, 20_000, 1e6)] == [
        "seconds",
        "minutes",
        "hours",
        "days",
    ]


def test_a_wait_of_nothing_still_counts_in_the_shares():
    drawn = times_chart("Waits", "", {"a": [0.0, 0.0, 0.0, 100.0]})
    assert "75% at 1 s" in drawn or "100% at 1.67 min" in drawn


def test_a_line_of_blocks_keeps_its_whole():
    assert shares_line([0.0, 0.5, 1.0], 80) == " \u2584\u2588"
    assert len(shares_line([0.5] * 400, 80)) == 80
    assert shares_line([], 80) == ""


def test_levels_end_with_their_share():
    lines = levels({"at once": 0.25, "within 1 h": 1.0}).plain.splitlines()
    assert [line.split()[-1] for line in lines] == ["25%", "100%"]
    assert len(lines[0]) == len(lines[1])
