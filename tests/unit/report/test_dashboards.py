"""Dashboards have the form that Grafana imports, and ask for metrics that the control plane has."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from engines.prometheus import promtool
from tenfold.cli.main import main
from tenfold.report.alarm_rules import Thresholds, alarms
from tenfold.report.dashboards import DASHBOARDS, Dashboard, dashboard_json, dashboard_text

DOCS = Path(__file__).parents[3] / "docs" / "reference" / "http-api.md"
METRIC = re.compile(r"\btenfold_[a-z0-9_]+")
OF_HISTOGRAMS = ("_bucket", "_count", "_sum")
UNITS = ("short", "s", "percentunit", "opm")
"""Grafana's names of the units that are used here."""
EVERY = pytest.mark.parametrize("one", DASHBOARDS.values(), ids=list(DASHBOARDS))


def documented() -> set[str]:
    """Return the metrics in the reference, which a test compares with those that exist."""
    rows = [line for line in DOCS.read_text().splitlines() if line.startswith("| `tenfold_")]
    return {name for line in rows for name in METRIC.findall(line.split("|")[1])}


def expressions(one: Dashboard) -> list[str]:
    return [query.expr for panel in one.panels for query in panel.queries]


def keys(value: dict[str, Any], **types: type | tuple[type, ...]) -> None:
    """Check that an object has these keys, of these types, and no others."""
    assert value.keys() == types.keys()
    for name, kind in types.items():
        assert isinstance(value[name], kind), name


@EVERY
def test_every_query_names_metrics_that_exist(one: Dashboard):
    known = documented()
    for expr in expressions(one):
        for name in METRIC.findall(expr):
            base = re.sub(f"({'|'.join(OF_HISTOGRAMS)})$", "", name)
            assert name in known or base in known, (name, expr)


def test_every_metric_of_an_alarm_is_on_a_dashboard():
    shown = {
        name
        for one in DASHBOARDS.values()
        for expr in expressions(one)
        for name in METRIC.findall(expr)
    }
    rules = alarms(Thresholds(budgets={"red": 1}))
    wanted = {
        name for group in rules.values() for rule in group for name in METRIC.findall(rule.expr)
    }
    # The mean of a histogram is shown as its quantiles.
    missing = {name for name in wanted - shown if not name.endswith(("_sum", "_count"))}
    assert not missing


@EVERY
def test_a_dashboard_has_the_form_of_grafanas_schema(one: Dashboard):
    """The keys and types are those of the dashboard kind of Grafana 10 and 11 (schema 39)."""
    found = dashboard_json(one)
    assert json.loads(dashboard_text(one)) == found
    keys(
        found,
        uid=str,
        title=str,
        description=str,
        tags=list,
        timezone=str,
        editable=bool,
        graphTooltip=int,
        schemaVersion=int,
        version=int,
        refresh=str,
        time=dict,
        annotations=dict,
        links=list,
        templating=dict,
        panels=list,
    )
    # Grafana takes at most 40 of these characters.
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,40}", found["uid"])
    (variable,) = found["templating"]["list"]
    assert (variable["name"], variable["type"], variable["query"]) == (
        "datasource",
        "datasource",
        "prometheus",
    )
    assert [panel["id"] for panel in found["panels"]] == list(range(1, len(one.panels) + 1))
    for panel in found["panels"]:
        keys(
            panel,
            id=int,
            type=str,
            title=str,
            description=str,
            datasource=dict,
            gridPos=dict,
            fieldConfig=dict,
            options=dict,
            targets=list,
        )
        assert panel["type"] in ("timeseries", "stat")
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        refs = [target["refId"] for target in panel["targets"]]
        assert refs == [chr(ord("A") + number) for number in range(len(refs))]
        for target in panel["targets"]:
            keys(target, refId=str, datasource=dict, expr=str, legendFormat=str, range=bool)
            assert target["datasource"] == panel["datasource"]
            assert target["datasource"]["uid"] == "${datasource}"


@EVERY
def test_panels_do_not_overlap(one: Dashboard):
    taken: set[tuple[int, int]] = set()
    for panel in dashboard_json(one)["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells


@pytest.mark.engine
def test_promtool_reads_every_query(tmp_path: Path):
    rules = [
        f"      - record: tenfold:panel{number}\n        expr: {json.dumps(expr)}\n"
        for number, expr in enumerate(
            expr for one in DASHBOARDS.values() for expr in expressions(one)
        )
    ]
    file = tmp_path / "queries.yml"
    file.write_text("groups:\n  - name: panels\n    rules:\n" + "".join(rules))
    status, said = promtool("check", "rules", str(file))
    assert status == 0, said
    assert f"{len(rules)} rules found" in said


def test_the_command_writes_a_file_that_can_be_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    for name, one in DASHBOARDS.items():
        assert main(["alarms", "dashboard", name]) == 0
        assert json.loads(capsys.readouterr().out) == dashboard_json(one)
    out = tmp_path / "fleet.json"
    assert main(["alarms", "dashboard", "fleet", "--out", str(out)]) == 0
    assert json.loads(out.read_text())["uid"] == "tenfold-fleet"
    assert main(["alarms", "dashboard", "fleet", "--out", str(out)]) == 2
