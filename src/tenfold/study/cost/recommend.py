"""What would cost less: each change is simulated, and shown only if the simulation saves.

A change is applied to a copy of the run, the bill of the copy is made as any other, and the
saving is the difference of the two totals.
"""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.governance import governance_of
from tenfold.compose.inputs import PreparedRun
from tenfold.compose.simulation import SimResult, simulate
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.ids import NodeId
from tenfold.model.job.job import WHOLE, Job
from tenfold.model.policy.policy import Policy
from tenfold.model.spot import SpotTask
from tenfold.model.units import HOUR, HOURS_PER_MONTH, SECOND, usd, usd_micros
from tenfold.report.figures import count, share
from tenfold.sim.spot import generated_availability
from tenfold.study.cost.prices import PriceBook, Rate
from tenfold.study.cost.report import CostReport, cost_report
from tenfold.study.cost.usage import Held, Present, Usage, usage_of_run
from tenfold.study.sim.green import green
from tenfold.study.spot.run import run_policy, spread_starts

Kind = Literal["consolidate", "autoscale", "spot", "off-peak", "return-idle-quota", "quantise"]

WAIT_FACTOR = 1.1
WAIT_MORE_S = 60.0
"""A smaller fleet may make jobs wait this much longer, on average, and no more."""
KEEP_IDLE_S = 900.0
STARTUP_S = 600.0
"""A rented node is released after 15 idle minutes and takes 10 to come back: assumptions."""
SPOT_UP_H, SPOT_DOWN_H = 4.0, 2.0
SPOT_DAYS = 30
SPOT_STARTS = 60
SPOT_SLACK = 1.5
"""A spot job may take half as long again."""
CHANGEOVER_S = 300.0
QUOTA_PERCENTILE = 95.0
RESTARTABLE = ("training", "experiment", "batch")


class Recommendation(Struct, frozen=True, kw_only=True):
    """One change, what it saves in this window, and what could go wrong."""

    kind: Kind
    do: str
    saves_usd_micros: int
    """In the window of the report."""
    saves_usd_per_month: float
    is_cash: bool
    """False where the saving is capacity for others, not a smaller bill."""
    simulated: str
    risk: str


class CostCase(Struct, frozen=True, kw_only=True):
    """A run, its bill, and everything to make another one of each."""

    prepared: PreparedRun
    result: SimResult
    usage: Usage
    report: CostReport
    catalogue: Catalogue

    def bill_of(self, usage: Usage) -> CostReport:
        """Return the bill of another usage of the same fleet."""
        spec, grid = self.prepared.spec, self.prepared.grid
        intensity = None if grid is None else grid.intensity
        return cost_report(usage, PriceBook(self.catalogue, spec), spec, intensity)


def cost_case(prepared: PreparedRun, catalogue: Catalogue) -> CostCase:
    """Simulate a run and make its bill."""
    result = simulate(prepared.request)
    usage = usage_of_run(prepared, result)
    grid = prepared.grid
    report = cost_report(
        usage,
        PriceBook(catalogue, prepared.spec),
        prepared.spec,
        None if grid is None else grid.intensity,
    )
    return CostCase(
        prepared=prepared, result=result, usage=usage, report=report, catalogue=catalogue
    )


def recommend(case: CostCase, shifted: PreparedRun | None = None) -> tuple[Recommendation, ...]:
    """Return the changes that save, the largest first; `shifted` runs jobs at cheaper hours."""
    found = [
        consolidate(case),
        autoscale(case),
        spot(case),
        return_idle_quota(case),
        *(() if shifted is None else (off_peak(case, shifted),)),
    ]
    saving = [one for one in found if one is not None and one.saves_usd_micros > 0]
    return tuple(sorted(saving, key=lambda one: (-one.saves_usd_micros, one.kind)))


