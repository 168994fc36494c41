"""What one team is shown of another: every kind of event, every role, and no secret anywhere."""

import json
import typing
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from litestar import Litestar
from litestar.testing import TestClient

from tenfold.journal.append import open_journal
from tenfold.journal.store import Store, open_store
from tenfold.model.actions import ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.events import (
    ActionOrdered,
    ActionRefused,
    Event,
    JobBusy,
    JobCancelled,
    JobCancelRequested,
    JobChanged,
    JobEnded,
    JobHeld,
    JobIdled,
    JobRefused,
    JobReleased,
    JobResized,
    JobStarted,
    JobStopped,
    JobSubmitted,
    ModelAliasMoved,
    ModelRegistered,
    ModelStaged,
    ModelVersionRemoved,
    NodeCordoned,
    NodeJoined,
    NodeLeft,
    NodeLost,
    NodeReturned,
    ReplicaDrainStarted,
    ReplicaReady,
    ReplicaUnready,
    RolloutAdvanced,
    ServiceDeployed,
    ServiceLimitsSet,
    ServicePromoted,
    ServiceRemoved,
    ServiceRolledBack,
    ServiceScaled,
)
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import Slot
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.reason import JobRef, Reason
from tenfold.model.registry import Artefact, ModelVersion
from tenfold.model.service.spec import ServiceSpec
from tenfold.model.units import Millis
from tenfold.server.auth.redaction import EventRow, visible_events
from tenfold.server.auth.tokens import Role, Token
from tenfold.testing.builders import job, nodes
from unit.server.waiting import job_when

Client = TestClient[Litestar]
T = Millis(5)
RED, BLUE = JobId("job-1"), JobId("job-2")
SLOTS = (Slot(NodeId("n0"), 8),)
SECRET = "the-password-of-blue"
COMMAND = "a-command-of-blue"
FOR_BLUE = Reason("gave-way", {"policy": "las", "job": JobRef(BLUE, TeamId("blue"))})
FOR_RED = Reason("gave-way", {"policy": "las", "job": JobRef(RED, TeamId("red"))})
LONG_GONE = Reason("gave-way", sentence="`gone-77` and `gone-78[3]` were owed these GPUs")
"""As it was written before reasons had fields."""


def token(role: Role, team: str) -> Token:
    return Token(id="t", name="t", team=team, role=role, created_ms=0, expires_ms=1)


def about(job_id: JobId, other: Reason) -> list[Event]:
    """One event of every kind that is about a job."""
    stop = StopJob(job_id, "preempted", other)
    return [
        JobRefused(T, job_id, (other,)),
        JobStarted(T, job_id),
        JobStopped(T, job_id, "preempted", T),
        JobEnded(T, job_id),
        JobCancelled(T, job_id),
        JobCancelRequested(T, job_id),
        JobResized(T, job_id),
        JobIdled(T, job_id, T),
        JobBusy(T, job_id),
        JobHeld(T, job_id, other),
        JobReleased(T, job_id),
        JobChanged(T, job(1, 8, team="red") if job_id == RED else job(2, 8, team="blue")),
        ReplicaReady(T, job_id, "a-service", "http://127.0.0.1:1"),
        ReplicaUnready(T, job_id, "a-service", other),
        ReplicaDrainStarted(T, job_id, "a-service", other),
        ActionOrdered(T, StartJob(job_id, SLOTS)),
        ActionOrdered(T, stop),
        ActionOrdered(T, ResizeJob(job_id, SLOTS, other)),
        ActionOrdered(T, ReserveStart(job_id, SLOTS, T, T)),
        ActionRefused(T, stop, other),
    ]


def submitted(number: int, team: str, word: str) -> JobSubmitted:
    spec = RunSpec(
        name=f"of-{team}", command=(word,), env=(("PASSWORD", f"the-password-of-{team}"),)
    )
    return JobSubmitted(T, job(number, 8, team=team), spec)


SUBMITTED = [submitted(1, "red", "a-command-of-red"), submitted(2, "blue", COMMAND)]
OF_NODES: list[Event] = [
    NodeLost(T, NodeId("n0"), cause=f"`{BLUE}` was the last on it"),
    NodeReturned(T, NodeId("n0")),
    NodeCordoned(T, NodeId("n0"), cause=FOR_BLUE),
    NodeLeft(T, NodeId("n0"), "olga"),
]
JOINED = [NodeJoined(T, node) for node in nodes(1)]
SERVED = ServiceDeployed(
    *(T, "chat", TeamId("blue"), "r1"),
    ServiceSpec(name="chat", command=(COMMAND,), env={"PASSWORD": SECRET}),
    job(2, 8, team="blue"),
    RunSpec(name="chat", command=(COMMAND,), env=(("PASSWORD", SECRET),)),
)
OF_SERVICES: list[Event] = [
    SERVED,
    ServiceLimitsSet(T, "chat", TeamId("blue"), 1, 2),
    ServiceScaled(T, "chat", TeamId("blue"), 2, FOR_RED),
    RolloutAdvanced(T, "chat", TeamId("blue"), "r2", 10.0),
    ServicePromoted(T, "chat", TeamId("blue"), "r2"),
    ServiceRolledBack(T, "chat", TeamId("blue"), "r2", "r1", FOR_RED),
    ServiceRemoved(T, "chat", TeamId("blue")),
]
"""All of them are of the other team, which its viewers may not even know to exist."""
OF_JOBS: list[Event] = [*about(RED, FOR_BLUE), *about(BLUE, FOR_RED)]


