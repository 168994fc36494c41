"""Residency and ends that a record or a trace tells of are not lost on the way to a policy."""

from pathlib import Path

from msgspec.structs import replace

from replay_builders import job, node, recorded, request
from tenfold.compose.inputs import SimFiles, prepare
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.recording import Recording, events_of
from tenfold.model.events import JobEnded, JobRefused, JobStarted
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.study.replay.bundle import nodes_in, simulate_recorded
from tenfold.study.replay.rerun import request_of, rerun

EU = Policy(
    name="governed",
    govern=GovernanceRules(teams=(TeamRules(id=TeamId("red"), residency=("eu",)),)),
)
PLACED = replace(
    node("n1"),
    tags=("eu",),
    rack="r1",
    leaf="l1",
    pod="p1",
    scaleup="s1",
    watts_idle=500,
    watts_per_gpu=700,
    rack_watts=7_000,
    cpus_milli=64_000,
    memory_mib=1_024,
)
MEMBERS: list[Node] = [replace(node("n0"), tags=("us",)), PLACED]


def plain(*names: str) -> SimRequest:
    """A run under a policy without teams: one job a node, the first node first."""
    jobs = [job(name, 8, seq=seq, team="red") for seq, name in enumerate(names)]
    return replace(request("fifo", jobs=jobs, faults=[]), nodes=MEMBERS)


def test_a_record_keeps_every_field_of_its_nodes(tmp_path: Path):
    _, bundle = recorded(plain("a"), tmp_path / "run.jsonl")
    assert nodes_in(bundle) == MEMBERS
    asked, _ = request_of(bundle, list(events_of(bundle.lines)), EU)
    assert list(asked.nodes) == MEMBERS


def test_a_rerun_binds_jobs_to_the_nodes_that_their_team_may_use(tmp_path: Path):
    _, bundle = recorded(plain("a", "b"), tmp_path / "run.jsonl")
    again = rerun(bundle, EU).again
    starts = [event for event in again if isinstance(event, JobStarted)]
    assert [event.job_id for event in starts] == ["a", "b"]
    # Both wait for the only node with the tag.
    assert starts[1].at_ms > starts[0].at_ms


def test_a_shadow_sees_jobs_bound_by_the_policy_on_trial():
    _, shadowed = simulate_recorded(plain("a", "b"), shadow=EU)
    assert shadowed is not None
    assert shadowed.failure == ""
    first = shadowed.differences[0]
    assert (first.elsewhere, first.held_back) == (("a",), ("b",))


def test_a_rerun_ends_jobs_as_they_ended(tmp_path: Path):
    failed = replace(plain("a", "b"), ends={JobId("a"): "failed"})
    _, bundle = recorded(failed, tmp_path / "run.jsonl")
    ended = [
        event for event in rerun(bundle, Policy(name="edf")).again if isinstance(event, JobEnded)
    ]
    assert {event.job_id: event.status for event in ended} == {"a": "failed", "b": "completed"}


def test_who_comes_after_a_job_that_failed_is_refused():
    then = replace(job("then", 8, seq=1), terms=Terms(after=(JobId("a"),)))
    asked = SimRequest(
        nodes=MEMBERS,
        jobs=[job("a", 8), then],
        policy=Policy(name="governed"),
        ends={JobId("a"): "failed"},
    )
    journal = Recording()
    simulate(asked, journal=journal)
    [refused] = [event for event in events_of(journal.lines) if isinstance(event, JobRefused)]
    assert (refused.job_id, refused.reasons[0].code) == ("then", "dependency-failed")


def test_the_status_column_of_a_trace_says_how_jobs_end(tmp_path: Path):
    (tmp_path / "fleet.toml").write_text(
        '[[pool]]\nname = "p"\nnodes = 1\naccelerator = "H100-80G-SXM"\ngpus_per_node = 8\n'
    )
    rows = ["a,0,60,1,FAILED", "b,0,60,1,completed", "c,0,60,1,killed", "d,0,60,1,evicted"]
    table = "\n".join(["job_id,submit_s,duration_s,gpus,status", *rows, ""])
    (tmp_path / "jobs.csv").write_text(table)
    prepared = prepare(SimFiles(fleet=tmp_path / "fleet.toml", jobs=tmp_path / "jobs.csv"))
    assert prepared.request.ends == {"a": "failed", "c": "cancelled"}
