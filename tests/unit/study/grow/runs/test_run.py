"""One run of a grown fleet: its figures, its name, and that it may go on elsewhere."""

import pickle
from pathlib import Path
from typing import TypeVar

import pytest
from msgspec.structs import replace

from tenfold.compose.fleet import OpenFleet, load_facts, load_fleet
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.model.errors import InputError
from tenfold.model.facts.failure_law import FailureLaw
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.ids import TeamId
from tenfold.model.job.job import Job
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, MINUTE, Bytes, Millis
from tenfold.physics.layout import lay_out
from tenfold.study.grow.inputs import GrowFiles, GrowInputs, grow_inputs
from tenfold.study.grow.runs.run import GrowTask, run_digest, run_once, simulate_task
from tenfold.testing.builders import job

T = TypeVar("T")
EXAMPLES = Path(__file__).parents[5] / "examples"
ONE_RACK = EXAMPLES / "one-rack" / "fleet.toml"


@pytest.fixture(scope="module")
def spec() -> FleetSpec:
    return load_fleet(ONE_RACK)


def hourly(count: int, *, gpus: float = 8, runs_s: float = 3_600) -> list[Job]:
    """A job of whole nodes each hour."""
    return [job(n, gpus, at_s=n * 3_600, runs_s=runs_s, team="ab"[n % 2]) for n in range(count)]


def again(thing: T) -> T:
    """The thing as another process would see it."""
    return pickle.loads(pickle.dumps(thing))  # noqa: S301


def test_a_task_and_its_figures_pickle(spec: FleetSpec):
    task = GrowTask(spec=spec, jobs=hourly(24), factor=2)
    there = again(task)
    figures = run_once(there)
    assert again(figures) == figures == run_once(task)


def test_factor_one_runs_the_history_itself_for_every_seed(spec: FleetSpec):
    jobs = hourly(30)
    task = GrowTask(spec=spec, jobs=jobs, policy=Policy(name="fifo"))
    ran = simulate_task(task)
    assert ran.jobs == jobs
    whole = simulate(SimRequest(nodes=ran.nodes, jobs=jobs, policy=Policy(name="fifo")))
    assert ran.result.meters.ends == [
        end for end in whole.meters.ends if end[4] <= ran.window.until_ms
    ]
    assert run_once(task) == run_once(replace(task, seed=3))


def test_more_jobs_are_more_load_and_nodes_with_them_are_not(spec: FleetSpec):
    task = GrowTask(spec=spec, jobs=hourly(48), factor=2)
    once, twice = run_once(replace(task, factor=1)), run_once(task)
    assert twice.load == pytest.approx(2 * once.load, rel=0.1)
    assert run_once(replace(task, axis="nodes")).load == pytest.approx(once.load, rel=0.1)


def test_an_overloaded_fleet_waits_and_strands_nothing_it_could_use(spec: FleetSpec):
    few = spec.nodes
    jobs = hourly(48, runs_s=few * 2 * 3_600)
    figures = run_once(GrowTask(spec=spec, jobs=jobs, policy=Policy(name="fifo")))
    assert figures.load > 1.5
    assert figures.wait_s_p90_gpu > 3_600
    assert figures.stranded == 0


def test_failures_cost_gpu_time(spec: FleetSpec):
    constraint = FailureLaw(
        name="often", faults_per_1000_node_days=100, repair_h_median=2.0, repair_h_mean=3.0
    )
    jobs = [job(n, 8, at_s=n * 60, runs_s=40 * 86_400) for n in range(spec.nodes)]
    jobs.append(job(99, 1, at_s=60 * 86_400, runs_s=10))
    quiet = run_once(GrowTask(spec=spec, jobs=jobs))
    faulty = run_once(GrowTask(spec=spec, jobs=jobs, failures=constraint, axis="nodes", factor=8))
    assert quiet.goodput == 1
    assert quiet.lost_gpu_h_per_day["failures"] == 0
    assert faulty.goodput < 1
    assert faulty.lost_gpu_h_per_day["failures"] > 0


