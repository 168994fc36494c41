"""The stream of events: from where it was left, for whom it may be, and until the end."""

import asyncio
from collections.abc import Callable

from litestar import Litestar
from litestar.testing import TestClient

from tenfold.server.auth.tokens import Role, Token
from tenfold.server.routes import events as routes_events
from tenfold.server.routes.events import event_stream
from tenfold.server.runtime.budgets import Flow
from tenfold.server.runtime.runtime import Runtime
from unit.server.fake_executor import FakeProcesses
from unit.server.waiting import job_when

Client = TestClient[Litestar]
EVENTS = "/api/v1/events"
TOKEN = Token(id="t", name="t", team="red", role=Role.operator, created_ms=0, expires_ms=1 << 62)


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def read(client: Client, **asked: str) -> list[tuple[int, str, str]]:
    """Return what a stream that does not wait tells: number, kind and data."""
    text = client.get(EVENTS, params={"follow": "false", "after": "0", **asked}).text
    found: list[tuple[int, str, str]] = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line[:1] != ":")
        if fields:
            found.append((int(fields["id"]), fields["event"], fields["data"]))
    return found


def test_every_event_is_told_in_order_from_where_the_stream_was_left(
    member: Client, processes: FakeProcesses
):
    made = member.post("/api/v1/jobs", json={"command": ["true"]}).json()["id"]
    job_when(member, made, "running")
    processes.end(made)
    job_when(member, made, "succeeded")
    told = read(member)
    assert [seq for seq, _, _ in told] == list(range(1, len(told) + 1))
    kinds = [kind for _, kind, _ in told]
    assert kinds == [
        *("NodeJoined", "NodeJoined", "JobSubmitted", "ActionOrdered", "JobStarted", "JobEnded")
    ]
    headers = {"Last-Event-ID": "4"}
    rest = member.get(EVENTS, params={"follow": "false"}, headers=headers).text
    assert "id: 5\n" in rest
    assert "id: 4\n" not in rest
    assert member.get(EVENTS, headers={"Last-Event-ID": "x"}).status_code == 400


def test_a_stream_tells_a_team_of_its_own_jobs_alone(client: Client, token: Callable[..., str]):
    for team in ("red", "blue"):
        ask = {"command": ["true"], "name": f"of-{team}"}
        headers = bearer(token("member", team))
        made = client.post("/api/v1/jobs", json=ask, headers=headers).json()["id"]
        job_when(client, made, "running", headers=headers)
    client.headers.update(bearer(token("viewer", "red")))
    told = read(client)
    assert [kind for _, kind, _ in told].count("NodeJoined") == 2
    assert any("of-red" in data for _, _, data in told)
    assert not any("of-blue" in data for _, _, data in told)
    client.headers.update(bearer(token("operator", "ops")))
    assert any("of-blue" in data for _, _, data in read(client))


def test_a_quiet_stream_gives_a_sign_of_life_and_ends_with_the_server(
    runtime: Runtime, monkeypatch
):
    monkeypatch.setattr(routes_events, "HEARTBEAT_S", 0.0)

    async def followed() -> list[bytes]:
        newest = await runtime.control.event_cursor.seq()
        chunks: list[bytes] = []
        async for chunk in event_stream(runtime.control, TOKEN, newest + 10, follow=True):
            chunks.append(chunk)
            if chunk == b": still here\n\n":
                runtime.close_streams()
        return chunks

    chunks = asyncio.run(followed())
    assert chunks[0].startswith(b": ")
    assert chunks[-1] == b": still here\n\n"


def test_a_stream_that_falls_too_far_behind_is_closed(runtime: Runtime, monkeypatch):
    monkeypatch.setattr(routes_events, "LAG_MAX", 0)
    monkeypatch.setattr(routes_events, "HEARTBEAT_S", 0.0)

    async def followed() -> list[bytes]:
        chunks: list[bytes] = []
        seqs = iter([5, 9])

        class Jumps:
            streams = 0

            async def seq(self) -> int:
                return next(seqs)

        control = type(runtime.control)(
            **{
                name: getattr(runtime.control, name) if name != "event_cursor" else Jumps()
                for name in runtime.control.__struct_fields__
            }
        )
        async for chunk in event_stream(control, TOKEN, 5, follow=True):
            chunks.append(chunk)
        return chunks

    assert asyncio.run(followed())[-1].startswith(b"event: lagged")


def test_too_many_streams_are_refused(member: Client, runtime: Runtime):
    streams = runtime.control.budgets.streams
    while streams.take(Flow(f"team-{streams.used}", "t")) is None:
        pass
    answer = member.get(EVENTS, params={"follow": "false"})
    assert (answer.status_code, answer.json()["code"]) == (503, "too-many-streams")
