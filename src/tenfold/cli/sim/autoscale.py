"""`tenfold sim autoscale`: a service's replicas under an autoscaler, request by request."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Force, Json
from tenfold.cli.output import print_json, print_note, show, table
from tenfold.cli.progress import progress
from tenfold.files.core.write import write_new_file
from tenfold.files.series.requests import read_requests
from tenfold.files.series.simulated_service import read_simulated_service
from tenfold.model.service.simulated import RequestTrace, SimulatedService
from tenfold.model.units import HOUR, SECOND
from tenfold.report.charts.terminal import shares_line
from tenfold.report.figures import count
from tenfold.report.pages.autoscale import AutoscalePage, autoscale_page
from tenfold.report.reasons.render import render
from tenfold.sim.service.run import FAILED
from tenfold.study.autoscale.policies import AutoscalerName
from tenfold.study.autoscale.run import AutoscaleRequest, AutoscaleResult, run_autoscaler
from tenfold.study.autoscale.timeline import Timeline, timeline

CELLS = 60
STEPS_SHOWN = 200


def autoscale_command(
    *,
    requests: Annotated[Path, Parameter(help="Request trace (CSV or Parquet)")],
    service: Annotated[Path, Parameter(help="Simulation file of the service")],
    policy: Annotated[AutoscalerName, Parameter(help="Autoscaler (default: tenfold)")] = "tenfold",
    seed: Annotated[int, Parameter(help="Random seed (default: 0)")] = 0,
    html: Annotated[Path | None, Parameter(help="Also write an HTML report to this file")] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Simulate the replicas of a service under an autoscaler, request by request.

    The request trace has the columns t_s, input_tokens and output_tokens. The simulation file
    has the keys slots, prefill_tokens_per_s, decode_tokens_per_s, cold_start_s or cold_start_file,
    replicas_min, replicas_max, ttft_objective_s, attainment and more. Policy static is the
    smallest fixed number of replicas that meets the objective, chosen in hindsight.
    """
    spec, cold_starts_ms = read_simulated_service(service)
    trace = read_requests(requests)
    request = AutoscaleRequest(trace=trace, service=spec, cold_starts_ms=cold_starts_ms, seed=seed)
    with progress("requests", len(trace.arrived_ms)) as done:
        result = run_autoscaler(request, policy, done)
    if html is not None:
        write_new_file(html, _page(policy, trace, spec, result), force=force)
        print_note(f"report written to {html}")
    if as_json:
        print_json(result.figures)
    else:
        _show(policy, trace, spec, result)


def _show(
    policy: str, trace: RequestTrace, spec: SimulatedService, result: AutoscaleResult
) -> None:
    show(_headline(policy, trace, spec, result), "")
    show(table("", ["", ">"], _rows(spec, result)))
    line = timeline(result.run, trace, spec)
    most = max(*line.replicas, 1)
    show("", f"replicas, up to {max(line.replicas):,.0f}")
    show(shares_line([one / most for one in line.replicas], CELLS))
    show("busy replicas (offered load)")
    show(shares_line([one / most for one in line.busy], CELLS))


def _headline(
    policy: str, trace: RequestTrace, spec: SimulatedService, result: AutoscaleResult
) -> str:
    figures = result.figures
    hours = trace.arrived_ms[-1] / HOUR
    fixed = (
        "" if result.replicas_static is None else f" ({count(result.replicas_static, 'replica')})"
    )
    verdict = "meets" if figures.attainment >= spec.attainment else "misses"
    return (
        f"{policy}{fixed} {verdict} the objective: {figures.attainment:.2%} of "
        f"{count(figures.requests, 'request')} in {hours:,.1f} h had their first token within "
        f"{spec.ttft_objective_s:g} s{_further(spec)}, objective {spec.attainment:.2%}"
    )


def _further(spec: SimulatedService) -> str:
    """Return the objectives beside the first token, in words."""
    tpot = (
        ""
        if spec.tpot_objective_s is None
        else (
            f", further ones within {spec.tpot_objective_s:g} s each"
            f" ({count(spec.rates.slots, 'slot')} of {spec.slots:,} used)"
        )
    )
    last = (
        ""
        if spec.latency_objective_s is None
        else (f", the last within {spec.latency_objective_s:g} s")
    )
    return tpot + last


def _rows(spec: SimulatedService, result: AutoscaleResult) -> list[list[str]]:
    figures = result.figures
    return [
        ["replica-hours", f"{figures.replica_hours:,.2f}"],
        ["TTFT P50", _seconds(figures.ttft_p50_s)],
        ["TTFT P99", _seconds(figures.ttft_p99_s)],
        ["shed", f"{figures.shed:,}"],
        *(
            [["failed", f"{_failed(result):,}"]]
            if spec.failures_per_replica_day
            else list[list[str]]()
        ),
        ["replicas started", f"{figures.starts:,}"],
        ["replicas stopped", f"{figures.stops:,}"],
    ]


def _failed(result: AutoscaleResult) -> int:
    return sum(one == FAILED for one in result.run.ttft_ms)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.2f} s"


def _page(policy: str, trace: RequestTrace, spec: SimulatedService, result: AutoscaleResult) -> str:
    line = timeline(result.run, trace, spec)
    return autoscale_page(
        AutoscalePage(
            title=f"Autoscaler {policy}",
            lead=f"{_headline(policy, trace, spec, result)}.",
            figures=[(name, value) for name, value in _rows(spec, result)],
            replicas=_curve(line, line.replicas),
            busy=_curve(line, line.busy),
            steps=_steps(result),
            steps_in_all=len(result.run.steps),
        )
    )


def _curve(line: Timeline, values: Sequence[float]) -> list[tuple[float, float]]:
    return [(at_ms / HOUR, value) for at_ms, value in zip(line.at_ms, values, strict=True)]


def _steps(result: AutoscaleResult) -> list[list[str]]:
    return [
        [
            f"{step.at_ms / SECOND:,.0f} s",
            f"{step.ready:,}",
            f"{step.starting:,}",
            f"{step.decision.target:,}",
            render(step.decision.reason),
        ]
        for step in result.run.steps[:STEPS_SHOWN]
    ]
