"""Simulate a trace on your own nodes, on rented ones, and on both.

When a job would end on your own nodes is taken from a simulation of the jobs that stay there, and
made anew after every few jobs that leave: the fewer jobs stay, the fewer need to leave.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import load_facts
from tenfold.compose.inputs import PreparedRun, SimFiles, prepare
from tenfold.compose.simulation import simulate
from tenfold.decide.provision.burst import decide_burst, late_on_own_nodes, offer_of
from tenfold.files.policy.burst import BurstFile
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.market.burst import BurstJob, BurstState, RentedNode, RentNodes
from tenfold.model.units import HOUR, SECOND, usd
from tenfold.study.cost.prices import PriceBook

Way = Literal["all-own", "hybrid", "all-rented"]
ROUNDS = 12
PER_ROUND = 4
"""A quarter of the late jobs may leave in each round."""


class BurstRow(Struct, frozen=True, kw_only=True):
    """One way to run a trace."""

    way: Way
    own_usd: float
    rented_usd: float
    jobs_rented: int
    deadlines: int
    deadlines_missed: int
    avg_wait_s: float
    """From submission to the start, or to the start of work on rented nodes."""
    not_run: int
    """Jobs that fit neither."""

    @property
    def usd(self) -> float:
        """Dollars in all."""
        return self.own_usd + self.rented_usd


class BurstAnswer(Struct, frozen=True, kw_only=True):
    """Three ways to run a trace, and why late jobs were not burst."""

    hours: float
    """The window in which your own nodes are paid for, the same for all."""
    rows: tuple[BurstRow, ...]
    refused: dict[str, int]
    """Late jobs that got no rented nodes, by reason."""
    budget_usd: float
    notes: tuple[str, ...]


class _Ends(Struct, frozen=True):
    """When the jobs of one simulation started and ended."""

    start_ms: dict[JobId, int]
    end_ms: dict[JobId, int]


def compare_burst(files: SimFiles, burst: BurstFile) -> BurstAnswer:
    """Run a trace in three ways."""
    prepared = prepare(files)
    own = _own(prepared, prepared.request.jobs)
    rents, refused, ends = _hybrid(prepared, burst, own)
    every = _all_rented(prepared.request.jobs, burst)
    jobs = prepared.request.jobs
    last = max(
        [*own.end_ms.values(), *ends.end_ms.values(), *(one.end_ms for one in rents.values())],
        default=0,
    )
    first = min((job.submitted_ms for job in jobs), default=0)
    hours = max(0, last - first) / HOUR
    own_usd = _own_usd_per_hour(prepared, files) * hours
    return BurstAnswer(
        hours=hours,
        rows=(
            _row("all-own", jobs, own, {}, own_usd),
            _row("hybrid", jobs, ends, rents, own_usd),
            _row("all-rented", jobs, _Ends({}, {}), every, 0.0),
        ),
        refused=refused,
        budget_usd=burst.policy.budget_usd,
        notes=prepared.notes,
    )


def _own(prepared: PreparedRun, jobs: Sequence[Job]) -> _Ends:
    """Simulate the jobs that stay."""
    if not jobs:
        return _Ends({}, {})
    result = simulate(replace(prepared.request, jobs=list(jobs)))
    start: dict[JobId, int] = {}
    end: dict[JobId, int] = {}
    for job, _, _, held, at in result.meters.ends:
        start[job.id], end[job.id] = at - held, at
    return _Ends(start, end)


def _hybrid(
    prepared: PreparedRun, burst: BurstFile, own: _Ends
) -> tuple[dict[JobId, RentNodes], dict[str, int], _Ends]:
    """Let late jobs leave, a few at a time, until no other one may."""
    jobs, rents, ends = prepared.request.jobs, dict[JobId, RentNodes](), own
    refused: Counter[str] = Counter()
    for _ in range(ROUNDS):
        staying = [job for job in jobs if job.id not in rents]
        late = [
            late_job
            for job in staying
            if late_on_own_nodes(late_job := burst_job(job, ends, burst), burst.policy)
        ]
        found: dict[JobId, RentNodes] = {}
        refused = Counter()
        for late_job in late:
            rent, reason = _decide(late_job, {**rents, **found}, jobs, burst)
            if rent is not None:
                found[JobId(late_job.id)] = rent
            else:
                refused[reason] += 1
            if len(found) * PER_ROUND >= len(late):
                break
        if not found:
            break
        rents |= found
        ends = _own(prepared, [job for job in jobs if job.id not in rents])
    return rents, dict(refused), ends


def _decide(
    late_job: BurstJob, rents: dict[JobId, RentNodes], jobs: Sequence[Job], burst: BurstFile
) -> tuple[RentNodes | None, str]:
    """Ask the decider at the moment of the job's submission."""
    at = late_job.submitted_ms
    submitted = {job.id: job.submitted_ms for job in jobs}
    known = {name: one for name, one in rents.items() if submitted[name] <= at}
    nodes = tuple(
        RentedNode(id=f"{name}-{number}", zone=one.zone, since_ms=submitted[name], job=name)
        for name, one in known.items()
        if one.end_ms > at
        for number in range(one.nodes)
    )
    state = BurstState(
        now_ms=at,
        spent_usd_micros=sum(one.usd_micros for one in rents.values()),
        nodes=nodes,
        rented_ms=tuple(submitted[name] for name, one in known.items() for _ in range(one.nodes)),
    )
    decision = decide_burst([late_job], burst.zones, burst.policy, state)
    if decision.rents:
        return decision.rents[0], ""
    return None, decision.refusals[0].reason.code