def of_models(team: str) -> list[Event]:
    """One event of every kind that is about a model."""
    own, model = TeamId(team), f"of-{team}"
    artefact = Artefact(location=f"/{team}", kind="file", digest="0" * 64)
    version = ModelVersion(team=own, model=model, number=1, artefact=artefact)
    return [
        ModelRegistered(T, version),
        ModelAliasMoved(T, own, model, "prod", 1, 0, "ann"),
        ModelStaged(T, own, model, 1, "staging", "development", "ann"),
        ModelVersionRemoved(T, own, model, 1, "ann"),
    ]


ALL: list[Event] = [
    *(*JOINED, *SUBMITTED, *OF_JOBS, *OF_NODES, *OF_SERVICES),
    *(*of_models("red"), *of_models("blue")),
]


def lines_of(events: list[Event]) -> list[EventRow]:
    encode = msgspec.json.encode
    return [
        EventRow(seq, type(event).__name__, encode(event).decode())
        for seq, event in enumerate(events, start=1)
    ]


@pytest.fixture
def store(tmp_path: Path) -> typing.Iterator[Store]:
    """A journal that knows both jobs, and nothing of what they did."""
    made = open_store(tmp_path / "journal.db")
    open_journal(made, "test", 0).append([*JOINED, *SUBMITTED])
    yield made
    made.close()


def test_every_kind_of_event_is_looked_at():
    tested_elsewhere = {"NodeTested", "NodeAccepted"}
    kinds = {kind.__name__ for kind in typing.get_args(Event)}
    assert kinds - tested_elsewhere <= {type(event).__name__ for event in ALL}


@pytest.mark.parametrize("role", [Role.viewer, Role.member])
def test_a_team_is_shown_nothing_of_another(store: Store, role: Role):
    shown = visible_events(token(role, "red"), lines_of(ALL), store)
    own = [*JOINED, SUBMITTED[0], *about(RED, FOR_BLUE), *OF_NODES, *of_models("red")]
    assert [line.kind for line in shown] == [type(event).__name__ for event in own]
    for line in shown:
        assert BLUE not in line.body, line
        assert "blue" not in line.body, line
        msgspec.json.decode(line.body, type=Event)
    stops = [line.body for line in shown if line.kind == "ActionOrdered" and "StopJob" in line.body]
    assert "preempted under policy `las` for a job of another team" in stops[0]
    assert any(f'"{RED}"' in line.body for line in shown)


@pytest.mark.parametrize("role", [Role.operator, Role.admin])
def test_operators_are_shown_all_but_the_values_of_environments(store: Store, role: Role):
    shown = visible_events(token(role, "ops"), lines_of(ALL), store)
    assert len(shown) == len(ALL)
    text = "".join(line.body for line in shown)
    assert COMMAND in text
    assert BLUE in text
    assert "the-password" not in text
    assert '["PASSWORD","***"]' in text


def test_members_see_the_values_of_their_own_environments_and_viewers_do_not(store: Store):
    lines = lines_of(list(SUBMITTED))
    for role, can_see in ((Role.viewer, False), (Role.member, True), (Role.admin, True)):
        text = "".join(line.body for line in visible_events(token(role, "red"), lines, store))
        assert ("the-password-of-red" in text) == can_see
        assert SECRET not in text


def test_jobs_that_nobody_knows_any_more_are_not_named(store: Store):
    events: list[Event] = [ActionOrdered(T, StopJob(RED, "preempted", LONG_GONE))]
    (line,) = visible_events(token(Role.member, "red"), lines_of(events), store)
    assert "gone" not in line.body
    assert "preempted for another job" in line.body
    (line,) = visible_events(token(Role.operator, "red"), lines_of(events), store)
    assert "gone-77" in line.body


def test_no_answer_tells_a_team_of_another(client: Client, token: Callable[..., str]):
    """Ask for everything there is with the tokens of another team."""
    asks = {"command": [COMMAND], "name": "of-blue", "env": {"PASSWORD": SECRET}}
    blue = {"Authorization": f"Bearer {token('member', 'blue')}"}
    made = client.post("/api/v1/jobs", json={**asks, "gpus_per_node": 4}, headers=blue).json()["id"]
    job_when(client, made, "running", headers=blue)
    red = {"Authorization": f"Bearer {token('member', 'red')}"}
    own = client.post("/api/v1/jobs", json={"command": ["true"]}, headers=red).json()["id"]
    job_when(client, own, "running", headers=red)
    for role in ("viewer", "member", "operator", "admin"):
        headers = {"Authorization": f"Bearer {token(role, 'red')}"}
        for path in (
            "/api/v1/jobs",
            "/api/v1/jobs?team=blue",
            f"/api/v1/jobs/{made}",
            f"/api/v1/jobs/{made}/why",
            f"/api/v1/jobs/{made}/logs",
            f"/api/v1/jobs/{own}",
            "/api/v1/nodes",
            "/api/v1/fleet",
            "/api/v1/events?after=0&follow=false",
            "/metrics",
        ):
            answer = client.get(path, headers=headers).text
            assert SECRET not in answer, (role, path)
            if role in ("viewer", "member") and made not in path:
                assert "of-blue" not in answer, (role, path)
                assert COMMAND not in answer, (role, path)
    assert json.loads(client.get(f"/api/v1/jobs/{made}", headers=red).text)["status"] == 404
