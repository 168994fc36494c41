"""`tenfold sim spot`: the cost of a job with a deadline on spot and on-demand capacity."""

from pathlib import Path
from typing import Annotated, get_args

import numpy as np
from cyclopts import Parameter, validators

from tenfold.cli.arguments import AT_LEAST_ONE, NOT_NEGATIVE, Json
from tenfold.cli.errors import Exit
from tenfold.cli.output import print_json, print_note, show, table
from tenfold.files.series.availability import read_availability
from tenfold.model.errors import InputError
from tenfold.model.spot import SpotPolicyName, SpotTask
from tenfold.report.figures import count, share
from tenfold.sim.spot import Availability
from tenfold.study.spot.run import HOUR_S, SpotResult, run_policy, spread_starts

HOURS = validators.Number(gt=0, lte=87_600)
PRICE = validators.Number(gt=0, lte=1e9)
DECIDE_EVERY_S = 600.0
"""How often a job decides at least, if the rows of a trace are further apart: an assumption."""
POLICIES: tuple[SpotPolicyName, ...] = get_args(SpotPolicyName)


def spot_command(
    *,
    trace: Annotated[Path, Parameter(help="Availability trace")],
    work_h: Annotated[
        float, Parameter(help="Hours of work, excluding changeovers", validator=HOURS)
    ],
    deadline_h: Annotated[float, Parameter(help="Hours until the deadline", validator=HOURS)],
    ondemand_price: Annotated[float, Parameter(help="Price per hour on demand", validator=PRICE)],
    spot_price: Annotated[float, Parameter(help="Price per hour on spot", validator=PRICE)],
    changeover_s: Annotated[
        float,
        Parameter(
            help="Startup time before a job makes progress, in seconds, on spot or on-demand "
            "capacity (default: 300)",
            validator=NOT_NEGATIVE,
        ),
    ] = 300.0,
    policy: Annotated[SpotPolicyName | None, Parameter(help="Policy (default: all)")] = None,
    nodes: Annotated[
        int, Parameter(help="Nodes that the job needs (default: 1)", validator=AT_LEAST_ONE)
    ] = 1,
    starts: Annotated[
        int,
        Parameter(
            help="Number of start times, spread over the trace; results are averages (default: 1)",
            validator=AT_LEAST_ONE,
        ),
    ] = 1,
    as_json: Json = False,
) -> None:
    """Simulate a job with a deadline on spot and on-demand capacity.

    The availability trace is CSV or Parquet with the columns t_s (seconds) and value (nodes
    available); it repeats after its end. Without --policy, all policies are compared. Exits with
    status 1 if a deadline is missed.
    """
    if deadline_h < work_h:
        raise InputError(
            "deadline-too-early",
            f"`--deadline-h` is {deadline_h:g}, but the job has {work_h:g} hours of work",
            "set a deadline that leaves time for the work",
            field="--deadline-h",
        )
    task = SpotTask(
        work_s=work_h * HOUR_S,
        deadline_s=deadline_h * HOUR_S,
        changeover_s=changeover_s,
        ondemand_price=ondemand_price,
        spot_price=spot_price,
    )
    read = read_availability(trace)
    recorded = Availability(np.array(read.lasts_s), np.array(read.nodes) >= nodes)
    availability = recorded.split(DECIDE_EVERY_S)
    chosen = spread_starts(len(availability.is_up), starts)
    if spot_price >= ondemand_price:
        print_note("spot capacity is not cheaper than on-demand capacity")
    names = POLICIES if policy is None else (policy,)
    results = [run_policy(name, task, availability, chosen) for name in names]
    if as_json:
        print_json(results if policy is None else results[0])
    else:
        _show(results, task, availability)
    if not all(result.deadline_met for result in results):
        raise Exit(1)


def _show(results: list[SpotResult], task: SpotTask, availability: Availability) -> None:
    up = float((availability.lasts_s * availability.is_up).sum() / availability.lasts_s.sum())
    starts = results[0].starts
    show(
        f"{task.work_s / HOUR_S:g} h of work, deadline {task.deadline_s / HOUR_S:g} h, "
        f"{count(starts, 'start')}; spot capacity was available {share(up)} of the time"
    )
    rows = [
        [
            result.policy,
            share(result.cost_ratio_to_ondemand),
            "met" if result.deadline_met else f"{result.deadlines_missed} of {starts} missed",
            f"{result.preemptions:,.1f}",
            f"{result.changeovers:,.1f}",
            f"{result.spot_h:,.1f}",
            f"{result.ondemand_h:,.1f}",
            f"{result.finished_h:,.1f}",
        ]
        for result in results
    ]
    columns = [
        "policy",
        ">cost",
        "deadline",
        ">preemptions",
        ">changeovers",
        ">spot h",
        ">on-demand h",
        ">finished h",
    ]
    show("", table("", columns, rows), "")
    bound = share(results[0].lower_bound)
    show(f"cost is relative to on-demand capacity throughout; the lower bound is {bound}")
