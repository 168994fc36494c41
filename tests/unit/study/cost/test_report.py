"""A bill from a simulated run, and from its record, is the same to the micro-dollar."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from price_builders import ROOT
from tenfold.cli.cost.render import cost_csv, cost_page
from tenfold.compose.inputs import SimFiles, prepare
from tenfold.files.records.replay_bundle import Bundle, BundleEnd, BundleHeader
from tenfold.model.actions import StartJob
from tenfold.model.errors import InputError
from tenfold.model.events import (
    ActionOrdered,
    JobEnded,
    JobStarted,
    JobSubmitted,
    NodeJoined,
    NodeLost,
)
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId
from tenfold.model.job.job import Job, Shape, Slot
from tenfold.model.units import Millis
from tenfold.study.cost.question import CostAnswer, CostQuestion, cost_answer
from tenfold.study.cost.usage import usage_of_record
from tenfold.study.replay.bundle import simulate_recorded

STARTUP = ROOT / "examples" / "startup-cloud"
FLEET, JOBS = STARTUP / "fleet.yaml", STARTUP / "jobs.csv"


def simulated(**more: object) -> CostAnswer:
    return cost_answer(CostQuestion(fleet=FLEET, jobs=JOBS, **more))  # pyright: ignore[reportArgumentType]


def test_a_record_is_billed_as_the_run_that_made_it(tmp_path: Path):
    bundle = tmp_path / "run.jsonl.gz"
    prepared = prepare(SimFiles(fleet=FLEET, jobs=JOBS))
    simulate_recorded(prepared.request, bundle=bundle)
    recorded = cost_answer(CostQuestion(bundle=str(bundle), fleet=FLEET)).report
    run = simulated().report
    assert recorded.rows["job"] == run.rows["job"] or {
        (row.key, row.usd_micros) for row in recorded.rows["job"]
    } == {(row.key, row.usd_micros) for row in run.rows["job"]}
    assert recorded.charged_usd_micros == run.charged_usd_micros
    assert recorded.total_usd_micros == run.total_usd_micros


def test_every_dimension_has_the_same_charges():
    report = simulated().report
    for rows in report.rows.values():
        assert sum(row.usd_micros for row in rows) == report.charged_usd_micros
        assert sum(row.idle_usd_micros for row in rows) == report.idle_usd_micros


def test_a_record_without_a_fleet_is_priced_by_accelerator_and_says_so(tmp_path: Path):
    bundle = tmp_path / "run.jsonl.gz"
    simulate_recorded(prepare(SimFiles(fleet=FLEET, jobs=JOBS)).request, bundle=bundle)
    report = cost_answer(CostQuestion(bundle=str(bundle))).report
    assert report.kwh is None
    assert any("median on-demand price" in note for note in report.notes)
    assert report.total_usd_micros > 0


def test_jobs_that_never_ran_are_counted_in_a_note(tmp_path: Path):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "job_id,team,submit_s,duration_s,gpus,gpu_type\n"
        "a,x,0,3600,4,L40S\nb,x,0,3600,4,H200\nc,x,10,3600,4,H200\n"
    )
    notes = cost_answer(CostQuestion(fleet=FLEET, jobs=jobs)).notes
    assert "2 of 3 GPU jobs never ran, and are not in the bill" in notes
    assert not any("never ran" in note for note in simulated().notes)


def test_hours_of_the_grid_change_carbon_and_not_energy():
    green = ROOT / "examples" / "green-batch"
    flat = cost_answer(CostQuestion(fleet=green / "fleet.toml", jobs=green / "jobs.csv")).report
    hourly = cost_answer(
        CostQuestion(
            fleet=green / "fleet.toml",
            jobs=green / "jobs.csv",
            intensity=green / "intensity.csv",
        )
    ).report
    assert hourly.kwh == flat.kwh
    assert hourly.co2e_kg != flat.co2e_kg


@pytest.mark.parametrize(
    "question", [CostQuestion(), CostQuestion(bundle="x", jobs=JOBS), CostQuestion(jobs=JOBS)]
)
def test_a_question_without_usage_is_refused(question: CostQuestion):
    with pytest.raises(InputError) as found:
        cost_answer(question)
    assert found.value.code == "no-usage"


def test_csv_has_exact_dollars_that_add_up():
    report = simulated().report
    lines = [line.rsplit(",", 5) for line in cost_csv(report).splitlines()[1:]]
    teams = [row for row in lines if row[0].startswith("team,")]
    micros = sum(int(row[2].replace(".", "")) for row in teams)
    assert micros == report.charged_usd_micros
    assert lines[-1][0] == "total,"
    assert int(lines[-1][2].replace(".", "")) == report.total_usd_micros


def test_the_page_has_every_dimension():
    page = cost_page(simulated())
    for title in ("By team", "By job", "By class", "By accelerator", "Idle and overhead"):
        assert title in page


def test_gpus_of_another_party_are_metered_by_owner(tmp_path: Path):
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(
        """\
name = "shared"
[[site]]
name = "home"
[[site]]
name = "partner"
owner = "acme"
trust = "standard"
residency = ["EU"]
[[pool]]
name = "own"
site = "home"
accelerator = "H100"
nodes = 1
gpus_per_node = 8
price = { kind = "owned", usd_per_gpu_hour = 1.0 }
[[pool]]
name = "theirs"
site = "partner"
accelerator = "H100"
nodes = 1
gpus_per_node = 8
price = { kind = "on-demand", usd_per_gpu_hour = 2.0 }
"""
    )
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(
        "job_id,submit_s,duration_s,gpus,team,needs\na,0,3600,8,x,trust-standard\nb,0,7200,8,x,\n"
    )
    report = cost_answer(CostQuestion(fleet=fleet, jobs=jobs)).report
    owners = {row.key: row.usd_micros for row in report.rows["owner"]}
    assert owners == {"acme": 16_000_000, "(own)": 16_000_000}


def test_a_rented_node_that_was_given_back_is_no_longer_paid_for():
    hour = 3_600_000
    Millis(9 * hour)
    node = Node(id=NodeId("n"), pool=PoolId("burst"), site=SiteId("north"), gpus=8)
    job = Job(id=JobId("j"), shape=Shape(key="8", gpus=8), submitted_ms=Millis(0))
    events = [
        NodeJoined(Millis(0), node),
        JobSubmitted(Millis(0), job),
        ActionOrdered(Millis(0), StartJob(job.id, (Slot(node.id, 8),))),
        JobStarted(Millis(0), job.id),
        JobEnded(Millis(hour), job.id),
        NodeLost(Millis(2 * hour), node.id, "burst: released"),
        JobSubmitted(
            Millis(9 * hour), replace(job, id=JobId("later"), submitted_ms=Millis(9 * hour))
        ),
    ]
    bundle = Bundle(
        file="x",
        header=BundleHeader(),
        lines=list(events),
        end=BundleEnd(events=7, cycles=0, fleet=""),
    )
    (present,) = usage_of_record(bundle).present
    assert (present.start_ms, present.end_ms, present.down_ms) == (0, 2 * hour, 0)
