"""Grafana dashboards over the control plane's metrics, as JSON that Grafana imports.

The keys and values are those of `@grafana/schema` 11.6. The data source is a variable of each
dashboard, so a file can be imported unchanged. Sums are over all scraped control planes: standbys
export no figures of jobs and nodes, so none counts twice.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from msgspec import Struct

SCHEMA_VERSION = 39
"""Of Grafana 10 and 11; later versions upgrade it on import."""
COLUMNS = 24
"""Width of a dashboard."""
SOURCE: Mapping[str, str] = {"type": "prometheus", "uid": "${datasource}"}
QUANTILES = (0.5, 0.9, 0.99)


class Query(Struct, frozen=True):
    """One query of a panel, and how its series are named."""

    expr: str
    legend: str = ""


class Panel(Struct, frozen=True, kw_only=True):
    """One panel: a chart over time, or the latest value."""

    title: str
    queries: tuple[Query, ...]
    about: str
    """What it shows, and what to check first."""
    unit: str = "short"
    kind: Literal["timeseries", "stat"] = "timeseries"
    stacked: bool = False
    most: float | None = None
    """Upper end of the axis, where it has one."""


class Dashboard(Struct, frozen=True, kw_only=True):
    """One dashboard."""

    name: str
    title: str
    about: str
    panels: tuple[Panel, ...]


def dashboard_text(one: Dashboard) -> str:
    """Return a dashboard as JSON for Grafana's import."""
    return json.dumps(dashboard_json(one), indent=2) + "\n"


def dashboard_json(one: Dashboard) -> dict[str, Any]:
    """Return a dashboard in Grafana's format."""
    return {
        "uid": f"tenfold-{one.name}",
        "title": one.title,
        "description": one.about,
        "tags": ["tenfold"],
        "timezone": "",
        "editable": True,
        "graphTooltip": 1,
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "refresh": "30s",
        "time": {"from": "now-24h", "to": "now"},
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [_SOURCE_VARIABLE]},
        "panels": list(_panels(one.panels)),
    }


_SOURCE_VARIABLE: dict[str, Any] = {
    "name": "datasource",
    "label": "Data source",
    "type": "datasource",
    "query": "prometheus",
    "options": [],
    "hide": 0,
    "refresh": 1,
    "regex": "",
    "multi": False,
    "includeAll": False,
    "skipUrlSync": False,
}


def _panels(panels: Sequence[Panel]) -> Iterator[dict[str, Any]]:
    """Yield panels from left to right: six values or two charts in a row."""
    x, y, row_height = 0, 0, 0
    for number, panel in enumerate(panels, start=1):
        width, height = (4, 4) if panel.kind == "stat" else (12, 8)
        if x + width > COLUMNS:
            x, y = 0, y + row_height
        yield _panel(number, panel, {"h": height, "w": width, "x": x, "y": y})
        x, row_height = x + width, height


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    defaults: dict[str, Any] = {"unit": panel.unit, "min": 0}
    if panel.most is not None:
        defaults["max"] = panel.most
    if panel.kind == "timeseries":
        stacking = {"mode": "normal" if panel.stacked else "none", "group": "A"}
        defaults["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 30 if panel.stacked else 0,
            "showPoints": "never",
            "stacking": stacking,
        }
        options: dict[str, Any] = {
            "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    else:
        options = {
            "colorMode": "none",
            "graphMode": "area",
            "justifyMode": "auto",
            "orientation": "auto",
            "textMode": "auto",
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
        }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.about,
        "datasource": dict(SOURCE),
        "gridPos": place,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + place_of),
                "datasource": dict(SOURCE),
                "expr": query.expr,
                "legendFormat": query.legend or "__auto",
                "range": True,
            }
            for place_of, query in enumerate(panel.queries)
        ],
    }


def _share(part: str, whole: str) -> str:
    return f"{part} / ({whole} > 0)"


def _quantiles(metric: str, window: str) -> tuple[Query, ...]:
    rates = f"sum by (le) (rate({metric}_bucket[{window}]))"
    return tuple(
        Query(f"histogram_quantile({share:g}, {rates})", f"P{share * 100:.0f}")
        for share in QUANTILES
    )


_HELD = 'sum(tenfold_gpus{state="held"})'
_USABLE = 'sum(tenfold_gpus{state=~"held|free"})'
_GOODPUT = _share(
    "sum(increase(tenfold_useful_gpu_seconds_total[6h]))",
    "sum(increase(tenfold_allocated_gpu_seconds_total[6h]))",
)
_PENDING = "sum(tenfold_queue_depth_jobs)"

