"""Prometheus alerting rules over the control plane's metrics.

They cover four problems: teams over budget, wasted GPU time, long queues, and failures. Every
default threshold is an assumption, as the file says, and can be set; none fits all fleets.
"""

import json
from collections.abc import Iterator, Mapping

from msgspec import Struct

HEAD = """\
# Alarms for Tenfold, written by `tenfold alarms rules`. Every default threshold is an assumption:
# to change one, write the file again with other options instead of editing it.
groups:
"""


class Thresholds(Struct, frozen=True, kw_only=True):
    """When each alarm fires."""

    budgets: Mapping[str, float] = {}
    """GPU-hours that a team may use in `budget_days`."""
    budget_days: int = 30
    quota_share: float = 1.0
    """Share of its quota that a team may hold on average over a week."""
    idle_share: float = 0.2
    """Share of held GPUs that may be idle."""
    goodput_least: float = 0.8
    """Share of the GPU time of ended attempts that must be useful."""
    wait_s: float = 3_600.0
    """Nine of ten jobs must start within this."""
    waiting_jobs: int = 1_000
    commit_s: float = 1.0
    """99 of 100 journal writes must finish within this."""
    failures_per_hour: float = 10.0
    recovery_s: float = 600.0
    """Failed jobs must run again within this, on average."""
    nodes_down_share: float = 0.05
    loop_starts: int = 3
    """Restarts of the scheduling loop allowed within an hour."""


class Alarm(Struct, frozen=True, kw_only=True):
    """One alarm."""

    name: str
    expr: str
    lasts: str
    """How long the condition must hold before the alarm fires."""
    severity: str
    summary: str
    do: str
    """What to check first."""


def alarms(limits: Thresholds) -> dict[str, list[Alarm]]:
    """Return the alarms by group."""
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
    # A JSON string is also a YAML string.
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
        summary="team {{ $labels.team }} averaged more GPUs than its quota over the last week",
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
            summary=f"team {{{{ $labels.team }}}} exceeded its budget of {hours:,g} GPU-hours",
            do=f"the budget covers {days} days; `tenfold job list --team TEAM` shows its jobs",
        )


def _experiments(limits: Thresholds) -> Iterator[Alarm]:
    held = 'sum(tenfold_gpus{state="held"})'
    yield Alarm(
        name="TenfoldGpusIdle",
        expr=f"sum(tenfold_idle_gpus) / ({held} > 0) > {limits.idle_share:g}",
        lasts="30m",
        severity="warning",
        summary="{{ $value | humanizePercentage }} of allocated GPUs are idle",
        do="`tenfold fleet idle` lists the jobs and what they cost",
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
        summary="only {{ $value | humanizePercentage }} of GPU time was useful",
        do="jobs fail or are stopped before a checkpoint: check failures and checkpoint intervals",
    )


def _deployment(limits: Thresholds) -> Iterator[Alarm]:
    waits = "sum by (le) (rate(tenfold_queue_wait_seconds_bucket[1h]))"
    yield Alarm(
        name="TenfoldQueueWaitLong",
        expr=f"histogram_quantile(0.9, {waits}) > {limits.wait_s:.15g}",
        lasts="15m",
        severity="warning",
        summary="P90 queue wait is {{ $value | humanizeDuration }}",
        do="`tenfold job why` explains pending jobs; `tenfold grow` shows what runs out next",
    )
    yield Alarm(
        name="TenfoldQueueLong",
        expr=f"sum(tenfold_queue_depth_jobs) > {limits.waiting_jobs}",
        lasts="30m",
        severity="warning",
        summary="{{ $value }} jobs are pending",
        do="`tenfold job list --state pending` shows the reasons",
    )
    commits = "sum by (le) (rate(tenfold_journal_commit_seconds_bucket[15m]))"
    yield Alarm(
        name="TenfoldAdmissionSlow",
        expr=f"histogram_quantile(0.99, {commits}) > {limits.commit_s:.15g}",
        lasts="10m",
        severity="warning",
        summary="journal writes take {{ $value | humanizeDuration }}, which delays submissions",
        do="check the journal's disk or database",
    )


_HELD = Alarm(
    name="TenfoldJobsHeld",
    expr="sum(tenfold_held_jobs) > 0",
    lasts="0m",
    severity="critical",
    summary="{{ $value }} jobs are held because of an internal error",
    do="`tenfold job list --state pending` shows them; the server log has the traceback",
)


def _production(limits: Thresholds) -> Iterator[Alarm]:
    yield Alarm(
        name="TenfoldDown",
        expr="absent(tenfold_loop_up) == 1 or min(tenfold_loop_up) == 0",
        lasts="5m",
        severity="critical",
        summary="the control plane is not accepting jobs",
        do="`/readyz` shows the cause; running jobs are not affected",
    )
    yield Alarm(
        name="TenfoldLoopRestarts",
        expr=f"sum(increase(tenfold_loop_starts_total[1h])) > {limits.loop_starts}",
        lasts="0m",
        severity="critical",
        summary="the scheduling loop restarted {{ $value | humanize }} times in the last hour",
        do="check the journal's disk first, then the server log",
    )
    yield _HELD
    nodes = "sum(tenfold_nodes)"
    yield Alarm(
        name="TenfoldNodesDown",
        expr=(
            f'sum(tenfold_nodes{{state="down"}}) / ({nodes} > 0) > {limits.nodes_down_share:g}'
            " or sum(tenfold_blamed_nodes) > 0"
        ),
        lasts="5m",
        severity="critical",
        summary="nodes are down, or were cordoned because jobs kept failing on them",
        do="`tenfold node list` shows them with the cause",
    )
    failed = "sum(increase(tenfold_failure_detection_seconds_count[1h]))"
    yield Alarm(
        name="TenfoldFailuresMany",
        expr=f"{failed} > {limits.failures_per_hour:g}",
        lasts="0m",
        severity="warning",
        summary="{{ $value | humanize }} attempts failed in the last hour",
        do="`tenfold job list --state failed` lists the jobs",
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
        summary="failed jobs take {{ $value | humanizeDuration }} to restart",
        do="too few spare nodes, or a long queue: see `tenfold sim failures`",
    )