def burst_job(job: Job, ends: _Ends, burst: BurstFile) -> BurstJob:
    """Return a job as the decider sees it."""
    where = job.shape.where
    return BurstJob(
        id=job.id,
        gpus=max(1, job.shape.gpus),
        accelerators=job.shape.accelerators,
        needs=() if where is None else where.needs,
        submitted_ms=job.submitted_ms,
        run_s=(job.duration_ms or job.limit_ms or 0) / SECOND,
        own_end_ms=ends.end_ms.get(job.id),
        deadline_ms=job.deadline_ms,
        data_gb=burst.data.staged_gb,
        results_gb=burst.data.results_gb,
    )


def _all_rented(jobs: Sequence[Job], burst: BurstFile) -> dict[JobId, RentNodes]:
    """Rent for every job on its own, as soon as it is submitted, where a zone fits it."""
    found: dict[JobId, RentNodes] = {}
    for job in jobs:
        late_job = burst_job(job, _Ends({}, {}), burst)
        one = offer_of(late_job, burst.zones, job.submitted_ms)
        if one is not None:
            found[job.id] = one
    return found


def _row(
    way: Way, jobs: Sequence[Job], ends: _Ends, rents: dict[JobId, RentNodes], own_usd: float
) -> BurstRow:
    end_ms = {**ends.end_ms, **{name: one.end_ms for name, one in rents.items()}}
    start_ms = {
        **ends.start_ms,
        **{
            job.id: rents[job.id].end_ms - (job.duration_ms or job.limit_ms or 0)
            for job in jobs
            if job.id in rents
        },
    }
    waits = [start_ms[job.id] - job.submitted_ms for job in jobs if job.id in start_ms]
    with_deadline = [job for job in jobs if job.deadline_ms is not None]
    missed = sum(end_ms.get(job.id, 1 << 62) > (job.deadline_ms or 0) for job in with_deadline)
    return BurstRow(
        way=way,
        own_usd=own_usd,
        rented_usd=usd(sum(one.usd_micros for one in rents.values())),
        jobs_rented=len(rents),
        deadlines=len(with_deadline),
        deadlines_missed=missed,
        avg_wait_s=sum(waits) / max(1, len(waits)) / SECOND,
        not_run=sum(job.id not in end_ms for job in jobs),
    )


def _own_usd_per_hour(prepared: PreparedRun, files: SimFiles) -> float:
    book = PriceBook(load_facts(files.facts), prepared.spec)
    nodes = [node for node in prepared.request.nodes if node.gpus]
    return usd(sum(book.of(node).usd_micros_per_gpu_hour * node.gpus for node in nodes))
