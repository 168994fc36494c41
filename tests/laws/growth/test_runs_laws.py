"""Figures of grown runs, byte for byte, however Python hashes; and stopped runs with company."""

import os
import subprocess
import sys
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.compose.fleet import load_fleet
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.recording import Recording
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, MINUTE, Bytes, Millis
from tenfold.physics.layout import lay_out
from tenfold.physics.nodes import nodes_of
from tenfold.physics.shared_layers import shared_layers
from tenfold.sim.contention.model import ContentionModel
from tenfold.sim.contention.solver import ContentionSolver
from tenfold.testing.builders import job

RESEARCH = Path(__file__).parents[3] / "examples" / "research-256" / "fleet.toml"

SCRIPT = f"""
import msgspec
from pathlib import Path
from tenfold.compose.fleet import load_fleet
from tenfold.study.grow.runs.run import GrowTask, run_digest, run_once
from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.policy.policy import Policy
from tenfold.testing.builders import job
spec = load_fleet(Path({str(RESEARCH)!r}))
jobs = [job(n, (1, 8, 5)[n % 3], at_s=n * 2_000, runs_s=9_000, team="abc"[n % 3])
        for n in range(80)]
law = FailureLaw(name="f", faults_per_1000_node_days=90, repair_h_median=1.0, repair_h_mean=2.0)
for axis in ("jobs", "teams", "nodes", "job-size", "all"):
    task = GrowTask(spec=spec, jobs=jobs, axis=axis, factor=2.3, seed=1, failures=law)
    print(axis, msgspec.json.encode(run_once(task)), run_digest(spec, Policy()))
"""


def test_the_same_figures_under_any_hash_seed():
    said = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "4321")
    ]
    assert said[0] == said[1]
    assert said[0].count("load") == 5


@settings(max_examples=25)
@given(st.integers(0, 30 * HOUR), st.integers(1, 40))
def test_jobs_with_company_have_the_same_beginning(until: int, crowd: int):
    spec = load_fleet(RESEARCH)
    layout = lay_out(spec)
    tier = spec.tiers[0]
    traffic = Traffic(
        read_bytes_per_s_per_gpu=tier.read_bandwidth / 100,
        tier=str(tier.id),
        checkpoint_bytes=Bytes(10**12),
        checkpoint_every_ms=Millis(30 * MINUTE),
    )
    jobs = [replace(job(n, 8, at_s=n * 1_000, runs_s=7_200), profile="p") for n in range(crowd)]

    def lines(last: Millis | None) -> Recording:
        kept = Recording()
        contention = ContentionModel(
            ContentionSolver(shared_layers(layout)), {"p": WorkProfile(traffic=traffic)}
        )
        request = SimRequest(
            nodes=list(nodes_of(spec, layout)),
            jobs=jobs,
            policy=Policy(name="fifo"),
            contention=contention,
            until_ms=last,
        )
        simulate(request, journal=kept, witnesses=[kept])
        return kept

    whole = lines(None).lines
    assert lines(Millis(until)).lines == [line for line in whole if line.at_ms <= until]
