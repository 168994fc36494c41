"""Alarms over the control plane's own metrics, as a rule file for Prometheus.

Four troubles have alarms: budgets that are overrun, experiments that are slow, deployment that
is held up, and production that is unreliable. Every threshold is an assumption, said so in the
file, and can be set; none of them is right for all fleets.
"""

import json
from collections.abc import Iterator, Mapping

from msgspec import Struct

HEAD = """\
# Alarms of tenfold, written by `tenfold alarms rules`. Every threshold is an assumption:
# write the file again with other values instead of editing it.
groups:
"""


class Thresholds(Struct, frozen=True, kw_only=True):
    """When each alarm fires."""

    budgets: Mapping[str, float] = {}
    """GPU-hours that a team may use in `budget_days`."""
    budget_days: int = 30
    quota_share: float = 1.0
    """Of its quota, that a team may hold on average over a week."""
    idle_share: float = 0.2
    """Of the GPUs that are held, that may idle."""
    goodput_least: float = 0.8
    """Of the GPU time of attempts that ended, that must have been of use."""
    wait_s: float = 3_600.0
    """Nine of ten jobs must start within so long."""
    waiting_jobs: int = 1_000
    commit_s: float = 1.0
    """99 of 100 writes to the journal must be done within so long."""
    failures_per_hour: float = 10.0
    recovery_s: float = 600.0
    """A job that failed must run again within so long, on average."""
    nodes_down_share: float = 0.05
    loop_starts: int = 3
    """Times that the loop may begin anew within an hour."""


class Alarm(Struct, frozen=True, kw_only=True):
    """One alarm."""

    name: str
    expr: str
    lasts: str
    """For how long it must be so before the alarm fires."""
    severity: str
    summary: str
    do: str
    """What to look at first."""


def alarms(limits: Thresholds) -> dict[str, list[Alarm]]:
    """Return the alarms by trouble."""
    return {
        "budget": list(_budget(limits)),
        "experiments": list(_experiments(limits)),
        "deployment": list(_deployment(limits)),
        "production": list(_production(limits)),
    }


def rules_text(limits: Thresholds) -> str:
    """Return the whole rule file, in YAML."""
    lines = [HEAD]
    for group, members in alarms(limits).items():
        lines.append(f"  - name: tenfold-{group}\n    rules:\n")
        lines += [_rule(one, group) for one in members]
    return "".join(lines)


def _rule(one: Alarm, group: str) -> str:
    # A string in JSON is one in YAML.
    return (
        f"      - alert: {one.name}\n"
        f"        expr: {json.dumps(one.expr)}\n"
        f"        for: {one.lasts}\n"
        f"        labels: {{severity: {one.severity}, trouble: {group}}}\n"
        f"        annotations:\n"
        f"          summary: {json.dumps(one.summary)}\n"
        f"          description: {json.dumps(one.do)}\n"
    )


def _budget(limits: Thresholds) -> Iterator[Alarm]:
    held = "sum by (team) (increase(tenfold_team_gpu_seconds_total[7d])) / 604800"
    quota = f"({limits.quota_share:g} * sum by (team) (tenfold_team_quota_gpus > 0))"
    yield Alarm(
        name="TenfoldTeamOverQuota",
        expr=f"{held} > {quota}",
        lasts="1h",
        severity="warning",
        summary="team {{ $labels.team }} held more GPUs over a week than it is promised",
        do="`tenfold fleet idle` and `tenfold job list --team TEAM` show what it holds",
    )
    days = limits.budget_days
    for team, hours in sorted(limits.budgets.items()):
        which = f"tenfold_team_gpu_seconds_total{{team={json.dumps(team)}}}[{days}d]"
        yield Alarm(
            name="TenfoldTeamOverBudget",
            expr=f"sum by (team) (increase({which})) / 3600 > {hours:.15g}",
            lasts="15m",
            severity="critical",
            summary=f"team {{{{ $labels.team }}}} used more than its {hours:,g} GPU-hours",
            do=f"the budget is for {days} days; `tenfold job list --team TEAM` shows what runs",
        )


