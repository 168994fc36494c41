"""Two control planes on one journal, in one process: one leads, is paused by hand, and wakes up.

A pause is made here by answering the renewals of the leader as if they had happened: it goes on
believing that it leads, while its lease runs out in the journal.
"""

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from patience import until
from tenfold.journal import read
from tenfold.journal.compaction import compact_once
from tenfold.journal.leadership.lease import Claim, lease_of
from tenfold.journal.store import Store
from tenfold.model.errors import Refused, TenfoldError
from tenfold.server.app import make_app
from tenfold.server.auth.tokens import Role
from tenfold.server.runtime import leadership
from tenfold.server.runtime.leadership import Leadership, Sharing
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from unit.server.conftest import NODES
from unit.server.fake_executor import FakeExecutor, FakeProcesses

LEASE_MS = 1_000
FOREVER_MS = 2**60
Client = TestClient[Litestar]


class Pair:
    """Two control planes that share a journal and processes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.processes = FakeProcesses(folder)
        self.running: list[Runtime] = []

    def start(self, name: str) -> Runtime:
        claim = Claim(control_plane=f"s/{name}", executor="fake here", lease_ms=LEASE_MS)
        made = Runtime(
            ServerDeps(
                journal=str(self._folder / "journal.db"),
                executor=lambda: FakeExecutor(self.processes),
                logs=self.processes,
                holder=name,
                sharing=Sharing(claim=claim, name=name, version="1"),
            )
        )
        made.url = f"http://{name}"
        self.running.append(made)
        made.start(NODES)
        return made

    def close(self) -> None:
        for one in self.running:
            one.stop()


@pytest.fixture
def pair(tmp_path: Path) -> Generator[Pair, None, None]:
    made = Pair(tmp_path)
    yield made
    made.close()


@pytest.fixture
def paused(monkeypatch: pytest.MonkeyPatch) -> Callable[[Runtime], None]:
    """Pause a leader: it believes that it renews its lease, and does not."""
    real, believing = leadership.renew, set[int]()

    def renew(store: Store, epoch: int, within_ms: int) -> bool:
        return epoch in believing or real(store, epoch, within_ms)

    monkeypatch.setattr(leadership, "renew", renew)
    return lambda one: believing.add(lead_of(one).epoch or 0)


def lead_of(one: Runtime) -> Leadership:
    assert one.leadership is not None
    return one.leadership


def leads(one: Runtime) -> bool:
    return one.trouble() is None


def stands_by(one: Runtime) -> bool:
    trouble = one.trouble()
    return trouble is not None and trouble.code == "standby" and bool(lead_of(one).leader_url)


def client_of(one: Runtime, secret: str) -> Client:
    client = TestClient(make_app(one.control), raise_server_exceptions=False)
    client.headers["Authorization"] = f"Bearer {secret}"
    return client


def admin_of(one: Runtime) -> str:
    return one.control.tokens.create(name="ann", team="red", role=Role.admin)[0]


def submit(client: Client) -> Any:
    return client.post("/api/v1/jobs", json={"command": ["true"]})


def test_a_stand_by_answers_reads_and_names_the_leader_for_changes(pair: Pair):
    first = pair.start("a")
    until(lambda: leads(first))
    second = pair.start("b")
    until(lambda: stands_by(second))
    secret = admin_of(first)
    with client_of(first, secret) as own, client_of(second, secret) as other:
        made = submit(own)
        assert made.status_code == 201
        job_id = made.json()["id"]
        assert other.get(f"/api/v1/jobs/{job_id}").json()["id"] == job_id
        assert len(other.get("/api/v1/nodes").json()["nodes"]) == len(NODES)
        for ask in (
            lambda: submit(other),
            lambda: other.delete(f"/api/v1/jobs/{job_id}"),
            lambda: other.post("/api/v1/nodes/n1/cordon"),
            lambda: other.post(
                "/api/v1/tokens", json={"name": "x", "team": "red", "role": "viewer"}
            ),
        ):
            refused = ask()
            assert (refused.status_code, refused.json()["code"]) == (503, "not-leader")
            assert refused.headers["Tenfold-Leader"] == "http://a"
            assert "http://a is" in refused.json()["detail"]
        assert own.get("/healthz").json() == {"status": "alive", "role": "leader"}
        assert other.get("/healthz").json() == {"status": "alive", "role": "standby"}
        assert own.get("/readyz").json() == {"status": "ready", "role": "leader"}
        ready = other.get("/readyz")
        assert (ready.status_code, ready.json()["code"]) == (503, "standby")
        assert ready.headers["Tenfold-Leader"] == "http://a"
        public = other.get("/readyz", headers={"Authorization": ""})
        assert public.json()["code"] == "standby"
        assert "http://a" not in public.text + str(public.headers)
        until(lambda: len(own.get("/api/v1/control-planes").json()["control_planes"]) == 2)
        listed = other.get("/api/v1/control-planes").json()
        assert [(one["name"], one["role"]) for one in listed["control_planes"]] == [
            ("a", "leader"),
            ("b", "standby"),
        ]
        metrics = other.get("/metrics").text
        assert "tenfold_leader 0.0" in metrics
        assert 'tenfold_stale_writes_total{refused_by="api"} 4.0' in metrics
        # The leader exports these; sums over both would count twice.
        assert "tenfold_jobs{" not in metrics
        assert "tenfold_loop_up" not in metrics
        metrics = own.get("/metrics").text
        assert "tenfold_leader 1.0" in metrics
        assert "tenfold_loop_up 1.0" in metrics


def test_a_paused_leader_that_wakes_changes_nothing(
    pair: Pair, paused: Callable[[Runtime], None], tmp_path: Path
):
    first = pair.start("a")
    until(lambda: leads(first))
    secret = admin_of(first)
    with client_of(first, secret) as own:
        running = submit(own).json()["id"]
        until(lambda: own.get(f"/api/v1/jobs/{running}").json()["state"] == "running")
        second = pair.start("b")
        paused(first)
        until(lambda: leads(second))
        # It wakes up here, and believes that it leads.
        assert leads(first)
        epoch = lead_of(first).epoch
        assert epoch is not None
        assert (lead_of(second).epoch or 0) > epoch
        before = list(read.events_after(first.store))
        tokens = [one.id for one in first.control.tokens.all()]
        with pytest.raises(Refused):
            first.control.tokens.create(name="late", team="red", role=Role.admin)
        with pytest.raises(Refused):
            first.control.tokens.revoke(tokens[0])
        with pytest.raises(Refused):
            compact_once(first.store, tmp_path / "history", FOREVER_MS, epoch=epoch)
        refused = submit(own)
        assert (refused.status_code, refused.json()["code"]) == (503, "not-leader")
        assert list(read.events_after(first.store)) == before
        assert [one.id for one in first.control.tokens.all()] == tokens
        assert len(pair.processes.launches) == 1
        until(lambda: stands_by(first))
        assert lead_of(first).leader_url == "http://b"
        metrics = own.get("/metrics").text
        assert 'tenfold_stale_writes_total{refused_by="journal"}' in metrics
    with client_of(second, secret) as other:
        # Adopted, not started again.
        pair.processes.end(running)
        until(lambda: other.get(f"/api/v1/jobs/{running}").json()["state"] == "succeeded")
        assert submit(other).status_code == 201
        assert len(other.get(f"/api/v1/jobs/{running}").json()["attempts"]) == 1


def test_a_leader_that_stops_hands_over_at_once(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    first = pair.start("a")
    until(lambda: leads(first))
    second = pair.start("b")
    until(lambda: stands_by(second))
    # Nobody waits for this lease to expire.
    monkeypatch.setattr(lead_of(first), "lease_ms", 600_000)
    said: list[str] = []
    first.last_words = lambda: said.append(lead_of(first).role)
    first.stop()
    pair.running.remove(first)
    assert said == ["leader"]
    until(lambda: leads(second))
    lease = lease_of(second.store)
    assert lease is not None
    assert (lease.holder, lease.epoch) == ("b", lead_of(second).epoch)


def test_orders_stop_before_another_one_may_lead(pair: Pair, monkeypatch: pytest.MonkeyPatch):
    first = pair.start("a")
    until(lambda: leads(first))

    def away(store: Store, epoch: int, within_ms: int) -> bool:
        raise TenfoldError("away", "the database does not answer", "wait")

    monkeypatch.setattr(leadership, "renew", away)
    until(lambda: lead_of(first).left_s() == 0)
    with pytest.raises(Refused) as refused:
        lead_of(first).check()
    assert refused.value.code == "lease-expired"


def test_a_control_plane_that_could_not_see_the_jobs_does_not_start(pair: Pair, tmp_path: Path):
    first = pair.start("a")
    until(lambda: leads(first))
    claim = Claim(control_plane="t/c", executor="other there", lease_ms=LEASE_MS)
    other = Runtime(
        ServerDeps(
            journal=str(tmp_path / "journal.db"),
            executor=lambda: FakeExecutor(pair.processes),
            logs=pair.processes,
            sharing=Sharing(claim=claim, name="c"),
        )
    )
    with pytest.raises(Refused) as refused:
        other.start()
    assert refused.value.code == "another-executor"
    other.stop()
