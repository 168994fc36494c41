"""Residency in a fleet file or a policy file holds in both worlds, and `job why` says so."""

from pathlib import Path

import pytest

from rigs.virtual_live import LiveScript, run_live
from tenfold.cli.up.inputs import control_plane_inputs
from tenfold.compose.inputs import SimFiles, prepare
from tenfold.compose.simulation import simulate
from tenfold.engine.loop import Decider
from tenfold.engine.recording import Recording, events_of
from tenfold.fleet.fleet import Fleet
from tenfold.live.inbox import Submit
from tenfold.model.decision import Decision
from tenfold.model.ids import TeamId
from tenfold.model.job.job import Shape
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Submission
from tenfold.model.units import HOUR, Millis
from tenfold.report.reasons.render import render
from tenfold.server.background.follower import FleetSnapshot
from worlds.test_every_feature import experience_of

POOLS = """
[[pool]]
name = "us"
accelerator = "H100"
nodes = 1
gpus_per_node = 8
residency = ["US"]

[[pool]]
name = "eu"
accelerator = "H100"
nodes = 1
gpus_per_node = 8
residency = ["EU"]
"""
IN_FLEET = '\n[[team]]\nname = "lab"\nresidency = ["EU"]\n'
IN_POLICY = 'name = "governed"\n\n[[teams]]\nid = "lab"\nresidency = ["EU"]\n'
JOBS = "job_id,team,submit_s,duration_s,gpus\njob-1,lab,0,60,8\njob-2,lab,1,60,8\n"


@pytest.mark.parametrize("where", ["fleet", "policy"])
def test_a_team_bound_to_a_region_runs_only_there(where: str, tmp_path: Path):
    fleet, jobs, rules = (tmp_path / name for name in ("fleet.toml", "jobs.csv", "policy.toml"))
    fleet.write_text(POOLS + (IN_FLEET if where == "fleet" else ""))
    jobs.write_text(JOBS)
    rules.write_text(IN_POLICY)
    policy = "governed" if where == "fleet" else str(rules)
    kept = Recording()
    request = prepare(SimFiles(fleet=fleet, jobs=jobs, policy=policy)).request
    simulate(request, journal=kept)
    sim = experience_of(list(events_of(kept.lines)))

    inputs = control_plane_inputs(fleet, policy, None, [])
    reasons: list[str] = []

    class Why:
        def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
            for job_id in fleet.pending:
                asked = FleetSnapshot(fleet.fork(), now_ms, inputs.policy)
                answer = asked.why(job_id, "none", with_eta=False)
                assert answer is not None
                reasons.append(render(answer.why.reason))

    script = LiveScript(
        policy=inputs.policy,
        nodes=inputs.nodes,
        requests=[(job.submitted_ms, Submit((_submission(job.shape),))) for job in request.jobs],
        jobs={job.id: job for job in request.jobs},
        until_ms=Millis(HOUR),
    )
    live = experience_of(list(events_of(run_live(script, tmp_path / "journal.db", [Why()]))))
    assert live == sim
    starts = [step for steps in live.values() for step in steps if step[1] == "started"]
    assert [slot.node for step in starts for slot in step[2]] == ["eu-1", "eu-1"]
    assert reasons
    assert all("of 1 eligible node" in reason for reason in reasons), reasons


def _submission(shape: Shape) -> Submission:
    return Submission(
        team=TeamId("lab"), shape=shape, run_spec=RunSpec(name="job", command=("true",))
    )
