"""Every API call, once: `AsyncClient` awaits it and `Client` runs it to completion."""

from base64 import b64encode
from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack, overload

from tenfold.client.calls import Call, JobKeys, MoreKeys, delete, get, new_key, path_quoted, post
from tenfold.client.models import ModelOperations
from tenfold.client.problems import (
    FaultyRequest,
    log_interrupted,
    no_answer,
    problem_of,
    wait_timed_out,
)
from tenfold.client.retries import (
    CurrentEndpoint,
    OutageTolerance,
    Retries,
    poll_intervals,
    retry_after_s,
)
from tenfold.client.storage import StorageOperations
from tenfold.client.streams import (
    TAIL_BYTES,
    EventReader,
    LogEnd,
    LogFollower,
    byte_number,
    last_lines_start,
)
from tenfold.model.api.fleet import ControlPlanes, FleetStatus, Health, Idle, JournalEvent
from tenfold.model.api.jobs import (
    PAGE_MAX,
    Batch,
    CancelledJob,
    DryRun,
    Job,
    JobPage,
    ReleasedJob,
    Submitted,
    Why,
)
from tenfold.model.api.nodes import (
    JoinedNodes,
    JoiningNode,
    JoinRequest,
    LeaveRequest,
    LeavingNodes,
    Node,
    NodeActionRequest,
    Nodes,
    NodeStatus,
    NodeStatuses,
    NodeVerb,
)
from tenfold.model.api.services import ScaleService, Service, Services, WeighCanary
from tenfold.model.api.shells import (
    Frame,
    FrameReader,
    OpenedShell,
    OpenShell,
    ShellInput,
    ShellReceived,
    Terminal,
)
from tenfold.model.api.tokens import DAYS, CreateToken, NewToken, RoleName, Token, Tokens
from tenfold.model.errors import TenfoldError, Unreachable
from tenfold.model.job.job import JobState

if TYPE_CHECKING:
    from tenfold.client.connections import AsyncStream, BlockingStream, Transport

Answer = TypeVar("Answer")


