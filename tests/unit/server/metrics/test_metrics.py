"""What Prometheus scrapes: the figures are right, and the form is clean."""

from litestar import Litestar
from litestar.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families

from engines.prometheus import promtool
from patience import until
from tenfold.clock.wall import now_ms
from tenfold.live.executor import AttemptLost
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from unit.server.fake_executor import FakeProcesses
from unit.server.waiting import job_when

Client = TestClient[Litestar]


def scraped(client: Client) -> dict[str, float]:
    """Return every sample by its name and labels."""
    return {
        sample.name + "".join(f"[{value}]" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }


def test_jobs_gpus_and_nodes_are_counted_by_state(member: Client):
    rows = [{"command": ["true"], "gpus_per_node": 4}] * 3
    member.post("/api/v1/jobs", json={"jobs": rows})
    job_when(member, "job-1", "running")
    job_when(member, "job-2", "running")
    # Nodes and GPUs come from a copy of the fleet that is a moment old.
    until(lambda: scraped(member)["tenfold_gpus[held]"] == 8)
    found = scraped(member)
    assert found["tenfold_jobs[running]"] == 2
    assert found["tenfold_jobs[pending]"] == found["tenfold_queue_depth_jobs"] == 1
    assert found["tenfold_gpus[free]"] == 0
    assert found["tenfold_nodes[up]"] == 2
    assert found["tenfold_submitted_jobs_total"] == 3
    assert found["tenfold_loop_up"] == 1
    assert found["tenfold_loop_cycles_total"] >= 2
    assert found["tenfold_journal_commit_seconds_count"] >= 2


def test_detection_and_recovery_are_timed(member: Client, processes: FakeProcesses):
    made = member.post("/api/v1/jobs", json={"command": ["true"]}).json()["id"]
    job_when(member, made, "running")
    lost = Reason("supervisor-lost", sentence="it was killed")
    processes.see(AttemptLost(Millis(now_ms()), JobId(made), 1, lost))
    told = job_when(member, made, "running", attempts=2)
    assert told["attempts"][0]["reason"] == "supervisor-lost"
    found = scraped(member)
    assert found["tenfold_failure_detection_seconds_count"] == 1
    assert found["tenfold_failure_recovery_seconds_count"] == 1


def test_the_metrics_are_clean_by_prometheus_own_check(member: Client):
    member.get("/api/v1/jobs")
    assert promtool("check", "metrics", given=member.get("/metrics").text) == (0, "")


def test_names_and_units_are_those_that_prometheus_asks_for(member: Client):
    member.get("/api/v1/jobs")
    for family in text_string_to_metric_families(member.get("/metrics").text):
        assert family.name.startswith("tenfold_"), family.name
        assert family.documentation, family.name
        assert family.type != "untyped", family.name
        if family.type == "counter":
            assert all(one.name.endswith("_total") for one in family.samples), family.name
        if family.type == "histogram":
            assert family.name.endswith("_seconds"), family.name
