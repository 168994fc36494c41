"""`tenfold alarms`: Prometheus alerting rules and Grafana dashboards for the control plane."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from tenfold.cli.arguments import Force
from tenfold.cli.output import print_file, print_json, print_note
from tenfold.model.errors import InputError
from tenfold.report.alarm_rules import Thresholds, alarms, rules_text

app = App(
    name="alarms",
    help="Write Prometheus alerting rules and Grafana dashboards.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ThresholdOptions:
    """The threshold of each alarm."""

    budget_days: Annotated[
        int, Parameter(help="Period of GPU-hour budgets, in days (default: 30)")
    ] = 30
    quota_share: Annotated[
        float,
        Parameter(
            help="Alert if a team's average use over a week exceeds this share of its"
            " quota (default: 1)"
        ),
    ] = 1.0
    idle_share: Annotated[
        float,
        Parameter(help="Alert if more than this share of allocated GPUs is idle (default: 0.2)"),
    ] = 0.2
    goodput_least: Annotated[
        float, Parameter(help="Alert if less than this share of GPU time is useful (default: 0.8)")
    ] = 0.8
    wait_s: Annotated[
        float,
        Parameter(
            help="Alert if more than one job in ten waits longer than this, in "
            "seconds (default: 3600)"
        ),
    ] = 3_600.0
    waiting_jobs: Annotated[
        int, Parameter(help="Alert if more than this many jobs are pending (default: 1000)")
    ] = 1_000
    commit_s: Annotated[
        float,
        Parameter(help="Alert if journal writes take longer than this, in seconds (default: 1)"),
    ] = 1.0
    failures_per_hour: Annotated[
        float, Parameter(help="Alert if more than this many attempts fail in an hour (default: 10)")
    ] = 10.0
    recovery_s: Annotated[
        float,
        Parameter(
            help="Alert if failed jobs take longer than this on average to restart, in seconds "
            "(default: 600)"
        ),
    ] = 600.0
    nodes_down_share: Annotated[
        float, Parameter(help="Alert if more than this share of nodes is down (default: 0.05)")
    ] = 0.05
    loop_starts: Annotated[
        int,
        Parameter(
            help="Alert if the scheduling loop restarts more than this "
            "many times in an hour (default: 3)"
        ),
    ] = 3


DEFAULT_THRESHOLDS = ThresholdOptions()
PARTS = frozenset({"idle_share", "goodput_least", "nodes_down_share"})
"""Thresholds that are a part of a whole; a team may use more than its quota."""


@app.command(name="rules")
def rules_command(
    *,
    out: Annotated[Path | None, Parameter(help="Output file (default: standard output)")] = None,
    force: Force = False,
    budget: Annotated[
        list[str] | None,
        Parameter(negative="", help="GPU-hour budget of a team, as TEAM=HOURS; repeatable"),
    ] = None,
    limits: ThresholdOptions = DEFAULT_THRESHOLDS,
    as_json: Annotated[
        bool,
        Parameter(name="--json", negative="", help="Print JSON"),
    ] = False,
) -> None:
    """Write Prometheus alerting rules for budgets, wasted GPU time, queues and failures.

    The default thresholds are starting points; set your own with options.
    """
    given = {one.name: getattr(limits, one.name) for one in fields(limits)}
    for name, value in given.items():
        option, is_part = f"--{name.replace('_', '-')}", name in PARTS
        if not 0 <= value < float("inf") or (is_part and value > 1):
            bounds = "from 0 to 1" if is_part else "at least 0"
            raise InputError(
                "wrong-value",
                f"`{option}` must be {bounds}, got {value:,g}",
                "write 20% as 0.2" if is_part else "use a larger number",
                field=option,
            )
    if limits.budget_days < 1:
        raise InputError(
            "wrong-value",
            f"`--budget-days` must be at least 1, got {limits.budget_days:g}",
            "use a larger number",
            field="--budget-days",
        )
    thresholds = Thresholds(budgets=dict(_budget(one) for one in budget or ()), **given)
    if as_json:
        print_json(alarms(thresholds))
        return
    text = rules_text(thresholds)
    if out is None:
        print_file(text)
        return
    from tenfold.files.core.write import write_new_file  # noqa: PLC0415

    write_new_file(out, text, force=force)
    print_note(f"wrote alerting rules to {out}")


@app.command(name="dashboard")
def dashboard_command(
    name: Annotated[
        Literal["fleet", "teams", "control-plane"],
        Parameter(help="Dashboard to write: fleet and queue, teams, or the control plane itself"),
    ],
    /,
    *,
    out: Annotated[Path | None, Parameter(help="Output file (default: standard output)")] = None,
    force: Force = False,
) -> None:
    """Write a Grafana dashboard for the control plane's metrics, as JSON to import."""
    from tenfold.report.dashboards import DASHBOARDS, dashboard_text  # noqa: PLC0415

    text = dashboard_text(DASHBOARDS[name])
    if out is None:
        print_file(text)
        return
    from tenfold.files.core.write import write_new_file  # noqa: PLC0415

    write_new_file(out, text, force=force)
    print_note(f"wrote the dashboard to {out}")


def _budget(text: str) -> tuple[str, float]:
    team, _, hours = text.rpartition("=")
    try:
        found = float(hours)
    except ValueError:
        found = -1.0
    if not team or not 0 <= found < float("inf"):
        raise InputError(
            "wrong-value",
            f"`--budget` must be TEAM=HOURS, got `{text}`",
            "write it like `--budget vision=12000`",
            field="--budget",
        )
    return team, found
