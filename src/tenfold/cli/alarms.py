"""`tenfold alarms`: rules that let Prometheus tell when something goes wrong."""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.output import print_json
from tenfold.model.errors import InputError
from tenfold.report.alarm_rules import Thresholds, alarms, rules_text

app = App(
    name="alarms",
    help="Write alarms over the control plane's metrics.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Limits:
    """When each alarm fires; each is an option of its own."""

    budget_days: Annotated[int, Parameter(help="Days that budgets are for. 30.")] = 30
    quota_share: Annotated[
        float, Parameter(help="Of its quota, that a team may hold over a week. 1.")
    ] = 1.0
    idle_share: Annotated[float, Parameter(help="Of GPUs that are held, that may idle. 0.2.")] = 0.2
    goodput_least: Annotated[float, Parameter(help="Of GPU time, that must be of use. 0.8.")] = 0.8
    wait_s: Annotated[
        float, Parameter(help="Seconds within which nine of ten jobs start. 3600.")
    ] = 3_600.0
    waiting_jobs: Annotated[int, Parameter(help="Jobs that may wait. 1000.")] = 1_000
    commit_s: Annotated[
        float, Parameter(help="Seconds that a write to the journal may take. 1.")
    ] = 1.0
    failures_per_hour: Annotated[
        float, Parameter(help="Attempts that may fail within an hour. 10.")
    ] = 10.0
    recovery_s: Annotated[
        float, Parameter(help="Seconds from a failure to running again, on average. 600.")
    ] = 600.0
    nodes_down_share: Annotated[float, Parameter(help="Share of nodes that may be lost. 0.05.")] = (
        0.05
    )
    loop_starts: Annotated[
        int, Parameter(help="Times that the loop may begin anew within an hour. 3.")
    ] = 3


USUAL = Limits()


@app.command(name="rules")
def rules_command(
    *,
    out: Annotated[Path | None, Parameter(help="Write the file here. Standard output.")] = None,
    force: Annotated[bool, Parameter(negative="", help="Write over an existing file.")] = False,
    budget: Annotated[
        list[str] | None,
        Parameter(negative="", help="GPU-hours of a team, as TEAM=HOURS; once for each team."),
    ] = None,
    limits: Limits = USUAL,
    as_json: Annotated[
        bool, Parameter(name="--json", negative="", help="Print the alarms as JSON.")
    ] = False,
) -> None:
    """Write a rule file for Prometheus: budgets, slow work, queues and failures.

    Every threshold is an assumption; the options set others.
    """
    given = {one.name: getattr(limits, one.name) for one in fields(limits)}
    for name, value in given.items():
        if not 0 <= value < float("inf"):
            raise InputError(
                "wrong-value",
                f"--{name.replace('_', '-')} is {value:g}",
                "give a number that is not below 0",
                field=f"--{name.replace('_', '-')}",
            )
    if limits.budget_days < 1:
        raise InputError(
            "wrong-value",
            f"--budget-days is {limits.budget_days}",
            "give a day at least",
            field="--budget-days",
        )
    thresholds = Thresholds(budgets=dict(_budget(one) for one in budget or ()), **given)
    if as_json:
        print_json(alarms(thresholds))
        return
    text = rules_text(thresholds)
    if out is None:
        sys.stdout.write(text)
        return
    from tenfold.files.core.write import write_new_file  # noqa: PLC0415

    write_new_file(out, text, force=force)
    sys.stderr.write(f"note: the alarms are written to {out}\n")


def _budget(text: str) -> tuple[str, float]:
    team, _, hours = text.rpartition("=")
    try:
        found = float(hours)
    except ValueError:
        found = -1.0
    if not team or not 0 <= found < float("inf"):
        raise InputError(
            "wrong-value",
            f"--budget is `{text}`, which is no team with GPU-hours",
            "write it like vision=12000",
            field="--budget",
        )
    return team, found
