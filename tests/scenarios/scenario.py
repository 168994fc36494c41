"""A scenario of `examples/`: a fleet, its jobs and two policies, run as one golden text.

The digest is of every action in order: its moment, its kind on the wire, its job and its slots. It
changes where a decision does, and not where a class or a sentence is worded anew. The figures say
whether a change matters.
"""

from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple, cast

import msgspec
from msgspec.structs import astuple

from tenfold.compose.inputs import SimFiles, prepare
from tenfold.compose.simulation import SimResult, simulate
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import decision_key
from tenfold.model.decision import Decision
from tenfold.model.job.job import Slot
from tenfold.model.units import SECOND, Millis
from tenfold.sim.measure.meters import Summary
from tenfold.sim.world import SimSettings

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
GOLDEN = Path(__file__).parent / "golden"
RESTART_COST_S = 60
SETTINGS = SimSettings(restart_cost_ms=Millis(RESTART_COST_S * SECOND))


class Scenario(NamedTuple):
    folder: str
    application: str
    policies: tuple[str, str] = ("fifo", "tenfold")

    @property
    def fleet(self) -> Path:
        return next((EXAMPLES / self.folder).glob("fleet.*"))

    @property
    def jobs(self) -> Path:
        return EXAMPLES / self.folder / "jobs.csv"

    def policy(self, named: str) -> str:
        file = EXAMPLES / self.folder / named
        return str(file) if file.suffix and file.is_file() else named


SCENARIOS = [
    Scenario("sixteen-gpus-three-teams", "a small group that shares two nodes"),
    Scenario("hundred-twenty-eight-gpus-fifteen-teams", "an enterprise", ("fair", "tenfold")),
    Scenario("hundred-nodes-h100", "training of large models"),
    Scenario("startup-cloud", "a startup in the cloud"),
    Scenario("research-256", "science on a research cluster"),
    Scenario("bank-three-sites", "analytics of a regulated enterprise"),
    Scenario("edge-sites", "inference at the edge"),
    Scenario("batch-and-interactive", "services by day, batch by night", ("slurm.conf", "tenfold")),
]


class _Actions:
    """A witness that keeps a digest of all actions."""

    def __init__(self) -> None:
        self.count = 0
        self._hash = blake2b(digest_size=8)

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        for action in decision.actions:
            self.count += 1
            kind, job_id, slots = decision_key(action)[:3]
            given = [astuple(slot) for slot in cast("tuple[Slot, ...]", slots)]
            self._hash.update(msgspec.json.encode((now_ms, kind, job_id, given)))

    def digest(self) -> str:
        return self._hash.hexdigest()


def golden_text(scenario: Scenario) -> str:
    """Run a scenario under its policies and return what came of it, as lines to compare."""
    lines = [f"{scenario.folder}: {scenario.application}", ""]
    for named in scenario.policies:
        files = SimFiles(
            fleet=scenario.fleet,
            jobs=scenario.jobs,
            policy=scenario.policy(named),
            settings=SETTINGS,
        )
        prepared = prepare(files)
        actions = _Actions()
        result = simulate(prepared.request, witnesses=[actions])
        assert result.summary.finished + result.summary.refused == result.summary.jobs
        lines += _told(named, result)
        lines += [f"{actions.count} actions, digest {actions.digest()}", ""]
    return "\n".join(lines)


def golden_file(scenario: Scenario) -> Path:
    return GOLDEN / f"{scenario.folder}.txt"


def _told(named: str, result: SimResult) -> list[str]:
    head = f"{'policy ' + named:24}{'jobs':>7}{'done':>7}{'jct s':>11}{'p99 s':>11}{'wait s':>11}"
    lines = [head + f"{'used':>7}{'stops':>7}{'lost h':>9}"]
    rows = {"all": result.summary, **result.teams}
    return lines + [_row(name, part) for name, part in rows.items()]


def _row(name: str, part: Summary) -> str:
    return (
        f"{name:24}{part.jobs:7}{part.finished:7}{part.avg_jct_s:11.0f}{part.p99_jct_s:11.0f}"
        f"{part.avg_wait_s:11.0f}{part.gpu_utilization:7.3f}{part.preemptions:7}"
        f"{part.gpu_hours_lost:9.1f}"
    )
