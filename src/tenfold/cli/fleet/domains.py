"""`tenfold fleet domains`: what the loss of each failure domain takes down, including jobs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from msgspec.structs import asdict
from rich.console import Group

from tenfold.cli.arguments import Facts, Json
from tenfold.cli.fleet.render import domains_table
from tenfold.cli.output import print_json, show, table
from tenfold.cli.screen import Text
from tenfold.compose.fleet import load_facts, open_fleet
from tenfold.compose.inputs import SimFiles, prepare
from tenfold.model.errors import InputError
from tenfold.model.fleet.spec import DomainKind
from tenfold.model.units import HOUR, SECOND, Millis
from tenfold.physics.blast import blast_radius
from tenfold.report.figures import count, share
from tenfold.sim.world import SimSettings
from tenfold.study.ceiling.blast import DomainLoss, Moment, losses, placed_in

AT_LEAST_ONE = validators.Number(gte=1)
NOT_NEGATIVE = validators.Number(gte=0, lte=1e9)


FleetFile = Annotated[Path, Parameter(help="Fleet file")]
Kind = Annotated[DomainKind | None, Parameter(help="Show only domains of this kind")]
Most = Annotated[
    int, Parameter(help="Maximum number of rows per kind (default: 8)", validator=AT_LEAST_ONE)
]
JobsFile = Annotated[
    Path | None, Parameter(help="Job table; adds the jobs that each domain's failure would stop")
]
PolicyNamed = Annotated[
    str | None, Parameter(help="Policy name or policy file that places the jobs (default: tenfold)")
]
AtHour = Annotated[
    float | None,
    Parameter(
        help="Hour of the trace to inspect (default: the hour with the most GPUs in use)",
        validator=NOT_NEGATIVE,
    ),
]
CheckpointEvery = Annotated[
    float | None,
    Parameter(help="Seconds between checkpoints (default: 3600)", validator=NOT_NEGATIVE),
]


def domains_command(
    file: FleetFile,
    *,
    kind: Kind = None,
    most: Most = 8,
    jobs: JobsFile = None,
    policy: PolicyNamed = None,
    at_h: AtHour = None,
    checkpoint_every_s: CheckpointEvery = None,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Show what each failure domain would take down if it failed."""
    if jobs is None:
        _check_only_with_jobs(
            {"--policy": policy, "--at-h": at_h, "--checkpoint-every-s": checkpoint_every_s}
        )
        fleet = open_fleet(file, facts)
        known = blast_radius(fleet.layout, fleet.catalogue)
        rows = [row for row in known if kind in (None, row.kind)]
        if as_json:
            print_json({"fleet": fleet.spec.name, "domains": rows})
        else:
            show(domains_table(rows, most) if rows else _none_of(kind))
        return
    every_s = HOUR / SECOND if checkpoint_every_s is None else checkpoint_every_s
    every = Millis(round(every_s * SECOND))
    settings = SimSettings(checkpoint_every_ms=every)
    prepared = prepare(
        SimFiles(fleet=file, jobs=jobs, policy=policy or "tenfold", facts=facts, settings=settings)
    )
    moment = placed_in(prepared.request, None if at_h is None else Millis(round(at_h * HOUR)))
    found = losses(prepared, load_facts(facts), moment)
    selected = [one for one in found if kind in (None, one.domain.kind)]
    if as_json:
        print_json(_losses_json(prepared.spec.name, moment, selected))
    elif selected:
        _show_losses(moment, selected, most, prepared.request.gpus)
    else:
        show(_none_of(kind))


def _none_of(kind: DomainKind | None) -> str:
    return f"no {kind} in this fleet" if kind else "no failure domains in this fleet"


def _check_only_with_jobs(options: Mapping[str, object]) -> None:
    """Refuse options that have no effect without jobs."""
    for option, value in options.items():
        if value is not None:
            raise InputError(
                "needs-jobs",
                f"`{option}` has no effect without `--jobs`",
                f"add `--jobs FILE`, or leave out `{option}`",
                field=option,
            )


def _losses_json(fleet: str, moment: Moment, rows: Sequence[DomainLoss]) -> dict[str, object]:
    return {
        "fleet": fleet,
        "at_s": moment.at_ms / SECOND,
        "jobs_running": len(moment.placed),
        "gpus_held": moment.gpus_held,
        "domains": [
            {
                **asdict(row.domain),
                "jobs": None if row.hit is None else len(row.hit.jobs),
                "jobs_gpus": None if row.hit is None else row.hit.gpus,
                "gpu_hours_lost": None if row.hit is None else round(row.hit.gpu_hours_lost, 6),
            }
            for row in rows
        ],
    }


def _show_losses(moment: Moment, rows: Sequence[DomainLoss], most: int, gpus: int) -> None:
    """Print the domains that stop jobs, the most expensive of each kind first."""
    kinds = dict.fromkeys(row.domain.kind for row in rows)
    lines: list[list[str]] = []
    hidden = 0
    for kind in kinds:
        of_kind = [row for row in rows if row.domain.kind == kind and row.hit is not None]
        of_kind.sort(key=lambda row: -(row.hit.gpu_hours_lost if row.hit else 0.0))
        hidden += max(0, len(of_kind) - most)
        lines += [_line(row) for row in of_kind[:most]]
    show(
        f"{count(len(moment.placed), 'job')} on {moment.gpus_held:,.0f} of {gpus:,} GPUs, "
        f"{moment.at_ms / HOUR:,.1f} h into the trace",
        "",
    )
    columns = ["kind", "domain", ">nodes", ">GPUs", ">share", ">jobs", ">job GPUs", ">GPU-h lost"]
    note = f"... {count(hidden, 'row')} not shown (see --most)" if hidden else ""
    show(Group(table("", columns, lines), Text(note, style="dim")))


def _line(row: DomainLoss) -> list[str]:
    assert row.hit is not None, "only domains with nodes are shown"
    one = row.domain
    name = one.name.replace("any node", "worst node") if one.kind == "node" else one.name
    return [
        one.kind,
        name,
        f"{one.nodes:,}",
        f"{one.gpus:,}",
        share(one.gpu_share),
        f"{len(row.hit.jobs):,}",
        f"{row.hit.gpus:,.5g}",
        f"{row.hit.gpu_hours_lost:,.1f}",
    ]