def _experiments(limits: Thresholds) -> Iterator[Alarm]:
    held = 'sum(tenfold_gpus{state="held"})'
    yield Alarm(
        name="TenfoldGpusIdle",
        expr=f"sum(tenfold_idle_gpus) / ({held} > 0) > {limits.idle_share:g}",
        lasts="30m",
        severity="warning",
        summary="{{ $value | humanizePercentage }} of the GPUs that are held are not used",
        do="`tenfold fleet idle` names the jobs and what they cost",
    )
    spent = "sum(increase(tenfold_allocated_gpu_seconds_total[6h]))"
    yield Alarm(
        name="TenfoldGoodputLow",
        expr=(
            f"sum(increase(tenfold_useful_gpu_seconds_total[6h])) / ({spent} > 0)"
            f" < {limits.goodput_least:g}"
        ),
        lasts="30m",
        severity="warning",
        summary="only {{ $value | humanizePercentage }} of GPU time was of use",
        do="jobs fail or are stopped before they save: look at failures and checkpoint intervals",
    )


def _deployment(limits: Thresholds) -> Iterator[Alarm]:
    waits = "sum by (le) (rate(tenfold_queue_wait_seconds_bucket[1h]))"
    yield Alarm(
        name="TenfoldQueueWaitLong",
        expr=f"histogram_quantile(0.9, {waits}) > {limits.wait_s:.15g}",
        lasts="15m",
        severity="warning",
        summary="one job in ten waits for more than {{ $value | humanizeDuration }}",
        do="`tenfold job why` tells what jobs wait for; `tenfold grow` what runs out next",
    )
    yield Alarm(
        name="TenfoldQueueLong",
        expr=f"sum(tenfold_queue_depth_jobs) > {limits.waiting_jobs}",
        lasts="30m",
        severity="warning",
        summary="{{ $value }} jobs wait",
        do="`tenfold job list --state pending` tells for what",
    )
    commits = "sum by (le) (rate(tenfold_journal_commit_seconds_bucket[15m]))"
    yield Alarm(
        name="TenfoldAdmissionSlow",
        expr=f"histogram_quantile(0.99, {commits}) > {limits.commit_s:.15g}",
        lasts="10m",
        severity="warning",
        summary="writes to the journal take {{ $value | humanizeDuration }}, and so do submissions",
        do="the disk or the database of the journal is slow",
    )


def _production(limits: Thresholds) -> Iterator[Alarm]:
    yield Alarm(
        name="TenfoldDown",
        expr="absent(tenfold_loop_up) == 1 or min(tenfold_loop_up) == 0",
        lasts="5m",
        severity="critical",
        summary="the control plane takes no work",
        do="`/readyz` says why; jobs that run go on",
    )
    yield Alarm(
        name="TenfoldLoopRestarts",
        expr=f"sum(increase(tenfold_loop_starts_total[1h])) > {limits.loop_starts}",
        lasts="0m",
        severity="critical",
        summary="the loop began anew {{ $value | humanize }} times within an hour",
        do="its log names what failed; the journal's disk is the first to look at",
    )
    nodes = "sum(tenfold_nodes)"
    yield Alarm(
        name="TenfoldNodesDown",
        expr=(
            f'sum(tenfold_nodes{{state="down"}}) / ({nodes} > 0) > {limits.nodes_down_share:g}'
            " or sum(tenfold_blamed_nodes) > 0"
        ),
        lasts="5m",
        severity="critical",
        summary="nodes are lost, or are blamed for failing jobs",
        do="`tenfold node list` names them with the cause",
    )
    failed = "sum(increase(tenfold_failure_detection_seconds_count[1h]))"
    yield Alarm(
        name="TenfoldFailuresMany",
        expr=f"{failed} > {limits.failures_per_hour:g}",
        lasts="0m",
        severity="warning",
        summary="{{ $value | humanize }} attempts failed within an hour",
        do="`tenfold job list --state failed`",
    )
    again = "sum(increase(tenfold_failure_recovery_seconds_count[6h]))"
    yield Alarm(
        name="TenfoldRecoverySlow",
        expr=(
            f"sum(increase(tenfold_failure_recovery_seconds_sum[6h])) / ({again} > 0)"
            f" > {limits.recovery_s:.15g}"
        ),
        lasts="0m",
        severity="warning",
        summary="jobs that failed run again only after {{ $value | humanizeDuration }}",
        do="spares are too few, or the queue ahead of them too long: `tenfold sim failures`",
    )