def consolidate(case: CostCase) -> Recommendation | None:
    """Find the fewest nodes of the idlest pool with which jobs hardly wait longer."""
    pool = _idlest(case)
    if pool is None:
        return None
    nodes = [one.id for one in case.prepared.request.nodes if one.pool == pool and one.gpus]
    low, high = 0, len(nodes) - 1
    best: tuple[int, CostReport, SimResult] | None = None
    while low < high:
        dropped = (low + high + 1) // 2
        tried = without_nodes(case.prepared, nodes[len(nodes) - dropped :])
        result = simulate(tried.request)
        if _waits_alike(case.result, result):
            low = dropped
            best = (dropped, case.bill_of(usage_of_run(tried, result)), result)
        else:
            high = dropped - 1
    if best is None:
        return None
    dropped, report, result = best
    before, after = case.result.summary.avg_wait_s, result.summary.avg_wait_s
    return recommendation(
        Change(
            kind="consolidate",
            do=f"run on {len(nodes) - dropped} of {len(nodes)} nodes of pool `{pool}`",
            simulated=f"the same jobs on fewer nodes; mean wait {after:,.0f} s instead of "
            f"{before:,.0f} s",
            risk="no room for more load; owned nodes save only if they are sold or not replaced",
        ),
        case.report.total_usd_micros - report.total_usd_micros,
        case.usage.hours,
    )


def without_nodes(prepared: PreparedRun, dropped: Sequence[NodeId]) -> PreparedRun:
    """Return a run without some nodes."""
    gone = dict.fromkeys(dropped)
    kept = [node for node in prepared.request.nodes if node.id not in gone]
    return replace(prepared, request=replace(prepared.request, nodes=kept))


def autoscale(case: CostCase) -> Recommendation | None:
    """Release rented nodes that are idle, and bring them back for the next job."""
    usage, starts = released_when_idle(case.usage, _rented(case))
    if usage is case.usage:
        return None
    saved = case.report.total_usd_micros - case.bill_of(usage).total_usd_micros
    return recommendation(
        Change(
            kind="autoscale",
            do=f"release rented nodes after {KEEP_IDLE_S / 60:g} idle minutes",
            simulated=f"the recorded use, node by node; {count(starts, 'node start')}, each "
            f"billed {STARTUP_S / 60:g} minutes early",
            risk=f"a job may wait {STARTUP_S / 60:g} minutes for its nodes; capacity may be gone",
        ),
        saved,
        case.usage.hours,
    )


def released_when_idle(usage: Usage, nodes: Mapping[NodeId, object]) -> tuple[Usage, int]:
    """Return the usage with idle nodes released, and how often one was started again."""
    busy: dict[NodeId, list[tuple[int, int]]] = {}
    for one in usage.held:
        busy.setdefault(one.node, []).append((one.start_ms, one.end_ms))
    present: list[Present] = []
    starts = 0
    for one in usage.present:
        if one.node.id not in nodes or one.down_ms:
            present.append(one)
            continue
        spans = _kept_spans(one, sorted(busy.get(one.node.id, [])))
        starts += len(spans)
        present.extend(Present(one.node, start, end, 0) for start, end in spans)
    if starts == 0 and len(present) == len(usage.present):
        return usage, 0
    return replace(usage, present=tuple(present)), starts