def test_copies_end_as_their_models_did(spec: FleetSpec):
    jobs = hourly(24)
    ran = simulate_task(GrowTask(spec=spec, jobs=jobs, factor=2, ends={jobs[3].id: "failed"}))
    failed = [one.job.id for one in ran.result.fleet.history if one.status == "failed"]
    assert sorted(failed) == ["job-3", "job-3~1"]


def test_copies_of_teams_have_queues_of_their_own(spec: FleetSpec):
    govern = GovernanceRules(teams=(TeamRules(id=TeamId("a")), TeamRules(id=TeamId("b"))))
    policy = Policy(name="governed", govern=govern)
    ran = simulate_task(GrowTask(spec=spec, jobs=hourly(24), policy=policy, axis="teams", factor=2))
    assert sorted(dict.fromkeys(one.team for one in ran.jobs)) == ["a", "a~1", "b", "b~1"]


def test_a_larger_dataset_is_read_and_saved_no_faster():
    spec = load_fleet(EXAMPLES / "research-256" / "fleet.toml")
    tier = spec.tiers[0]
    traffic = Traffic(
        read_bytes_per_s_per_gpu=tier.read_bandwidth / 12,
        tier=str(tier.id),
        checkpoint_bytes=Bytes(tier.write_bandwidth * 60),
        checkpoint_every_ms=Millis(20 * MINUTE),
    )
    jobs = [replace(one, profile="p") for one in hourly(12)]
    profiles = {"p": WorkProfile(traffic=traffic)}
    today = run_once(GrowTask(spec=spec, jobs=jobs, axis="data", profiles=profiles))
    assert today.lost_gpu_h_per_day["contention"] > 0
    assert today == run_once(
        GrowTask(spec=spec, jobs=jobs, axis="data", factor=32, profiles=profiles)
    )


def test_what_a_run_does_not_read_does_not_change_its_name(spec: FleetSpec):
    policy = Policy()
    site = replace(spec.sites[0], power_kw_limit=5.0, usd_per_kwh=9.0)
    dearer = replace(spec, sites=(site, *spec.sites[1:]), name="other")
    assert run_digest(dearer, policy) == run_digest(spec, policy)
    pool = replace(spec.pools[0], nodes=spec.pools[0].nodes + 1)
    more = replace(spec, pools=(pool, *spec.pools[1:]))
    names = [
        run_digest(spec, policy),
        run_digest(more, policy),
        run_digest(spec, Policy(name="fifo")),
        run_digest(spec, policy, "preset"),
    ]
    assert len(dict.fromkeys(names)) == 4


def test_inputs_come_from_files_with_the_starts_that_they_tell(tmp_path: Path):
    table = tmp_path / "jobs.csv"
    table.write_text("job_id,submit_s,duration_s,gpus,start_s\na,0,60,1,5\nb,9,60,1,\n")
    inputs = grow_inputs(GrowFiles(fleet=ONE_RACK, jobs=table, policy="fifo"))
    assert [one.id for one in inputs.jobs] == ["a", "b"]
    assert inputs.starts_ms == {"a": 5_000}
    assert inputs.policy == Policy(name="fifo")


def test_a_fleet_alone_has_no_jobs_and_says_so():
    inputs = grow_inputs(GrowFiles(fleet=ONE_RACK))
    assert not inputs.jobs
    assert "no `--jobs` or `--mix`" in inputs.notes[0]


def test_a_mix_stands_in_for_a_history_but_not_beside_one(tmp_path: Path):
    mix = next(iter(load_facts().workloads)).name
    inputs = grow_inputs(GrowFiles(fleet=ONE_RACK, mix=mix, load=0.3))
    assert inputs.mix == mix
    assert inputs.jobs
    with pytest.raises(InputError) as caught:
        grow_inputs(GrowFiles(fleet=ONE_RACK, mix=mix, jobs=tmp_path / "jobs.csv"))
    assert caught.value.code == "jobs-and-mix"


def test_inputs_may_be_given_as_values(spec: FleetSpec):
    fleet = OpenFleet(spec=spec, layout=lay_out(spec), catalogue=load_facts())
    inputs = GrowInputs(fleet=fleet, jobs=hourly(3), starts_ms={hourly(1)[0].id: Millis(HOUR)})
    assert inputs.policy == Policy()
