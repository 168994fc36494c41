"""Jobs that use nothing: measured, flagged by a fact, shown, reclaimed, and watched anew."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from litestar import Litestar
from litestar.testing import TestClient
from prometheus_client.parser import text_string_to_metric_families

from engines.prometheus import promtool
from patience import HANG_S, until
from tenfold.clock.wall import now_ms
from tenfold.decide.detect.idle import IdleRule
from tenfold.engine.recording import events_of
from tenfold.engine.replay import rebuild
from tenfold.journal.read import lines_between
from tenfold.live.inbox import Answer, JobActivity, ReportActivity
from tenfold.live.usage import AttemptUsage, UsageSample
from tenfold.model.events import Event, JobBusy, JobEnded, JobIdled
from tenfold.model.ids import JobId
from tenfold.model.job.usage import GpuUse, JobUse, Measure
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.server.app import make_app
from tenfold.server.auth.tokens import Role
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from unit.server.conftest import NODES
from unit.server.fake_executor import FakeExecutor, FakeProcesses
from unit.server.waiting import job_when

Client = TestClient[Litestar]
GOVERNED = Policy(name="governed", govern=GovernanceRules(idle_ms=Millis(HOUR)))


class Figures:
    """A probe that says what a test tells it to, as if minutes had passed."""

    def __init__(self) -> None:
        self.uses: dict[str, int] = {}
        self.measure_is: Measure = "gpu"
        self.at_ms = now_ms()

    def measure(self, now_ms: Millis) -> UsageSample:
        self.at_ms += MINUTE
        attempts = tuple(
            AttemptUsage(
                JobId(name),
                1,
                JobUse(
                    at_ms=Millis(self.at_ms),
                    measure=self.measure_is,
                    use_milli=use,
                    use_milli_most=use,
                    memory_used_bytes=2**30,
                ),
            )
            for name, use in self.uses.items()
        )
        gpu = GpuUse(number=0, use_milli=250, memory_used_bytes=5, memory_bytes=10)
        return UsageSample(attempts, (gpu,))


class Plane:
    """A control plane whose looks are taken by hand."""

    def __init__(self, runtime: Runtime, client: Client, figures: Figures) -> None:
        self.runtime, self.client, self.figures = runtime, client, figures
        token = runtime.control.tokens.create(name="m", team="red", role=Role.member, days=1)[0]
        client.headers["Authorization"] = f"Bearer {token}"

    def submit(self, **keys: object) -> str:
        asked = {"command": ["true"], "gpus_per_node": 2, **keys}
        made = self.client.post("/api/v1/jobs", json=asked).json()["id"]
        job_when(self.client, made, "running")
        return made

    def look(self, times: int = 1) -> None:
        sampler = self.runtime.sampler
        assert sampler is not None
        for _ in range(times):
            sampler.once()

    def facts(self) -> list[Event]:
        found = events_of(lines_between(self.runtime.store))
        return [one for one in found if isinstance(one, JobIdled | JobBusy)]

    def idles(self, job_id: str) -> bool:
        return "idle_since" in self.client.get(f"/api/v1/jobs/{job_id}").json()


@contextmanager
def plane(
    tmp_path: Path,
    processes: FakeProcesses,
    policy: Policy | None = None,
    figures: Figures | None = None,
) -> Iterator[Plane]:
    measured = figures or Figures()
    runtime = Runtime(
        ServerDeps(
            journal=str(tmp_path / "journal.db"),
            executor=lambda: FakeExecutor(processes),
            logs=processes,
            wait_s=HANG_S,
            policy=policy or Policy(),
            probe=lambda: measured,
            idling=IdleRule(after_ms=Millis(15 * MINUTE)),
            gpus_on="n1",
        )
    )
    runtime.start(NODES)
    try:
        with TestClient(make_app(runtime.control), raise_server_exceptions=False) as client:
            yield Plane(runtime, client, measured)
    finally:
        runtime.stop()


def scraped(client: Client) -> dict[str, float]:
    return {
        sample.name + "".join(f"[{value}]" for value in sample.labels.values()): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }


def test_a_job_that_uses_nothing_is_flagged_and_is_let_go_once_it_does(
    tmp_path: Path, processes: FakeProcesses
):
    with plane(tmp_path, processes) as it:
        lazy, busy = it.submit(), it.submit()
        it.figures.uses = {lazy: 0, busy: 900}
        it.look(15)
        assert it.facts() == []
        it.look()
        until(lambda: it.idles(lazy))
        assert not it.idles(busy)
        it.figures.uses[lazy] = 400
        it.look()
        until(lambda: not it.idles(lazy))
        assert [type(one) for one in it.facts()] == [JobIdled, JobBusy]
        told = it.client.get(f"/api/v1/jobs/{busy}").json()
        assert told["use"] | {"at": ""} == {
            "at": "",
            "measure": "gpu",
            "share": 0.9,
            "gpu_memory_bytes": 2**30,
        }


def test_under_a_policy_without_governance_an_idle_session_is_flagged_only(
    tmp_path: Path, processes: FakeProcesses
):
    with plane(tmp_path, processes) as it:
        made = it.submit(kind="interactive", idle_after="5m")
        it.figures.uses = {made: 0}
        it.look(6)
        until(lambda: it.idles(made))
        it.look(60)
        assert it.client.get(f"/api/v1/jobs/{made}").json()["state"] == "running"


def test_governed_ends_a_session_after_its_own_time_and_leaves_other_jobs(
    tmp_path: Path, processes: FakeProcesses
):
    with plane(tmp_path, processes, GOVERNED) as it:
        session = it.submit(kind="interactive", idle_after="1ms")
        batch = it.submit(idle_after="1ms", preemptible=False)
        it.figures.uses = {session: 0, batch: 0}
        it.look(2)
        told = job_when(it.client, session, "cancelled")
        assert told["reason"]["code"] == "idle"
        assert "idle for" in told["reason"]["sentence"]
        assert told["attempts"][0]["reason"] == "idle"
        until(lambda: it.idles(batch))
        assert it.client.get(f"/api/v1/jobs/{batch}").json()["state"] == "running"


def test_a_controller_that_comes_back_counts_again(tmp_path: Path, processes: FakeProcesses):
    figures = Figures()
    with plane(tmp_path, processes, figures=figures) as it:
        made = it.submit()
        figures.uses = {made: 0}
        it.look(16)
        until(lambda: it.idles(made))
    with plane(tmp_path, processes, figures=figures) as it:
        until(lambda: isinstance(it.facts()[-1], JobBusy))
        last = it.facts()[-1]
        assert isinstance(last, JobBusy)
        assert not it.idles(made)
        assert getattr(last.cause, "code", "") == "not-measured"
        it.look(15)
        assert not it.idles(made)
        it.look()
        until(lambda: it.idles(made))


def test_a_session_that_was_told_to_end_before_a_crash_is_over_after_it(
    tmp_path: Path, processes: FakeProcesses
):
    stopped: list[tuple[JobId, int]] = []
    processes.stop = lambda job_id, attempt: stopped.append((job_id, attempt))  # pyright: ignore
    with plane(tmp_path, processes, GOVERNED) as it:
        made = it.submit(kind="interactive", idle_after="1ms")
        it.figures.uses = {made: 0}
        it.look(2)
        job_when(it.client, made, "stopping")
    FakeProcesses.stop(processes, JobId(made), 1)
    with plane(tmp_path, processes, GOVERNED) as it:
        told = job_when(it.client, made, "cancelled")
        assert told["reason"]["code"] == "idle"
        events = list(events_of(lines_between(it.runtime.store)))
        assert isinstance(events[-1], JobEnded)


def test_the_journal_with_idle_jobs_replays_to_the_same_fleet(
    tmp_path: Path, processes: FakeProcesses
):
    with plane(tmp_path, processes) as it:
        made = it.submit()
        it.figures.uses = {made: 0}
        it.look(16)
        until(lambda: it.idles(made))
        fleet = rebuild(events_of(lines_between(it.runtime.store)))
        assert list(fleet.idle) == [made]
        processes.end(made)
        job_when(it.client, made, "succeeded")
        assert rebuild(events_of(lines_between(it.runtime.store))).idle == {}


def test_what_is_old_news_is_no_fact(tmp_path: Path, processes: FakeProcesses):
    with plane(tmp_path, processes) as it:
        made = it.submit()
        answers: list[Answer] = []
        now = Millis(now_ms())
        for seen in (
            JobActivity(JobId(made), 2, now),
            JobActivity(JobId(made), 1, None),
            JobActivity(JobId("nobody-9"), 1, now),
        ):
            it.runtime.inbox.put(ReportActivity((seen,)), answers.append)
        until(lambda: len(answers) == 3)
        twice = (JobActivity(JobId(made), 1, now), JobActivity(JobId(made), 1, now))
        it.runtime.inbox.put(ReportActivity(twice), answers.append)
        until(lambda: len(answers) == 4)
        assert [type(one) for one in it.facts()] == [JobIdled]
        assert not any(one.refused for one in answers)


def test_who_idles_is_listed_by_team_and_job_and_to_ones_own_team_alone(
    tmp_path: Path, processes: FakeProcesses
):
    with plane(tmp_path, processes) as it:
        made, other = it.submit(), it.submit()
        it.figures.uses = {made: 0, other: 900}
        it.look(16)
        until(lambda: it.idles(made))
        until(lambda: it.client.get("/api/v1/fleet/idle").json()["gpus"] == 2)
        listed = it.client.get("/api/v1/jobs", params={"idle": True}).json()["jobs"]
        assert [one["id"] for one in listed] == [made]
        told = it.client.get("/api/v1/fleet/idle").json()
        assert [(one["team"], one["jobs"], one["gpus"]) for one in told["teams"]] == [("red", 1, 2)]
        assert [(one["id"], one["kind"]) for one in told["jobs"]] == [(made, "batch")]
        tokens = it.runtime.control.tokens
        blue = tokens.create(name="b", team="blue", role=Role.member, days=1)[0]
        headers = {"Authorization": f"Bearer {blue}"}
        assert it.client.get("/api/v1/fleet/idle", headers=headers).json()["jobs"] == []
        params = {"idle": True}
        found: dict[str, Any] = it.client.get("/api/v1/jobs", params=params, headers=headers).json()
        assert found["jobs"] == []


def test_use_is_exported_clean_and_idle_time_is_counted(tmp_path: Path, processes: FakeProcesses):
    with plane(tmp_path, processes) as it:
        made = it.submit()
        it.figures.uses = {made: 0}
        it.look(16)
        until(lambda: it.idles(made))
        until(lambda: "tenfold_idle_gpus[red]" in scraped(it.client))
        found = scraped(it.client)
        assert found["tenfold_gpu_utilisation_ratio[0][n1]"] == 0.25
        assert found["tenfold_gpu_memory_used_bytes[0][n1]"] == 5
        assert found["tenfold_idle_gpus[red]"] == found["tenfold_team_held_gpus[red]"] == 2
        assert found["tenfold_idle_jobs[red]"] == 1
        assert found["tenfold_measured_jobs[gpu]"] == 1
        assert found["tenfold_idle_gpu_seconds_total"] == 0
        assert promtool("check", "metrics", given=it.client.get("/metrics").text) == (0, "")
        processes.end(made)
        job_when(it.client, made, "succeeded")
        until(lambda: "tenfold_idle_gpus[red]" not in scraped(it.client))


def test_the_loop_is_told_again_where_it_did_not_take_note(
    tmp_path: Path, processes: FakeProcesses, monkeypatch: Any
):
    with plane(tmp_path, processes) as it:
        made = it.submit()
        it.figures.uses = {made: 0}
        put: Callable[..., None] = it.runtime.inbox.put
        monkeypatch.setattr(it.runtime.inbox, "put", lambda *_: None)
        it.look(17)
        monkeypatch.setattr(it.runtime.inbox, "put", put)
        assert it.facts() == []
        it.look()
        until(lambda: it.idles(made))
