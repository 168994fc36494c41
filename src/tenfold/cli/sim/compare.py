"""`tenfold sim compare`: run the same jobs under several policies, fleets and seeds."""

from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators
from msgspec.structs import replace

from tenfold.cli.arguments import Facts, Force, Json
from tenfold.cli.errors import Exit
from tenfold.cli.output import print_json, print_note
from tenfold.cli.progress import progress
from tenfold.cli.sim.compare_render import compare_page, show_comparison
from tenfold.cli.sim.options import RestartCost, restart_assumption, world_settings
from tenfold.compose.inputs import SimFiles, policy_of
from tenfold.files.core.write import open_new_file
from tenfold.model.errors import InputError
from tenfold.model.policy.policy import Placement
from tenfold.report.pages.compare import compare_report
from tenfold.study.compare.compare import CellMap, CompareRequest, Comparison, cells_of, compare
from tenfold.study.parallel import process_map, usable_cpus

AT_LEAST_ONE = validators.Number(gte=1, lte=10_000)
EXIT_NO = 1


FleetFiles = Annotated[
    list[Path], Parameter(help="Fleet files", consume_multiple=True, negative="")
]
JobsFiles = Annotated[
    list[Path],
    Parameter(
        help="Job tables (CSV or Parquet) or public traces", consume_multiple=True, negative=""
    ),
]
Policies = Annotated[
    str,
    Parameter(help="Comma-separated policies; the first is the baseline (default: fifo,tenfold)"),
]
Seeds = Annotated[
    int, Parameter(help="Number of random seeds (default: 1)", validator=AT_LEAST_ONE)
]
Seed = Annotated[int, Parameter(help="First random seed (default: 0)")]
PlacementNamed = Annotated[Placement | None, Parameter(help="Node selection (default: tenfold)")]
Failures = Annotated[
    str,
    Parameter(
        help="Failure preset (`tenfold facts list --kind failure`) or fault trace (default: none)"
    ),
]
Profiles = Annotated[
    Path | None, Parameter(help="Profile file: how much network, storage and power each job uses")
]
Workers = Annotated[
    int | None, Parameter(help="Worker processes (default: one per CPU)", validator=AT_LEAST_ONE)
]
RayAddress = Annotated[str | None, Parameter(help="Run on the Ray cluster at this address")]
HtmlFile = Annotated[Path | None, Parameter(help="Also write an HTML report to this file")]


def compare_command(
    *,
    fleet: FleetFiles,
    jobs: JobsFiles,
    policy: Policies = "fifo,tenfold",
    seeds: Seeds = 1,
    seed: Seed = 0,
    placement: PlacementNamed = None,
    failures: Failures = "none",
    restart_cost_s: RestartCost = None,
    profiles: Profiles = None,
    workers: Workers = None,
    ray: RayAddress = None,
    html: HtmlFile = None,
    force: Force = False,
    facts: Facts = None,
    as_json: Json = False,
) -> None:
    """Run the same jobs under several policies, fleets and seeds, and compare the results.

    Runs use local processes, or Ray with --ray. If a run fails, the others are still reported, and
    the command exits with status 1. Scores are relative to the first policy.
    """
    base = SimFiles(
        fleet=fleet[0],
        jobs=jobs[0],
        placement=placement,
        failures=failures,
        profiles=profiles,
        facts=facts,
        settings=world_settings(restart_cost_s, seed),
        restart_assumption=restart_assumption(restart_cost_s),
    )
    request = CompareRequest(
        fleets=tuple(dict.fromkeys(fleet)),
        jobs=tuple(dict.fromkeys(jobs)),
        policies=_policies(policy),
        seeds=seeds,
        base=base,
        with_curves=html is not None,
    )
    comparison = _run_comparison(request, workers or usable_cpus(), ray, html, force=force)
    print_json(_without_curves(comparison)) if as_json else show_comparison(comparison)
    if any(cell.error for cell in comparison.cells):
        raise Exit(EXIT_NO)


def _run_comparison(
    request: CompareRequest, workers: int, ray: str | None, html: Path | None, *, force: bool
) -> Comparison:
    """Run all cells and write the page; an existing page is refused before the runs."""
    opened = nullcontext() if html is None else open_new_file(html, force=force)
    with opened as stream:
        comparison = _run_cells(request, workers, ray)
        if stream is not None:
            stream.write(compare_report(compare_page(comparison)).encode())
    for note in comparison.notes:
        print_note(note)
    if html is not None:
        print_note(f"report written to {html}")
    return comparison


def _policies(named: str) -> tuple[str, ...]:
    """Return the policies, checked before anything runs."""
    names = tuple(dict.fromkeys(name.strip() for name in named.split(",") if name.strip()))
    if not names:
        raise InputError(
            "no-policy",
            "`--policy` is empty",
            "write names with commas: `--policy fifo,tenfold`",
        )
    for name in names:
        policy_of(name)
    return names


def _run_cells(request: CompareRequest, workers: int, ray: str | None) -> Comparison:
    with progress("runs done", len(cells_of(request))) as done:
        return compare(
            _with_absolute_paths(request) if ray else request, _cell_runner(workers, ray), done
        )


def _cell_runner(workers: int, ray: str | None) -> CellMap:
    if ray is None:
        return partial(process_map, workers=workers)
    from tenfold.live.ray_map import ray_map  # noqa: PLC0415

    return partial(ray_map, ray)


def _with_absolute_paths(request: CompareRequest) -> CompareRequest:
    """Return the request with absolute paths, valid from any folder."""
    base = replace(
        request.base,
        profiles=request.base.profiles and request.base.profiles.absolute(),
        facts=request.base.facts and request.base.facts.absolute(),
    )
    fleets = tuple(path.absolute() for path in request.fleets)
    return replace(
        request, fleets=fleets, jobs=tuple(path.absolute() for path in request.jobs), base=base
    )


def _without_curves(comparison: Comparison) -> Comparison:
    return replace(comparison, cells=tuple(replace(cell, curves=None) for cell in comparison.cells))