class Operations(ModelOperations, StorageOperations):
    """The calls of both clients, over either transport."""

    def __init__(self, current: CurrentEndpoint, transport: "Transport") -> None:
        self._current = current
        self._transport = transport

    async def close(self) -> None:
        """Close the connection."""
        await self._transport.close()

    @property
    def url(self) -> str:
        """The URL of the control plane."""
        return self._current.endpoint.url

    async def submit(self, *, key: str | None = None, **job: Unpack[JobKeys]) -> Submitted:
        """Submit a job, with the keys of a job file; return once it is on disk.

        It is sent with an idempotency key, a new one by default, and retried with it if the
        response is lost: the control plane runs it only once.
        """
        return await self._call(_submission(job, key))

    async def submit_file(
        self, path: str | Path, *, key: str | None = None, **more: Unpack[MoreKeys]
    ) -> Submitted:
        """Submit a job file; errors come with their line. `more` overrides keys of the file."""
        from tenfold.files.jobs.submission import faults_in_file, read_submission  # noqa: PLC0415

        values = {**read_submission(Path(path)), **more}
        try:
            return await self._call(_submission(values, key))
        except FaultyRequest as error:
            if not error.faults:
                raise
            raise faults_in_file(Path(path), error.faults) from None

    async def submit_many(
        self, jobs: Sequence[Mapping[str, Any]], *, key: str | None = None
    ) -> tuple[Submitted, ...]:
        """Submit several jobs, all or none."""
        batch = post("/jobs", Batch, {"jobs": jobs}, key or new_key())
        return (await self._call(batch)).jobs

    async def dry_run(
        self,
        *,
        seek: Literal["none", "cheapest", "every"] = "cheapest",
        eta: bool = True,
        **job: Unpack[JobKeys],
    ) -> DryRun:
        """Return what would happen to a job if it were submitted now; nothing is submitted."""
        return await self._call(post("/jobs/dry-run", DryRun, job, seek=seek, eta=eta))

    async def job(
        self,
        job_id: str,
        *,
        eta: bool = False,
        attempts: int | None = None,
        attempts_before: int | None = None,
    ) -> Job:
        """Return a job with its latest attempts, or with those before a number.

        With `eta`, also a forecast of its start, which may take seconds.
        """
        pages = {"attempts": attempts, "attempts_before": attempts_before}
        return await self._call(get(_job(job_id), Job, eta=eta or None, **pages))

    async def page(  # noqa: PLR0913 - each is a filter
        self,
        *,
        team: str | None = None,
        state: JobState | None = None,
        since: str | None = None,
        array: str | None = None,
        before: int | None = None,
        limit: int = 100,
        idle: bool = False,
        user: str | None = None,
        count: bool = False,
    ) -> JobPage:
        """Return a page of jobs, newest first; `since` is a time in ISO 8601.

        With `count`, the page has the number of all jobs that match as `total`.
        """
        return await self._call(
            get(
                "/jobs",
                JobPage,
                team=team,
                state=state,
                since=since,
                array=array,
                before=before,
                limit=limit,
                idle=idle or None,
                user=user,
                count=count or None,
            )
        )

    async def jobs(
        self,
        *,
        team: str | None = None,
        state: JobState | None = None,
        since: str | None = None,
        array: str | None = None,
    ) -> AsyncGenerator[Job, None]:
        """Yield jobs, newest first, page by page."""
        before: int | None = None
        while True:
            page = await self.page(
                team=team,
                state=state,
                since=since,
                array=array,
                before=before,
                limit=PAGE_MAX,
            )
            for job in page.jobs:
                yield job
            before = page.next
            if before is None:
                return

    async def cancel(self, job_id: str) -> CancelledJob:
        """Cancel a pending or running job."""
        return await self._call(delete(_job(job_id), CancelledJob))

    async def rerun(self, job_id: str) -> Submitted:
        """Submit a job again: same command, resources and variables, without its `after`.

        An array is submitted as a whole; a member of one as a single job with its index.
        """
        return await self._call(post(f"{_job(job_id)}/rerun", Submitted))

    async def release(self, job_id: str) -> ReleasedJob:
        """Release a held job, so that it is pending again. Needs role `operator`."""
        return await self._call(post(f"{_job(job_id)}/release", ReleasedJob))

    async def why(
        self,
        job_id: str,
        *,
        seek: Literal["none", "cheapest", "every"] = "cheapest",
        eta: bool = False,
    ) -> Why:
        """Return why a job is pending and what would start it."""
        return await self._call(get(f"{_job(job_id)}/why", Why, seek=seek, eta=eta or None))

    async def open_shell(
        self,
        job_id: str,
        *,
        command: Sequence[str] = (),
        member: int = 0,
        terminal: Terminal | None = None,
    ) -> OpenedShell:
        """Open a shell beside a process of a running job; read its output with `shell_output`."""
        wanted = OpenShell(command=list(command), member=member, terminal=terminal)
        return await self._call(post(f"{_job(job_id)}/shells", OpenedShell, wanted))

    async def shell_output(self, job_id: str, shell_id: str) -> AsyncGenerator[Frame, None]:
        """Yield the output of a shell until it ends; leaving this hangs it up."""
        frames = FrameReader()
        call = get(f"{_job(job_id)}/shells/{path_quoted(shell_id)}", OpenedShell)
        async with self._stream(call, {}) as answer:
            async for chunk in answer.chunks():
                for frame in frames.read(chunk):
                    yield frame

    async def shell_input(  # noqa: PLR0913 - each is a part of one request
        self,
        job_id: str,
        shell_id: str,
        data: bytes = b"",
        *,
        offset: int = 0,
        end: bool = False,
        rows: int | None = None,
        columns: int | None = None,
    ) -> ShellReceived:
        """Type into a shell, from a byte on; return how much of it was received."""
        typed = ShellInput(
            offset=offset, data=b64encode(data).decode(), end=end, rows=rows, columns=columns
        )
        path = f"{_job(job_id)}/shells/{path_quoted(shell_id)}"
        # Safe to repeat: what was received is skipped.
        return await self._call(post(path, ShellReceived, typed, new_key()))

    async def nodes(self) -> tuple[Node, ...]:
        """Return the nodes of the fleet."""
        return (await self._call(get("/nodes", Nodes))).nodes

    async def cordon(self, node_id: str) -> NodeStatus:
        """Stop scheduling jobs on a node; running jobs continue."""
        return await self._mark(node_id, "cordon")

    async def uncordon(self, node_id: str) -> NodeStatus:
        """Return a node to service."""
        return await self._mark(node_id, "uncordon")

    async def fail(self, node_id: str, cause: str = "") -> NodeStatus:
        """Mark a node as failed: its jobs are stopped and requeued."""
        return await self._mark(node_id, "fail", cause)

    async def test_node(self, node_id: str) -> NodeStatus:
        """Benchmark a node again; `nodes` shows the result."""
        return await self._mark(node_id, "test")

    async def accept_node(self, node_id: str) -> NodeStatus:
        """Accept a node despite a failed acceptance test."""
        return await self._mark(node_id, "accept")

    async def mark_nodes(
        self, node_ids: Sequence[str], verb: NodeVerb, cause: str = ""
    ) -> tuple[NodeStatus, ...]:
        """Change the state of several nodes in one request, all or none."""
        body = NodeActionRequest(nodes=list(node_ids), verb=verb, cause=cause)
        return (await self._call(post("/nodes", NodeStatuses, body))).nodes

    async def join_nodes(self, nodes: Sequence[JoiningNode], *, test: bool = False) -> JoinedNodes:
        """Add nodes to the running fleet, all or none; those that are known stay as they are."""
        body = JoinRequest(nodes=list(nodes), test=test)
        return await self._call(post("/nodes/join", JoinedNodes, body))

    async def leave_nodes(
        self, node_ids: Sequence[str], *, grace_s: float | None = None
    ) -> LeavingNodes:
        """Take nodes out of the running fleet, all or none: each once its jobs have ended."""
        body = LeaveRequest(nodes=list(node_ids), grace_s=grace_s)
        return await self._call(post("/nodes/leave", LeavingNodes, body))

    async def fleet(self) -> FleetStatus:
        """Return the state of the fleet in a few numbers."""
        return await self._call(get("/fleet", FleetStatus))

    async def control_planes(self) -> ControlPlanes:
        """Return the control planes that share the journal, and which one leads."""
        return await self._call(get("/control-planes", ControlPlanes))

    async def idle(self) -> Idle:
        """Return the jobs that hold GPUs without using them."""
        return await self._call(get("/fleet/idle", Idle))

    async def ready(self) -> Health:
        """Return whether the control plane accepts jobs; raise `Unreachable` with the cause."""
        return await self._call(Call(method="GET", path="/readyz", answer=Health))

    async def who_am_i(self) -> Token:
        """Return the team and role of your token."""
        return await self._call(get("/whoami", Token))

    async def tokens(self) -> tuple[Token, ...]:
        """Return all tokens, without their secrets."""
        return (await self._call(get("/tokens", Tokens))).tokens

    async def create_token(
        self, name: str, *, team: str, role: RoleName = "member", days: float | None = None
    ) -> NewToken:
        """Create a token; it is shown only in this response."""
        body = CreateToken(name=name, team=team, role=role, days=DAYS if days is None else days)
        return await self._call(post("/tokens", NewToken, body))

    async def deploy(self, *, new_revision: bool = False, **service: Any) -> Service:
        """Deploy a service, with the keys of a service file; return it once it is on disk."""
        call = post("/services", Service, service, new_revision=new_revision or None)
        return await self._call(call)

    async def deploy_file(self, path: str | Path, *, new_revision: bool = False) -> Service:
        """Deploy a service file; errors come with their line."""
        from tenfold.files.services.service import (  # noqa: PLC0415
            faults_in_service,
            read_service,
        )

        try:
            return await self.deploy(new_revision=new_revision, **read_service(Path(path)))
        except FaultyRequest as error:
            if not error.faults:
                raise
            raise faults_in_service(Path(path), error.faults) from None

    async def services(self) -> tuple[Service, ...]:
        """Return the services of the token's team; for operators, of all teams."""
        return (await self._call(get("/services", Services))).services

    async def service(self, name: str) -> Service:
        """Return a service with its replicas and revisions."""
        return await self._call(get(_service(name), Service))

    async def scale_service(
        self, name: str, *, replicas_min: int, replicas_max: int | None = None
    ) -> Service:
        """Set how many replicas a service has at least and at most."""
        most = max(replicas_min, 1) if replicas_max is None else replicas_max
        body = ScaleService(replicas_min=replicas_min, replicas_max=most)
        return await self._call(post(f"{_service(name)}/scale", Service, body))

    async def weigh_canary(self, name: str, weight: float) -> Service:
        """Set the share, in percent, of the revision that is being rolled out."""
        body = WeighCanary(weight=weight)
        return await self._call(post(f"{_service(name)}/canary", Service, body))

    async def promote_service(self, name: str) -> Service:
        """Give all requests to the revision that is being rolled out, once it is large enough."""
        return await self._call(post(f"{_service(name)}/promote", Service))

    async def roll_back_service(self, name: str) -> Service:
        """End a rollout; without one, go back to the revision before."""
        return await self._call(post(f"{_service(name)}/rollback", Service))

    async def remove_service(self, name: str) -> Service:
        """Remove a service: its replicas drain, and then it is gone."""
        return await self._call(delete(_service(name), Service))

    async def revoke_token(self, token_id: str) -> Token:
        """Revoke a token immediately."""
        return await self._call(delete(f"/tokens/{path_quoted(token_id)}", Token))

    async def wait(self, job_id: str, *, timeout_s: float | None = None) -> Job:
        """Return a job once it has ended; raise `NoAnswer` after `timeout_s`.

        A restart of the control plane does not end the wait.
        """
        ends_s = None if timeout_s is None else monotonic() + timeout_s
        tolerance = OutageTolerance(self._current)
        for pause_s in poll_intervals():
            try:
                job = await self.job(job_id)
            except Unreachable as problem:
                tolerance.failed(problem, monotonic())
            else:
                tolerance.answered()
                if job.is_over:
                    return job
            left_s = inf if ends_s is None else ends_s - monotonic()
            if left_s <= 0:
                break
            # The last poll is when the time is up, not before.
            await self._transport.pause(min(pause_s, left_s))
        raise wait_timed_out(job_id, timeout_s)

    @overload
    def logs(
        self,
        job_id: str,
        *,
        follow: Literal[False] = False,
        member: int = 0,
        attempt: int | None = None,
        tail: int | None = None,
        lines: int | None = None,
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
        lines: int | None = None,
    ) -> AsyncGenerator[str, None]: ...

    def logs(
        self,
        job_id: str,
        *,
        follow: bool = False,
        member: int = 0,
        attempt: int | None = None,
        tail: int | None = None,
        lines: int | None = None,
    ) -> Awaitable[str] | AsyncGenerator[str, None]:
        """Return the end of a job's log: `tail` bytes, or `lines` lines, of one member.

        It is the first member of the latest attempt unless others are named. With `follow`, yield
        the log as it is written, attempt after attempt, until the job ends.
        """
        if follow:
            return self._followed(job_id, member, LogFollower(attempt), LogEnd(tail, lines))
        if lines is not None:
            return self._last_lines(job_id, member, attempt, lines)
        return self._text(_log(job_id, member, attempt, tail))

    async def _last_lines(self, job_id: str, member: int, attempt: int | None, lines: int) -> str:
        found, _ = await self._end_of_log(job_id, member, attempt, lines)
        return found.decode(errors="replace")

    async def _end_of_log(
        self, job_id: str, member: int, attempt: int | None, lines: int
    ) -> tuple[bytes, int | None]:
        """Return the last lines of a log, and the number of their first byte."""
        content, begins = b"", None
        for size in TAIL_BYTES:
            async with self._stream(_log(job_id, member, attempt, size), {}) as answer:
                content, begins = await answer.read(), byte_number(answer.headers, "Log-Offset")
                is_whole = begins == byte_number(answer.headers, "Log-Dropped")
            if is_whole or len(content) < size or content.count(b"\n") > lines:
                break
        start = last_lines_start(content, lines)
        return content[start:], None if begins is None else begins + start

    async def events(
        self, *, after: int | None = None, follow: bool = True
    ) -> AsyncGenerator[JournalEvent, None]:
        """Yield journal events after a number; without one, new events only.

        With `follow` it never ends, even if the control plane restarts.
        """
        reader, tolerance, pauses = (
            EventReader(after),
            OutageTolerance(self._current),
            poll_intervals(),
        )
        call = get("/events", JournalEvent, follow=follow)
        while True:
            reader.begin()
            try:
                async with self._stream(call, reader.headers) as answer:
                    pauses = poll_intervals()
                    tolerance.answered()
                    async for line in answer.lines():
                        event = reader.read(line)
                        if event is not None:
                            yield event
            except TenfoldError as problem:
                if not follow:
                    raise
                tolerance.failed(problem, monotonic())
                await self._transport.pause(retry_after_s(problem))
            if not follow:
                return
            await self._transport.pause(next(pauses))

    async def _followed(
        self, job_id: str, member: int, follower: LogFollower, end: LogEnd
    ) -> AsyncGenerator[str, None]:
        """Yield a job's log as it is written; a broken stream resumes where it was."""
        pauses, tolerance = poll_intervals(), OutageTolerance(self._current)
        while True:
            try:
                job = await self.job(job_id, attempts_before=follower.before)
                if not follower.next_attempt(job):
                    if follower.is_last(job):
                        return
                    await self._transport.pause(next(pauses))
                    continue
                if end.lines is not None and follower.offset is None:
                    number = follower.number
                    _, follower.offset = await self._end_of_log(job_id, member, number, end.lines)
                    # A later attempt is read from its start.
                    end = LogEnd()
                async with aclosing(self._read(job_id, member, follower, end.tail)) as texts:
                    async for text in texts:
                        tolerance.answered()
                        yield text
                job = await self.job(job_id, attempts_before=follower.before)
                if not follower.has_ended(job):
                    raise log_interrupted(job_id, self.url)
            except TenfoldError as problem:
                follower.raise_unless_resumable(problem)
                tolerance.failed(problem, monotonic())
                await self._transport.pause(max(next(pauses), retry_after_s(problem)))
                continue
            if text := follower.end():
                yield text
            if follower.is_last(job):
                return
            pauses = poll_intervals()

    async def _read(
        self, job_id: str, member: int, follower: LogFollower, tail: int | None
    ) -> AsyncGenerator[str, None]:
        call = _log(job_id, member, follower.number, tail, follow=True, offset=follower.offset)
        async with self._stream(call, {}, endless=True) as answer:
            follower.begin(answer.headers)
            async for chunk in answer.chunks():
                if text := follower.read(chunk):
                    yield text

    @asynccontextmanager
    async def _stream(
        self, call: Call[Any], headers: dict[str, str], *, endless: bool = False
    ) -> "AsyncGenerator[AsyncStream | BlockingStream, None]":
        """Open a stream; connection errors become the errors of this client."""
        from httpx import HTTPError  # noqa: PLC0415

        more: dict[str, Any] = {"timeout": None} if endless else {}
        try:
            request_args = {**self._current.request(call, headers), **more}
            async with self._transport.stream(request_args) as answer:
                if answer.status >= 300:
                    problem = problem_of(
                        answer.status, await answer.read(), self.url, answer.headers
                    )
                    assert problem is not None, "a status of 300 or more is a problem"
                    raise problem
                yield answer
        except HTTPError as error:
            raise no_answer(self.url, error, was_sent=False) from None

    async def _mark(self, node_id: str, verb: NodeVerb, cause: str = "") -> NodeStatus:
        path = f"/nodes/{path_quoted(node_id)}/{verb}"
        return await self._call(post(path, NodeStatus, cause=cause or None))

    async def _text(self, call: Call[Any]) -> str:
        return (await self._content(call)).decode(errors="replace")

    async def _call(self, call: Call[Answer]) -> Answer:
        return call.read(await self._content(call), self.url)

    async def _content(self, call: Call[Any]) -> bytes:
        from httpx import ConnectError, ConnectTimeout, HTTPError  # noqa: PLC0415

        retries = Retries(self._current, call)
        while True:
            problem: TenfoldError | None
            try:
                answer = await self._transport.request(self._current.request(call))
                problem = problem_of(answer.status_code, answer.content, self.url, answer.headers)
                if problem is None:
                    return answer.content
            except HTTPError as error:
                sent = call.changes and not isinstance(error, ConnectError | ConnectTimeout)
                problem = no_answer(self.url, error, was_sent=sent)
            await self._transport.pause(retries.pause_after(problem))


def _submission(job: Mapping[str, Any], key: str | None) -> Call[Submitted]:
    return post("/jobs", Submitted, job, key or new_key())


def _service(name: str) -> str:
    return f"/services/{path_quoted(name)}"


def _job(job_id: str) -> str:
    return f"/jobs/{path_quoted(job_id)}"


def _log(
    job_id: str, member: int, attempt: int | None, tail: int | None, **more: int | None
) -> Call[bytes]:
    path = f"{_job(job_id)}/logs"
    return get(path, bytes, member=member, attempt=attempt, tail=tail, **more)