def _kept_spans(one: Present, busy: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return when a node is rented: from its start-up before a job to its release after."""
    keep, early = int(KEEP_IDLE_S * SECOND), int(STARTUP_S * SECOND)
    spans: list[tuple[int, int]] = []
    for start, end in busy:
        first = max(one.start_ms, start - early)
        last = min(one.end_ms, end + keep)
        if spans and first <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(spans[-1][1], last))
        else:
            spans.append((first, last))
    return spans


def spot(case: CostCase) -> Recommendation | None:
    """Run jobs that can restart on spot capacity, with on-demand capacity before deadlines."""
    on_demand = {name: rate for name, rate in _rented(case).items() if rate.kind == "on-demand"}
    eligible = [one for one in case.usage.held if one.node in on_demand and _can_restart(one.job)]
    if not eligible:
        return None
    accelerator = on_demand[eligible[0].node].accelerator
    rate = on_demand[eligible[0].node]
    spot_price = _spot_price(case.catalogue, accelerator, rate.provider)
    alike = [one for one in eligible if on_demand[one.node].accelerator == accelerator]
    if spot_price is None or usd_micros(spot_price) >= rate.usd_micros_per_gpu_hour:
        return None
    price = usd(rate.usd_micros_per_gpu_hour)
    ratio, preemptions = spot_ratio(_typical_s(alike), price, spot_price)
    charged = sum(_cost(one, on_demand[one.node]) for one in alike)
    jobs = len(dict.fromkeys(one.job.id for one in alike))
    return recommendation(
        Change(
            kind="spot",
            do=f"run {count(jobs, 'restartable job')} on {accelerator} spot at "
            f"${spot_price:,.2f} instead of ${price:,.2f}",
            simulated=f"a job of typical length under the policy `tenfold`, {SPOT_STARTS} starts "
            f"on generated availability ({SPOT_UP_H:g} h up, {SPOT_DOWN_H:g} h down on average: "
            f"assumptions); cost {share(ratio)} of on-demand",
            risk=f"{preemptions:.1f} reclaims per job; runs may take {SPOT_SLACK:g} times as long; "
            "jobs without a checkpoint lose their work",
        ),
        round(charged * (1 - ratio)),
        case.usage.hours,
    )


def spot_ratio(
    work_s: float, ondemand_price: float, spot_price: float, seed: int = 0
) -> tuple[float, float]:
    """Return the cost of a job on spot over on-demand, and how often it is reclaimed."""
    availability = generated_availability(
        up_s=SPOT_UP_H * 3600, down_s=SPOT_DOWN_H * 3600, days=SPOT_DAYS, seed=seed
    )
    task = SpotTask(
        work_s=work_s,
        deadline_s=SPOT_SLACK * work_s + CHANGEOVER_S,
        changeover_s=CHANGEOVER_S,
        ondemand_price=ondemand_price,
        spot_price=spot_price,
    )
    starts = spread_starts(len(availability.is_up), SPOT_STARTS)
    found = run_policy("tenfold", task, availability, starts)
    return found.cost_ratio_to_ondemand, found.preemptions


def off_peak(case: CostCase, shifted: PreparedRun) -> Recommendation | None:
    """Let jobs with a deadline wait for cheaper hours of the grid."""
    before = green(case.prepared, case.result)
    after = green(shifted, simulate(shifted.request))
    if before is None or after is None or before.usd_energy is None or after.usd_energy is None:
        return None
    if after.deadlines_missed > before.deadlines_missed:
        return None
    if not any(rate.kind == "owned" for rate in _rates(case).values()):
        # Rents include energy, so whoever rents pays the same at any hour.
        return None
    return recommendation(
        Change(
            kind="off-peak",
            do=f"hold {count(after.jobs_shifted, 'job')} with a deadline until power is cheaper",
            simulated=f"the same jobs with the shift; {after.co2_kg - before.co2_kg:+,.1f} kg CO2, "
            f"{after.deadlines_missed} of {after.deadlines} deadlines missed",
            risk=f"jobs end {after.avg_shift_s / 3600:,.1f} h later on average",
        ),
        usd_micros(before.usd_energy - after.usd_energy),
        case.usage.hours,
    )


def return_idle_quota(case: CostCase) -> Recommendation | None:
    """Return guaranteed GPUs that a team does not use to those that wait."""
    spec = case.prepared.spec
    peaks = {team.id: _peak_gpus(case.usage, team.id) for team in spec.teams if team.quota_gpus}
    idle = {
        team.id: sum(team.quota_gpus.values()) - peaks[team.id]
        for team in spec.teams
        if team.quota_gpus and not any(other.parent == team.id for other in spec.teams)
    }
    team, gpus = max(idle.items(), key=lambda one: one[1], default=("", 0))
    if gpus <= 0:
        return None
    before = _governed_wait(case, team, 0)
    after = _governed_wait(case, team, gpus)
    rates = list(_rates(case).values())
    hourly = sum(rate.usd_micros_per_gpu_hour for rate in rates) / max(1, len(rates))
    return recommendation(
        Change(
            kind="return-idle-quota",
            do=f"lower the quota of `{team}` by {count(gpus, 'GPU')}",
            simulated=f"policy `governed` with the lower quota: mean wait of `{team}` "
            f"{after[0]:,.0f} s instead of {before[0]:,.0f} s, of all {after[1]:,.0f} s instead of "
            f"{before[1]:,.0f} s",
            risk="a guarantee for other teams, not a smaller bill, until capacity is released",
            is_cash=False,
        ),
        round(hourly * gpus * case.usage.hours),
        case.usage.hours,
    )


class Change(Struct, frozen=True, kw_only=True):
    """One change in words."""

    kind: Kind
    do: str
    simulated: str
    risk: str
    is_cash: bool = True


def recommendation(change: Change, saved: int, hours: float) -> Recommendation:
    """Return a change with what it saves in a window of some hours."""
    return Recommendation(
        kind=change.kind,
        do=change.do,
        saves_usd_micros=saved,
        saves_usd_per_month=usd(saved) * HOURS_PER_MONTH / max(hours, 1e-9),
        is_cash=change.is_cash,
        simulated=change.simulated,
        risk=change.risk,
    )


def _rates(case: CostCase) -> dict[NodeId, Rate]:
    book = PriceBook(case.catalogue, case.prepared.spec)
    return {one.node.id: book.of(one.node) for one in case.usage.present}


def _rented(case: CostCase) -> dict[NodeId, Rate]:
    return {name: rate for name, rate in _rates(case).items() if rate.kind in ("on-demand", "spot")}


def _idlest(case: CostCase) -> str | None:
    """Return the pool whose idle capacity costs most."""
    idle = [one for one in case.report.idle if one.usd_micros > 0]
    return max(idle, key=lambda one: one.usd_micros).item if idle else None


def _waits_alike(before: SimResult, after: SimResult) -> bool:
    most = before.summary.avg_wait_s * WAIT_FACTOR + WAIT_MORE_S
    return (
        after.summary.refused <= before.summary.refused
        and after.summary.finished >= before.summary.finished
        and after.summary.avg_wait_s <= most
    )


def _can_restart(job: Job) -> bool:
    return job.terms is None or (job.terms.preemptible and job.terms.kind in RESTARTABLE)


def _spot_price(catalogue: Catalogue, accelerator: str, provider: str) -> float | None:
    """Return the spot price of the provider, else the median of all."""
    facts = catalogue.prices_of(accelerator, "spot")
    own = [one.usd_per_gpu_hour for one in facts if one.provider == provider]
    prices = own or [one.usd_per_gpu_hour for one in facts]
    return float(np.median(prices)) if prices else None


def _typical_s(held: Sequence[Held]) -> float:
    """Return the length of a run that a GPU-hour is part of, on average."""
    lengths = np.array([(one.end_ms - one.start_ms) / SECOND for one in held])
    weights = lengths * np.array([one.milli for one in held])
    return max(float((lengths * weights).sum() / weights.sum()), 60.0)


def _cost(one: Held, rate: Rate) -> float:
    return one.milli / WHOLE * (one.end_ms - one.start_ms) / HOUR * rate.usd_micros_per_gpu_hour


def _peak_gpus(usage: Usage, team: str) -> int:
    """Return the GPUs that a team held in all but 5% of the time."""
    changes = sorted(
        change
        for one in usage.held
        if one.job.team == team
        for change in ((one.start_ms, one.milli), (one.end_ms, -one.milli))
    )
    level, at, lasting = 0, usage.start_ms, list[tuple[int, int]]()
    for moment, change in changes:
        lasting.append((level, moment - at))
        level, at = level + change, moment
    lasting.append((level, usage.end_ms - at))
    left = (usage.end_ms - usage.start_ms) * QUOTA_PERCENTILE / 100
    for milli, span in sorted(lasting):
        left -= span
        if left <= 0:
            return -(-milli // WHOLE)
    return -(-max(milli for milli, _ in lasting) // WHOLE)


def _governed_wait(case: CostCase, name: str, gpus: int) -> tuple[float, float]:
    """Return the mean wait of a team, and of all, under quotas with this one lowered."""
    spec = case.prepared.spec
    teams = tuple(
        replace(team, quota_gpus=_lowered(team.quota_gpus, gpus if team.id == name else 0))
        for team in spec.teams
    )
    policy = Policy(name="governed")
    rules = governance_of(policy, replace(spec, teams=teams), case.catalogue)
    request = replace(case.prepared.request, policy=replace(policy, govern=rules))
    result = simulate(request)
    own = result.teams.get(name)
    return (own.avg_wait_s if own is not None else result.summary.avg_wait_s), (
        result.summary.avg_wait_s
    )


def _lowered(quota: Mapping[str, int], gpus: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for name, own in quota.items():
        found[name] = own - min(own, gpus)
        gpus -= own - found[name]
    return found
