"""`tenfold capacity plan`: what to order by when, what to rent, and what it costs."""

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.arguments import Facts, Force, Json
from tenfold.cli.capacity.page import plan_page
from tenfold.cli.capacity.render import show_plan
from tenfold.cli.grow.command import (
    CountAssumed,
    Failures,
    FleetFile,
    GrowFile,
    Html,
    Jobs,
    Load,
    Measured,
    Mix,
    Profiles,
    RanUnder,
)
from tenfold.cli.grow.progress import counting, noting
from tenfold.cli.output import print_json, print_note
from tenfold.files.capacity.terraform import RentedInstances, can_write, terraform_json
from tenfold.files.core.write import open_new_file, write_new_file
from tenfold.model.errors import InputError, Refused
from tenfold.model.growth.growth import Axis
from tenfold.study.capacity.addition import shortfalls
from tenfold.study.capacity.answer import CapacityAnswer
from tenfold.study.capacity.inputs import CapacityFiles, CapacityInputs, capacity_inputs
from tenfold.study.capacity.plan import plan_capacity
from tenfold.study.grow.inputs import MIX_LOAD, GrowFiles

PlanFileOption = Annotated[
    Path | None,
    Parameter(name="--plan", help="Plan file: horizon, classes of demand, offers and gates"),
]
Drivers = Annotated[
    list[Path] | None,
    Parameter(
        name="--drivers",
        negative="",
        help="Driver file: what is known about future demand, data and budgets; repeatable",
    ),
]
History = Annotated[
    Path | None,
    Parameter(help="CSV with the columns id, t and value: GPUs in demand by class, to forecast"),
]
Add = Annotated[
    list[str] | None,
    Parameter(
        name="--add",
        negative="",
        help="Only check whether POOL=NODES fit the facility and the network today",
    ),
]
Terraform = Annotated[
    Path | None, Parameter(help="Also write what is rented to this file, as Terraform JSON")
]


def plan_command(
    fleet: FleetFile,
    *,
    grow: GrowFile = None,
    plan: PlanFileOption = None,
    drivers: Drivers = None,
    history: History = None,
    jobs: Jobs = None,
    mix: Mix = "",
    load: Load = None,
    policy: RanUnder = "tenfold",
    profiles: Profiles = None,
    measured: Measured = None,
    axis: Annotated[
        Axis, Parameter(help="What grows, as in `tenfold grow` (default: all)")
    ] = "all",
    failures: Failures = None,
    count_assumed: CountAssumed = False,
    facts: Facts = None,
    add: Add = None,
    html: Html = None,
    terraform: Terraform = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Plan what to order, reserve and rent, and by when, within the limits of the facility.

    Demand comes from a history or from `[pace]` of the grow file, plus the drivers. The plan
    includes the fixes that `tenfold grow` lists, with their dates; purchases that need a fix come
    after it.
    """
    files = CapacityFiles(
        grow=GrowFiles(
            fleet=fleet,
            jobs=jobs,
            mix=mix,
            load=MIX_LOAD if load is None else load,
            policy=policy,
            failures=failures or "none",
            profiles=profiles,
            grow=grow,
            measured=measured,
            facts=facts,
        ),
        plan=plan,
        drivers=tuple(drivers or ()),
        history=history,
        axis=axis,
        failures=failures,
        count_assumed=count_assumed,
    )
    inputs = capacity_inputs(files)
    if add:
        _check_added(inputs, add)
        return
    answer = _answered(inputs, html, force)
    if terraform is not None:
        _write_terraform(answer, terraform, force)
    if as_json:
        print_json(answer)
    else:
        show_plan(answer)


def _check_added(inputs: CapacityInputs, words: list[str]) -> None:
    found = shortfalls(inputs, dict(_addition(word) for word in words))
    if found:
        raise Refused(
            "no-room",
            "; ".join(one.sentence for one in found),
            "add fewer nodes, or see what to order first with `tenfold capacity plan`",
        )
    print_note(
        f"{', '.join(words)}: the building and the network have room, as far as their limits are "
        "known"
    )


def _addition(word: str) -> tuple[str, int]:
    name, sign, nodes = word.partition("=")
    if not sign or not nodes.isdigit() or not int(nodes):
        raise InputError(
            "wrong-value",
            f"`--add {word}` does not say how many nodes to add to which pool",
            "write `--add train=20`",
            field="--add",
        )
    return name, int(nodes)


def _answered(inputs: CapacityInputs, html: Path | None, force: bool) -> CapacityAnswer:
    if html is None:
        return _planned(inputs)
    # Open the file first: a plan may take a while and must not be lost to a bad path.
    with open_new_file(html, force=force) as page:
        answer = _planned(inputs)
        page.write(plan_page(answer).encode())
    print_note(f"report written to {html}")
    return answer


def _planned(inputs: CapacityInputs) -> CapacityAnswer:
    if not inputs.grow.jobs:
        return plan_capacity(inputs)
    if not sys.stderr.isatty():
        return plan_capacity(inputs, noting("simulation runs"))
    with counting("simulation runs") as done:
        return plan_capacity(inputs, done)


def _write_terraform(answer: CapacityAnswer, path: Path, force: bool) -> None:
    rented = [
        RentedInstances(
            name=one.offer,
            provider=one.provider,
            region=one.region,
            instance_type=one.instance_type,
            on_demand=one.on_demand_instances,
            spot=one.spot_instances,
            reserved=one.reserved_instances,
        )
        for one in answer.rents
    ]
    for one in rented:
        if not can_write(one):
            print_note(
                f"{one.name} is not in {path}: it needs `provider` aws or gcp, `region` and "
                "`instance_type` under `[[rent]]`"
            )
    written = [one for one in rented if can_write(one)]
    write_new_file(path, terraform_json(written).decode(), force=force)
    print_note(f"{path} written: {len(written)} of {len(rented)} offers")