FLEET = Dashboard(
    name="fleet",
    title="Tenfold: fleet and queue",
    about="GPUs, nodes, jobs, waits and failures.",
    panels=(
        Panel(
            title="GPUs allocated",
            kind="stat",
            unit="percentunit",
            most=1,
            queries=(Query(_share(_HELD, _USABLE)),),
            about="Share of the GPUs of nodes in service that jobs hold.",
        ),
        Panel(
            title="Pending jobs",
            kind="stat",
            queries=(Query(_PENDING),),
            about="`tenfold job list --state pending` shows the reasons.",
        ),
        Panel(
            title="Running jobs",
            kind="stat",
            queries=(Query('sum(tenfold_jobs{state="running"})'),),
            about="Jobs whose processes all run.",
        ),
        Panel(
            title="P90 queue wait, last hour",
            kind="stat",
            unit="s",
            queries=(_quantiles("tenfold_queue_wait_seconds", "1h")[1],),
            about="Nine of ten jobs that started in the last hour waited no longer.",
        ),
        Panel(
            title="Goodput, last 6 hours",
            kind="stat",
            unit="percentunit",
            most=1,
            queries=(Query(_GOODPUT),),
            about="Share of the GPU time of ended attempts that was useful.",
        ),
        Panel(
            title="Nodes down",
            kind="stat",
            queries=(Query('sum(tenfold_nodes{state="down"})'),),
            about="`tenfold node list` shows them with the cause.",
        ),
        Panel(
            title="GPUs by state",
            stacked=True,
            queries=(Query("sum by (state) (tenfold_gpus)", "{{state}}"),),
            about="Held by jobs, free, on cordoned nodes, and on nodes that are down.",
        ),
        Panel(
            title="Jobs by state",
            queries=(
                Query(
                    'sum by (state) (tenfold_jobs{state=~"pending|starting|running|stopping"})',
                    "{{state}}",
                ),
            ),
            about="Jobs that have not ended.",
        ),
        Panel(
            title="Queue wait of jobs that started",
            unit="s",
            queries=_quantiles("tenfold_queue_wait_seconds", "1h"),
            about="Time from submission to first start, over the last hour.",
        ),
        Panel(
            title="Jobs submitted and ended",
            unit="opm",
            queries=(
                Query("sum(rate(tenfold_submitted_jobs_total[5m])) * 60", "submitted"),
                Query("sum(rate(tenfold_queue_wait_seconds_count[5m])) * 60", "started"),
            ),
            about="Jobs a minute.",
        ),
        Panel(
            title="GPU time by how attempts ended",
            unit="short",
            stacked=True,
            queries=(
                Query(
                    "sum by (ended) (rate(tenfold_allocated_gpu_seconds_total[1h]))", "{{ended}}"
                ),
            ),
            about="GPUs on average; counted when an attempt ends.",
        ),
        Panel(
            title="Idle GPUs",
            queries=(
                Query("sum(tenfold_idle_gpus)", "idle"),
                Query(_HELD, "allocated"),
            ),
            about="Allocated GPUs whose jobs do not use them; `tenfold fleet idle` lists the jobs.",
        ),
        Panel(
            title="Failed attempts",
            queries=(
                Query("sum(increase(tenfold_failure_detection_seconds_count[1h]))", "failures"),
            ),
            about="In the last hour. `tenfold job list --state failed` lists the jobs that failed.",
        ),
        Panel(
            title="Time until failed jobs run again",
            unit="s",
            queries=_quantiles("tenfold_failure_recovery_seconds", "6h"),
            about="From the end of their processes, over the last 6 hours.",
        ),
        Panel(
            title="Nodes by state",
            stacked=True,
            queries=(
                Query("sum by (state) (tenfold_nodes)", "{{state}}"),
                Query("sum(tenfold_blamed_nodes)", "cordoned after job failures"),
            ),
            about="`tenfold node list` shows the causes.",
        ),
        Panel(
            title="Alarms that fire",
            queries=(
                Query(
                    'sum by (alertname) (ALERTS{alertname=~"Tenfold.+",alertstate="firing"})',
                    "{{alertname}}",
                ),
            ),
            about="Of the rules that `tenfold alarms rules` writes.",
        ),
    ),
)
TEAMS = Dashboard(
    name="teams",
    title="Tenfold: teams",
    about="What each team holds, its limit, what it uses and what is idle.",
    panels=(
        Panel(
            title="GPUs held by team",
            stacked=True,
            queries=(Query("sum by (team) (tenfold_team_held_gpus)", "{{team}}"),),
            about="By running jobs.",
        ),
        Panel(
            title="Use of quota",
            unit="percentunit",
            queries=(
                Query(
                    "sum by (team) (tenfold_team_held_gpus)"
                    " / (sum by (team) (tenfold_team_quota_gpus) > 0)",
                    "{{team}}",
                ),
            ),
            about="Above 100%, a team borrows GPUs that others do not use.",
        ),
        Panel(
            title="GPU-hours a day",
            queries=(
                Query(
                    "sum by (team) (increase(tenfold_team_gpu_seconds_total[1d])) / 3600",
                    "{{team}}",
                ),
            ),
            about="Over the last 24 hours.",
        ),
        Panel(
            title="Idle GPUs by team",
            queries=(Query("sum by (team) (tenfold_idle_gpus)", "{{team}}"),),
            about="`tenfold fleet idle` lists the jobs and what they cost.",
        ),
        Panel(
            title="Idle jobs by team",
            queries=(Query("sum by (team) (tenfold_idle_jobs)", "{{team}}"),),
            about="Jobs that hold GPUs without using them.",
        ),
        Panel(
            title="Idle GPU-hours a day",
            queries=(
                Query("sum(increase(tenfold_idle_gpu_seconds_total[1d])) / 3600", "GPU-hours"),
            ),
            about="Counted when a job is active again or ends.",
        ),
        Panel(
            title="GPU utilisation on this machine",
            unit="percentunit",
            most=1,
            queries=(Query("tenfold_gpu_utilisation_ratio", "{{node}} GPU {{gpu}}"),),
            about="Of the GPUs on the machine of the control plane, where they can be read.",
        ),
        Panel(
            title="GPU memory on this machine",
            unit="percentunit",
            most=1,
            queries=(
                Query(
                    "tenfold_gpu_memory_used_bytes / tenfold_gpu_memory_size_bytes",
                    "{{node}} GPU {{gpu}}",
                ),
            ),
            about="Of the GPUs on the machine of the control plane, where they can be read.",
        ),
    ),
)
CONTROL_PLANE = Dashboard(
    name="control-plane",
    title="Tenfold: control plane",
    about="The scheduling loop, the journal, requests, and which control plane leads.",
    panels=(
        Panel(
            title="Accepts jobs",
            kind="stat",
            queries=(Query("max(tenfold_loop_up)"),),
            about="1 while the scheduling loop runs; `/readyz` shows the cause if not.",
        ),
        Panel(
            title="Restarts of the loop, last hour",
            kind="stat",
            queries=(Query("sum(increase(tenfold_loop_starts_total[1h]))"),),
            about="Check the journal's disk first, then the server log.",
        ),
        Panel(
            title="P99 journal write",
            kind="stat",
            unit="s",
            queries=(_quantiles("tenfold_journal_commit_seconds", "15m")[2],),
            about="Submissions wait for it.",
        ),
        Panel(
            title="Held jobs",
            kind="stat",
            queries=(Query("sum(tenfold_held_jobs)"),),
            about="Held because of an internal error; the server log has the traceback.",
        ),
        Panel(
            title="Takeovers, last hour",
            kind="stat",
            queries=(Query("sum(increase(tenfold_lease_takeovers_total[1h]))"),),
            about="Where control planes share a journal; restarts of the loop count, too.",
        ),
        Panel(
            title="Clock offset",
            kind="stat",
            unit="s",
            queries=(Query("max(tenfold_clock_ahead_seconds)"),),
            about="How far event times are ahead of the machine's clock.",
        ),
        Panel(
            title="Leader",
            queries=(Query("max by (instance) (tenfold_leader)", "{{instance}}"),),
            most=1,
            about="1 for the leader, 0 for a standby.",
        ),
        Panel(
            title="Time left on the lease",
            unit="s",
            queries=(
                Query("max(tenfold_lease_left_seconds)", "left"),
                Query("max(tenfold_lease_renewal_seconds)", "last renewal took"),
            ),
            about="Near 0, the leader loses its lease: check the database and the load.",
        ),
        Panel(
            title="Refused of stale leaders",
            queries=(
                Query(
                    "sum by (refused_by) (increase(tenfold_stale_writes_total[1h]))",
                    "{{refused_by}}",
                ),
            ),
            about="Writes, orders and requests in the last hour; nothing of them took effect.",
        ),
        Panel(
            title="Scheduling cycles and events a second",
            queries=(
                Query("sum(rate(tenfold_loop_cycles_total[5m]))", "cycles"),
                Query("sum(rate(tenfold_journal_events_total[5m]))", "events"),
            ),
            about="Decisions, and events written to the journal.",
        ),
        Panel(
            title="Journal writes",
            unit="s",
            queries=_quantiles("tenfold_journal_commit_seconds", "5m"),
            about="Duration of commits.",
        ),
        Panel(
            title="Requests a second, by status",
            queries=(
                Query(
                    "sum by (status) (rate(tenfold_http_request_seconds_count[5m]))", "{{status}}"
                ),
            ),
            about="HTTP requests to all control planes.",
        ),
        Panel(
            title="Duration of requests",
            unit="s",
            queries=_quantiles("tenfold_http_request_seconds", "5m"),
            about="By quantile over all routes; streams count when they end.",
        ),
        Panel(
            title="Rejected requests",
            queries=(
                Query("sum by (reason) (rate(tenfold_http_rejected_total[5m]))", "{{reason}}"),
            ),
            about="Rejected by a limit on clients, per second.",
        ),
        Panel(
            title="Shadow policy",
            queries=(
                Query("sum(rate(tenfold_shadow_cycles_differing_total[1h]))", "cycles that differ"),
                Query("sum(rate(tenfold_shadow_cycles_total[1h]))", "cycles"),
                Query("sum(tenfold_shadow_behind_events)", "events not read yet"),
            ),
            about="With `tenfold up --shadow`.",
        ),
        Panel(
            title="Jobs with usage samples",
            queries=(Query("sum by (measure) (tenfold_measured_jobs)", "{{measure}}"),),
            about="Measured by GPU use or by CPU time; a job without samples never counts as idle.",
        ),
    ),
)
DASHBOARDS: Mapping[str, Dashboard] = {one.name: one for one in (FLEET, TEAMS, CONTROL_PLANE)}
