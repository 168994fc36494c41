"""`tenfold.AsyncClient`: the calls of `tenfold.Client`, for programs that await them."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, Unpack, overload

from tenfold.client import calls
from tenfold.client.place import find_place
from tenfold.client.problems import problem_of, silent
from tenfold.client.streams import EventReader, LogFollower
from tenfold.client.tries import Patience, Seat, Tries, looks
from tenfold.client.words import log_broke_off, not_over
from tenfold.model.api.fleet import FleetNow, Idle, JournalEvent
from tenfold.model.api.jobs import PAGE_MOST, DryRun, Job, JobPage, Submitted, Taken, Why
from tenfold.model.api.nodes import Marked, Node, NodeVerb
from tenfold.model.api.tokens import NewToken, RoleName, Token
from tenfold.model.errors import TenfoldError, Unreachable
from tenfold.model.job import JobState

if TYPE_CHECKING:
    import httpx

TIMEOUT_S = 60.0
"""How long an answer may take; the control plane itself gives up after half of it."""
Answer = TypeVar("Answer")


class AsyncClient:
    """A connection to a control plane; close it or use `async with`.

    Without arguments it asks the one that `TENFOLD_URL` and `TENFOLD_TOKEN` name, or the one that
    `tenfold up` started on this machine.
    """

    def __init__(
        self, url: str | None = None, token: str | None = None, *, timeout_s: float = TIMEOUT_S
    ) -> None:
        from tenfold.client.connections import async_connection  # noqa: PLC0415

        self._seat = Seat(find_place(url, token))
        self._http = async_connection(self._seat.place, timeout_s)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connection."""
        await self._http.aclose()

    @property
    def url(self) -> str:
        """Where it asks."""
        return self._seat.place.url

    async def submit(self, *, key: str | None = None, **job: Unpack[calls.JobKeys]) -> Submitted:
        """Hand in a job by the keys of a job file; return once it will not be lost.

        It goes out under a key, one of its own if none is given, and is made again under it if
        the answer is lost: the control plane takes it once.
        """
        return await self._ask(calls.submit(job, key))

    async def submit_file(self, path: str | Path, *, key: str | None = None) -> Submitted:
        """Hand in a job file; its faults are named with their lines."""
        from tenfold.files.submission import read_submission  # noqa: PLC0415

        return await self._ask(calls.submit(read_submission(Path(path)), key))

    async def submit_many(
        self, jobs: Sequence[Mapping[str, Any]], *, key: str | None = None
    ) -> tuple[Submitted, ...]:
        """Hand in several jobs, all of them or none, in one commit."""
        return (await self._ask(calls.submit_many(jobs, key))).jobs

    async def dry_run(
        self,
        *,
        seek: Literal["none", "cheapest", "every"] = "cheapest",
        eta: bool = True,
        **job: Unpack[calls.JobKeys],
    ) -> DryRun:
        """Return what would become of a job if it were handed in now; nothing is handed in."""
        return await self._ask(calls.dry_run(job, seek=seek, eta=eta))

    async def job(self, job_id: str, *, eta: bool = False) -> Job:
        """Return a job as it stands; with `eta`, when it will start, which may take seconds."""
        return await self._ask(calls.show(job_id, eta=eta))

    async def page(  # noqa: PLR0913 - each is a bound of its own, by name
        self,
        *,
        team: str | None = None,
        state: JobState | None = None,
        since: str | None = None,
        array: str | None = None,
        before: int | None = None,
        limit: int = 100,
        idle: bool = False,
    ) -> JobPage:
        """Return a page of jobs, the newest first; `since` is a moment in ISO 8601."""
        return await self._ask(
            calls.page(
                team=team,
                state=state,
                since=since,
                array=array,
                before=before,
                limit=limit,
                idle=idle or None,
            )
        )

    async def jobs(
        self,
        *,
        team: str | None = None,
        state: JobState | None = None,
        since: str | None = None,
        array: str | None = None,
    ) -> AsyncIterator[Job]:
        """Yield jobs, the newest first, page by page."""
        before: int | None = None
        while True:
            page = await self.page(
                team=team,
                state=state,
                since=since,
                array=array,
                before=before,
                limit=PAGE_MOST,
            )
            for job in page.jobs:
                yield job
            before = page.next
            if before is None:
                return

    async def cancel(self, job_id: str) -> Taken:
        """Take back a job that waits, or tell one that runs to end."""
        return await self._ask(calls.cancel(job_id))

    async def why(
        self,
        job_id: str,
        *,
        seek: Literal["none", "cheapest", "every"] = "cheapest",
        eta: bool = False,
    ) -> Why:
        """Return why a job waits and what would let it start."""
        return await self._ask(calls.why(job_id, seek=seek, eta=eta))

    async def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the fleet."""
        return (await self._ask(calls.nodes())).nodes

    async def cordon(self, node_id: str) -> Marked:
        """Let a node take no new work."""
        return await self._ask(calls.mark(node_id, "cordon"))

    async def uncordon(self, node_id: str) -> Marked:
        """Let a node take work again."""
        return await self._ask(calls.mark(node_id, "uncordon"))

    async def fail(self, node_id: str, cause: str = "") -> Marked:
        """Say that a node is gone: what runs there is ended and waits again."""
        return await self._ask(calls.mark(node_id, "fail", cause))

    async def test_node(self, node_id: str) -> Marked:
        """Measure a node again; `nodes` tells what came of it."""
        return await self._ask(calls.mark(node_id, "test"))

    async def accept_node(self, node_id: str) -> Marked:
        """Take a node in spite of its acceptance test."""
        return await self._ask(calls.mark(node_id, "accept"))

    async def mark_nodes(
        self, node_ids: Sequence[str], verb: NodeVerb, cause: str = ""
    ) -> tuple[Marked, ...]:
        """Do one thing to several nodes in one request: to all of them, or to none."""
        return (await self._ask(calls.mark_nodes(node_ids, verb, cause))).nodes

    async def fleet(self) -> FleetNow:
        """Return the fleet in a few figures."""
        return await self._ask(calls.fleet())

    async def idle(self) -> Idle:
        """Return who holds GPUs and does not use them."""
        return await self._ask(calls.idle())

    async def who_am_i(self) -> Token:
        """Return whose token this is."""
        return await self._ask(calls.who_am_i())

    async def tokens(self) -> tuple[Token, ...]:
        """Return every token, without what makes it one."""
        return (await self._ask(calls.tokens())).tokens

    async def create_token(
        self, name: str, *, team: str, role: RoleName = "member", days: float | None = None
    ) -> NewToken:
        """Make a token; this is the one time that it is shown."""
        return await self._ask(calls.create_token(name, team, role, days))

    async def revoke_token(self, token_id: str) -> Token:
        """End a token now."""
        return await self._ask(calls.revoke_token(token_id))

    async def wait(self, job_id: str, *, timeout_s: float | None = None) -> Job:
        """Return a job once it is over; raise `NoAnswer` where `timeout_s` passes before.

        A control plane that is started again meanwhile does not end the wait.
        """
        ends_s = None if timeout_s is None else monotonic() + timeout_s
        patience = Patience(self._seat)
        for pause_s in looks():
            try:
                job = await self.job(job_id)
            except Unreachable as wrong:
                patience.away(wrong, monotonic())
            else:
                patience.there()
                if job.is_over:
                    return job
            left_s = inf if ends_s is None else ends_s - monotonic()
            if left_s <= 0:
                break
            # The last look comes when the time is up, and not before.
            await asyncio.sleep(min(pause_s, left_s))
        raise not_over(job_id, timeout_s)

    @overload
    def logs(
        self,
        job_id: str,
        *,
        follow: Literal[False] = False,
        member: int = 0,
        attempt: int | None = None,
        tail: int | None = None,
    ) -> Awaitable[str]: ...

    @overload
    def logs(
        self,
        job_id: str,
        *,
        follow: Literal[True],
        member: int = 0,
        attempt: int | None = None,
        tail: int | None = None,
    ) -> AsyncIterator[str]: ...

    def logs(
        self,
        job_id: str,
        *,
        follow: bool = False,
        member: int = 0,
        attempt: int | None = None,
        tail: int | None = None,
    ) -> Awaitable[str] | AsyncIterator[str]:
        """Return the end of what a job wrote, to be awaited; see `Client.logs`.

        With `follow`, yield it as it comes, for `async for`.
        """
        if follow:
            return self._followed(job_id, member, LogFollower(attempt), tail)
        call = calls.logs(job_id, member=member, attempt=attempt, tail=tail, follow=False)
        return self._text(call)

    async def events(
        self, *, after: int | None = None, follow: bool = True
    ) -> AsyncIterator[JournalEvent]:
        """Yield events of the journal after a number; without one, those that come from now on.

        With `follow` it goes on for ever, over a control plane that is started again, too.
        """
        reader, patience, pauses = EventReader(after), Patience(self._seat), looks()
        call = calls.events(follow=follow)
        while True:
            reader.begin()
            try:
                async with self._stream(call, reader.headers) as answer:
                    pauses = looks()
                    patience.there()
                    async for line in answer.aiter_lines():
                        event = reader.read(line)
                        if event is not None:
                            yield event
            except TenfoldError as wrong:
                if not follow:
                    raise
                patience.away(wrong, monotonic())
            if not follow:
                return
            await asyncio.sleep(next(pauses))

    async def _followed(
        self, job_id: str, member: int, follower: LogFollower, tail: int | None
    ) -> AsyncIterator[str]:
        """Yield what a job writes; a stream that breaks off goes on where it was."""
        pauses, patience = looks(), Patience(self._seat)
        while True:
            try:
                job = await self.job(job_id)
                if not follower.next_attempt(job):
                    if follower.is_last(job):
                        return
                    await asyncio.sleep(next(pauses))
                    continue
                async for text in self._read(job_id, member, follower, tail):
                    patience.there()
                    yield text
                job = await self.job(job_id)
                if not follower.has_ended(job):
                    raise log_broke_off(job_id, self.url)
            except TenfoldError as wrong:
                follower.check_resumes(wrong)
                patience.away(wrong, monotonic())
                await asyncio.sleep(next(pauses))
                continue
            if text := follower.end():
                yield text
            if follower.is_last(job):
                return
            pauses = looks()

    async def _read(
        self, job_id: str, member: int, follower: LogFollower, tail: int | None
    ) -> AsyncIterator[str]:
        call = calls.logs(job_id, member=member, attempt=follower.number, tail=tail, follow=True)
        call = calls.from_byte(call, follower.offset)
        async with self._stream(call, {}, endless=True) as answer:
            follower.begin(answer.headers)
            async for chunk in answer.aiter_bytes():
                if text := follower.read(chunk):
                    yield text

    @asynccontextmanager
    async def _stream(
        self, call: calls.Call[Any], headers: dict[str, str], *, endless: bool = False
    ) -> "AsyncGenerator[httpx.Response, None]":
        """Open a stream; whatever breaks it is told as the errors of this project."""
        from httpx import HTTPError  # noqa: PLC0415

        more: dict[str, Any] = {"timeout": None} if endless else {}
        try:
            async with self._http.stream(**self._seat.request(call, headers), **more) as answer:
                if answer.status_code >= 300:
                    wrong = problem_of(answer.status_code, await answer.aread(), self.url)
                    assert wrong is not None, "a status of 300 or more is a problem"
                    raise wrong
                yield answer
        except HTTPError as error:
            raise silent(self.url, error, was_sent=False) from None

    async def _text(self, call: calls.Call[Any]) -> str:
        return (await self._content(call)).decode(errors="replace")

    async def _ask(self, call: calls.Call[Answer]) -> Answer:
        return call.read(await self._content(call), self.url)

    async def _content(self, call: calls.Call[Any]) -> bytes:
        from httpx import ConnectError, ConnectTimeout, HTTPError  # noqa: PLC0415

        tries = Tries(self._seat, call)
        while True:
            wrong: TenfoldError | None
            try:
                answer = await self._http.request(**self._seat.request(call))
                wrong = problem_of(answer.status_code, answer.content, self.url)
                if wrong is None:
                    return answer.content
            except HTTPError as error:
                sent = call.changes and not isinstance(error, ConnectError | ConnectTimeout)
                wrong = silent(self.url, error, was_sent=sent)
            await asyncio.sleep(tries.pause_after(wrong))
