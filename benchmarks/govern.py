"""Governed placement at scale: placements, refusals, reclaim, Kueue's scenarios, Philly.

Kueue's scenarios and Philly are whole processes, in CPU seconds of the kernel's count; the
rest is timed within this one, best of three.
"""

import json
import math
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from benchmarks.sim_speed import PHILLY
from benchmarks.verdict import Verdict
from tenfold.clock import Stopwatch
from tenfold.compose.policies import placing_decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, Event, JobStarted, JobSubmitted, NodeJoined
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import WHOLE, Job, shape_of
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, Millis
from tenfold.study.bench.kai import kai_reclaim, kai_unschedulable

TIMES = 3
NODES = 5_000
RACK = 16
TEAMS = 10
BATCH = 1_000
"""Jobs that come at one moment."""
GANG_EVERY = 10
"""One job in so many is a gang of two to eight nodes that must share a rack."""
RECLAIM_NODES = 1_000
KUEUE = ("kueue-baseline", "kueue-large", "kueue-tas")
PATIENCE_S = 300
PHILLY_NODES = 96
PHILLY_GPUS = PHILLY_NODES * 8


def run(thresholds: dict[str, float]) -> list[Verdict]:
    verdicts = _placements(thresholds) + _answers(thresholds)
    for name in KUEUE:
        verdicts += _kueue(name, thresholds)
    return verdicts + _philly(thresholds)


def _answers(thresholds: dict[str, float]) -> list[Verdict]:
    """Time the two questions that cost other schedulers minutes."""
    no = min(kai_unschedulable().ours("time to unschedulable, with reason") for _ in range(TIMES))
    found = [kai_reclaim(RECLAIM_NODES) for _ in range(TIMES)]
    cycle = min(each.ours("longest cycle") for each in found)
    print(f"`no`, and why: {no:.2f} ms; reclaim at {RECLAIM_NODES:,} nodes: {cycle:.1f} ms")
    return [
        Verdict("cannot be scheduled, because", no, thresholds["no_ms"], " ms"),
        Verdict("a reclaim cycle, 1,000 nodes", cycle, thresholds["reclaim_ms"], " ms"),
    ]


def _placements(thresholds: dict[str, float]) -> list[Verdict]:
    """Fill 5,000 nodes in racks with jobs and gangs of ten teams with quotas."""
    rate = 0.0
    for _ in range(TIMES):
        placed, cpu_s = _filled()
        rate = max(rate, placed / cpu_s)
    print(f"{NODES:,} nodes, racks of {RACK}, {TEAMS} teams: {rate:,.0f} placements/CPU s")
    return [Verdict("placements/s, 5,000 nodes", rate, at_least=thresholds["placements"])]


