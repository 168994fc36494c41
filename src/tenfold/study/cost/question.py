"""From files to a bill, and to what would lower it."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from tenfold.compose.fleet import OpenFleet, OwnFacts, load_facts, open_fleet
from tenfold.compose.grid import GridFiles
from tenfold.compose.inputs import SimFiles, prepare
from tenfold.decide.layout.serve import ServeRequest
from tenfold.files.traces.grid_intensity import read_intensity
from tenfold.model.errors import InputError
from tenfold.model.plan import ServiceDemand
from tenfold.report.figures import count
from tenfold.sim.world import SimSettings
from tenfold.study.cost.prices import PriceBook
from tenfold.study.cost.quantise import quantise
from tenfold.study.cost.recommend import CostCase, Recommendation, cost_case, recommend
from tenfold.study.cost.report import CostReport, cost_report
from tenfold.study.cost.usage import usage_of_record
from tenfold.study.plan.target import serve_targets
from tenfold.study.plan.train import model_shape
from tenfold.study.replay.records import open_record

SETTINGS = SimSettings()
Positive = Annotated[float, Meta(gt=0, le=1e9)]


class CostQuestion(Struct, frozen=True, kw_only=True):
    """The options of `cost report`: a record of what ran, or jobs to simulate."""

    bundle: Annotated[
        str | None,
        Meta(
            description="Recorded run: a bundle, a state directory of `tenfold up` or "
            "`tenfold attach`, a journal file or a database URL (default: the state directory of "
            "the control plane on this machine, unless `--jobs` is given)"
        ),
    ] = None
    jobs: Annotated[
        Path | None, Meta(description="Job table or public trace, to simulate on --fleet")
    ] = None
    fleet: Annotated[
        Path | None, Meta(description="Fleet file, for prices, power, storage and quotas")
    ] = None
    policy: Annotated[
        str, Meta(description="Policy of the simulation, with --jobs (default: tenfold)")
    ] = "tenfold"
    intensity: Annotated[
        Path | None,
        Meta(description="Grid carbon intensity and power price per hour, as CSV"),
    ] = None
    model: Annotated[
        str | None,
        Meta(description="Model that you serve; --recommend also tries it at lower precision"),
    ] = None
    qps: Annotated[Positive, Meta(description="Requests per second to that model (default: 1)")] = (
        1.0
    )
    facts: OwnFacts = None


class CostAnswer(Struct, frozen=True, kw_only=True):
    """A bill, and what would lower it."""

    source: str
    report: CostReport
    recommendations: tuple[Recommendation, ...] | None
    """None where they were not asked for."""
    notes: tuple[str, ...]


def cost_answer(
    question: CostQuestion,
    settings: SimSettings = SETTINGS,
    *,
    with_recommendations: bool = False,
) -> CostAnswer:
    """Return the bill of a record, or of a run that is simulated with these settings."""
    if (question.bundle is None) == (question.jobs is None):
        raise InputError(
            "no-usage",
            "no usage to report: there is neither a recorded run nor a job table"
            if question.jobs is None
            else "`--bundle` and `--jobs` cannot be used together",
            "use `--bundle` for a recorded run or the state directory of `tenfold up`, or `--jobs`"
            " and `--fleet` to simulate a job table",
            field="--bundle",
        )
    if question.bundle is not None:
        return _of_record(question, question.bundle, with_recommendations)
    assert question.jobs is not None, "one of the two was given"
    return _of_jobs(question, question.jobs, settings, with_recommendations)


def _of_record(question: CostQuestion, bundle: str, with_recommendations: bool) -> CostAnswer:
    if with_recommendations:
        raise InputError(
            "no-usage",
            "recommendations are simulated, and a recorded run alone cannot be",
            "simulate its jobs: `--jobs` with the journal, and `--fleet`",
            field="--recommend",
        )
    catalogue = load_facts(question.facts)
    record, notes = open_record(bundle)
    spec = None if question.fleet is None else open_fleet(question.fleet, question.facts).spec
    intensity = None if question.intensity is None else read_intensity(question.intensity)
    usage = usage_of_record(record)
    report = cost_report(usage, PriceBook(catalogue, spec), spec, intensity)
    return CostAnswer(source=bundle, report=report, recommendations=None, notes=notes)


def _of_jobs(
    question: CostQuestion, jobs: Path, settings: SimSettings, with_recommendations: bool
) -> CostAnswer:
    if question.fleet is None:
        raise InputError(
            "no-usage",
            f"`{jobs}` can only be simulated on a fleet",
            "add `--fleet` with a fleet file",
            field="--fleet",
        )
    grid = None if question.intensity is None else GridFiles(intensity=question.intensity)
    files = SimFiles(
        fleet=question.fleet,
        jobs=jobs,
        policy=question.policy,
        facts=question.facts,
        settings=settings,
        grid=grid,
    )
    prepared = prepare(files)
    case = cost_case(prepared, load_facts(question.facts))
    found: tuple[Recommendation, ...] | None = None
    if with_recommendations:
        has_price = prepared.grid is not None and prepared.grid.intensity.usd_per_kwh is not None
        shifted = (
            prepare(replace(files, grid=replace(grid, shift="price")))
            if grid is not None and has_price
            else None
        )
        serving = _quantise(question, open_fleet(question.fleet, question.facts), case.usage.hours)
        found = tuple(
            sorted(
                (*recommend(case, shifted), *serving),
                key=lambda one: (-one.saves_usd_micros, one.kind),
            )
        )
    return CostAnswer(
        source=str(jobs),
        report=case.report,
        recommendations=found,
        notes=(
            *prepared.notes,
            f"simulated under policy {question.policy}",
            *_not_run(case),
        ),
    )


def _not_run(case: CostCase) -> tuple[str, ...]:
    """Return how many jobs never ran: a bill without them looks cheaper than the work is."""
    ran = {one.job.id for one in case.usage.held}
    jobs = [one for one in case.prepared.request.jobs if one.shape.gpus or one.shape.milli]
    left = sum(one.id not in ran for one in jobs)
    if not left:
        return ()
    return (f"{left:,} of {count(len(jobs), 'GPU job')} never ran, and are not in the bill",)


def _quantise(question: CostQuestion, fleet: OpenFleet, hours: float) -> tuple[Recommendation, ...]:
    if question.model is None:
        return ()
    demand = ServiceDemand(
        model=question.model,
        qps=question.qps,
        input_tokens=1_000,
        output_tokens=200,
        ttft_s=2.0,
        tpot_s=0.1,
    )
    request = ServeRequest(service=demand, shape=model_shape(question.model, fleet.catalogue))
    one = quantise(demand, request, serve_targets(fleet), hours)
    return () if one is None or one.saves_usd_micros <= 0 else (one,)