def _filled() -> tuple[int, float]:
    """Return how many jobs were placed, and the CPU time of deciding and applying."""
    fleet = Fleet()
    fleet.apply_all([NodeJoined(Millis(0), _node(number)) for number in range(NODES)])
    quota = {"gpu": NODES * 8 // TEAMS * WHOLE}
    teams = tuple(TeamRules(id=_team(number), quota=quota) for number in range(TEAMS))
    decider = placing_decider(Policy(name="governed", govern=GovernanceRules(teams=teams)))
    decider.decide(fleet, Millis(0), None)
    jobs = _jobs()
    placed, cpu_s = 0, 0.0
    seen: list[Event] = []
    for first in range(0, len(jobs), BATCH):
        now_ms = Millis(first + 1)
        watch = Stopwatch()
        submitted = [JobSubmitted(now_ms, job) for job in jobs[first : first + BATCH]]
        fleet.apply_all(submitted)
        decision = decider.decide(fleet, now_ms, [*seen, *submitted])
        seen = [ActionOrdered(now_ms, action) for action in decision.actions]
        starts = [each for each in decision.actions if isinstance(each, StartJob)]
        seen += [JobStarted(now_ms, each.job_id) for each in starts]
        fleet.apply_all(seen)
        cpu_s += watch.cpu_s()
        placed += len(starts)
    assert placed == len(jobs), f"{placed:,} of {len(jobs):,} jobs found room"
    return placed, cpu_s


def _jobs() -> list[Job]:
    """Return jobs for nine tenths of the fleet."""
    where = PlacementConstraints(within="rack", how="required")
    one = shape_of(1)
    gangs = [shape_of(8 * nodes, where=where) for nodes in (2, 4, 2, 8)]
    jobs: list[Job] = []
    gpus = 0
    while gpus < NODES * 8 * 9 // 10:
        number = len(jobs)
        is_gang = number % GANG_EVERY == 0
        shape = gangs[number // GANG_EVERY % len(gangs)] if is_gang else one
        gpus += shape.gpus
        jobs.append(
            Job(
                id=JobId(f"job-{number}"),
                shape=shape,
                submitted_ms=Millis(number // BATCH * BATCH + 1),
                seq=number,
                team=_team(number % TEAMS),
                duration_ms=Millis(HOUR),
            )
        )
    return jobs


def _team(number: int) -> TeamId:
    return TeamId(f"team-{number}")


def _node(number: int) -> Node:
    rack = number // RACK
    return Node(
        id=NodeId(f"n{number:05}"),
        pool=PoolId("p"),
        site=SiteId("s"),
        accelerator="gpu",
        gpus=8,
        rack=f"r{rack}",
        leaf=f"l{rack // 4}",
        pod=f"d{rack // 32}",
    )


def _kueue(name: str, thresholds: dict[str, float]) -> list[Verdict]:
    """Run a scenario with work lost at every preemption, as theirs is."""
    cpu_s, answer = _process(["bench", name, "--restart", "--json"])
    figures = answer.get("figures", [])
    ours = {each["name"]: float(each["ours"]) for each in figures}
    over = stopped = math.inf
    if ours:
        over = ours["makespan"] / ours["total work / total quota"]
        stopped = ours["preemptions"] / ours["workloads"]
        waits = ", ".join(
            f"{size} {ours[f'mean time to admission, {size}']:.1f} s"
            for size in ("large", "medium", "small")
        )
        print(
            f"{name}: {cpu_s:.1f} s of CPU; makespan {ours['makespan']:.1f} s, at least"
            f" {ours['least possible makespan']:.2f} s ({ours['all work over all quota']:.2f} s of"
            f" work over quota); {ours['preemptions']:,.0f} preemptions;"
            f" admitted after {waits}"
        )
    return [
        Verdict(f"{name}: CPU", cpu_s, thresholds["kueue_cpu_s"], " s"),
        Verdict(f"{name}: makespan over bound", over, thresholds["kueue_over_bound"]),
        Verdict(f"{name}: preemptions a workload", stopped, thresholds["kueue_preemptions"]),
    ]


def _philly(thresholds: dict[str, float]) -> list[Verdict]:
    """Run Philly with every virtual cluster a team with a quota; all borrow from each other."""
    if not PHILLY.exists():
        print(f"skipped: {PHILLY} is not here")
        return []
    with tempfile.TemporaryDirectory() as folder:
        fleet, policy = Path(folder) / "fleet.toml", Path(folder) / "teams.toml"
        fleet.write_text(
            f'[[pool]]\nname = "p"\naccelerator = "p100"\nnodes = {PHILLY_NODES}\n'
            "gpus_per_node = 8\n"
        )
        policy.write_text('name = "governed"\n' + "".join(_team_tables()))
        words = ["sim", "run", "--fleet", str(fleet), "--jobs", str(PHILLY)]
        words += ["--policy", str(policy), "--json"]
        cpu_s, answer = min((_process(words) for _ in range(TIMES)), key=lambda each: each[0])
    rate = float(answer.get("jobs", 0)) / cpu_s
    if answer:
        print(
            f"Philly, governed, {PHILLY_NODES} nodes: {cpu_s:.2f} s of CPU, {rate:,.0f} jobs/s,"
            f" average completion {float(answer['avg_jct_s']):,.0f} s,"
            f" {answer['preemptions']:,} preemptions"
        )
    return [Verdict("Philly, governed, jobs/s", rate, at_least=thresholds["philly"])]


def _team_tables() -> list[str]:
    """Return a table for each virtual cluster; quotas share the fleet by GPU hours."""
    table = pq.read_table(PHILLY, columns=["team", "duration_s", "gpus"])
    work: dict[str, float] = {}
    for row in table.to_pylist():
        work[row["team"]] = work.get(row["team"], 0.0) + row["duration_s"] * row["gpus"]
    total = sum(work.values())
    return [
        f'[[teams]]\nid = "{team}"\nquota = {{ p100 = {int(PHILLY_GPUS * share / total)} }}\n'
        for team, share in sorted(work.items())
    ]


def _process(words: list[str]) -> tuple[float, dict[str, Any]]:
    """Return the CPU time of a command and its answer; none where it failed or took too long."""
    tenfold = Path(sys.executable).with_name("tenfold")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            [tenfold, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    except subprocess.TimeoutExpired:
        print(f"{' '.join(words[:2])}: not over after {PATIENCE_S} s")
        return math.inf, {}
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        print(f"{' '.join(words[:2])}: {done.stderr.strip()[-300:]}")
        return math.inf, {}
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu_s, json.loads(done.stdout)
