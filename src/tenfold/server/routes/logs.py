"""Job logs over HTTP: the end of a log, or the whole stream until the attempt ends."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import closing
from typing import Annotated

from anyio import to_thread
from litestar import Response, Router, get
from litestar.params import FromPath, QueryParameter
from litestar.response import Stream

from tenfold.journal import read
from tenfold.journal.rows import JobWithAttempts
from tenfold.live.executor import LOG_TAIL_BYTES, MemberLog
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.report.figures import count
from tenfold.server.auth.access import AuthedRequest, is_still_valid, requires_role
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.background.pruning import check_kept
from tenfold.server.event_pages import stream_threads
from tenfold.server.log_stream import LogPieces, LogReader, tail_offset
from tenfold.server.problems import Problem
from tenfold.server.routes.jobs import job_of
from tenfold.server.runtime.deps import Control, ControlDep

MEDIA_TYPE = "text/plain; charset=utf-8"
OFFSET = "Log-Offset"
DROPPED = "Log-Dropped"
POLL_S = 0.25
Member = Annotated[int, QueryParameter(ge=0, le=1_000_000, description="Rank of the process.")]
Attempt = Annotated[
    int | None, QueryParameter(ge=1, le=2**31, description="Which attempt; the latest by default.")
]
Tail = Annotated[int, QueryParameter(ge=0, le=4 << 20, description="Bytes from the end.")]
Offset = Annotated[
    int | None,
    QueryParameter(ge=0, le=2**63 - 1, description="Start at this byte instead of near the end."),
]
Follow = Annotated[bool, QueryParameter(description="Keep streaming until the attempt ends.")]


@get(
    "/jobs/{job_id:str}/logs",
    opt=requires_role(Role.viewer),
    operation_id="jobLogs",
    media_type="text/plain",
)
async def job_logs(
    request: AuthedRequest,
    control: ControlDep,
    job_id: FromPath[str],
    member: Member = 0,
    attempt: Attempt = None,
    tail: Tail = LOG_TAIL_BYTES,
    offset: Offset = None,
    follow: Follow = False,
) -> Response[bytes] | Stream:
    """Get the end of a member's log, or follow it.

    The header `Log-Offset` is the number of the first byte sent. A client that counts from there
    can reconnect with `offset` after a broken connection and misses nothing. `Log-Dropped` is the
    number of bytes dropped from the start: only the newest part of a log is kept.
    """
    before = None if attempt is None else attempt + 1
    story = await to_thread.run_sync(job_of, control, request.user, job_id, before, 1)
    if follow:
        control.budgets.open_stream(request)
    number = attempt or story.job.attempts
    _check_attempt(story, attempt)
    if not number:
        return Response(b"", media_type=MEDIA_TYPE, headers={OFFSET: "0", DROPPED: "0"})
    log = await to_thread.run_sync(control.logs.logs, JobId(job_id), number, member, tail)
    check_kept(log, story, number)
    _check_member(log, story, number, member)
    if not follow and offset is None:
        return Response(log.tail, media_type=MEDIA_TYPE, headers=_offset_headers(log))

    def open_reader() -> tuple[LogReader, bytes]:
        def pieces() -> LogPieces:
            return pieces_of(control, JobId(job_id), number, member)

        reader = LogReader(pieces, tail_offset(pieces(), tail) if offset is None else offset)
        return reader, reader.read()

    reader, first = await to_thread.run_sync(open_reader)
    headers = {OFFSET: str(reader.offset - len(first)), DROPPED: str(log.bytes_dropped)}
    if follow:
        chunks = followed(control, request.user, reader, first, (JobId(job_id), number))
        return Stream(chunks, media_type=MEDIA_TYPE, headers=headers)
    whole = await to_thread.run_sync(_whole, reader, first, tail)
    return Response(whole, media_type=MEDIA_TYPE, headers=headers)


def _check_attempt(story: JobWithAttempts, attempt: int | None) -> None:
    """Raise if a job has no attempt of this number."""
    most = story.job.attempts
    if attempt is None or attempt <= most:
        return
    has = "it has not started yet" if not most else f"it has {count(most, 'attempt')}"
    raise Problem(
        404,
        Reason("no-such-attempt", sentence=f"`{story.job.id}` has no attempt {attempt}: {has}"),
        "leave out the attempt for the latest one" if most else "wait until it runs",
    )


def _check_member(log: MemberLog, story: JobWithAttempts, number: int, member: int) -> None:
    """Raise if an attempt has no process of this number; a resized gang may have had more."""
    one = next((one for one in story.attempts if one.number == number), None)
    most = 0 if one is None else len(one.nodes_next or one.nodes)
    if not most or member < most or log.bytes_kept or log.bytes_dropped:
        return
    has = "only process 0" if most == 1 else f"processes 0 to {most - 1}"
    raise Problem(
        404,
        Reason("no-such-member", sentence=f"`{story.job.id}` has no process {member}"),
        f"attempt {number} has {has}",
    )


def _offset_headers(log: MemberLog) -> dict[str, str]:
    """Return the headers: the number of the first byte, and the bytes dropped before it."""
    begins = log.bytes_dropped + max(0, log.bytes_kept - len(log.tail))
    return {OFFSET: str(begins), DROPPED: str(log.bytes_dropped)}


def pieces_of(control: Control, job_id: JobId, attempt: int, member: int) -> LogPieces:
    """Return the segments of a log; an executor without segments has one."""
    log = control.logs.logs(job_id, attempt, member, 0)
    return log.segments or [(0, path) for path in log.paths[-1:]]


async def followed(
    control: Control, token: Token, reader: LogReader, first: bytes, attempt: tuple[JobId, int]
) -> AsyncGenerator[bytes, None]:
    """Yield a member's log until its attempt ends, the token ends, or the server closes."""
    with closing(reader):
        if first:
            yield first
            first = b""
        while not control.is_closing() and await is_still_valid(control.tokens, token):
            # Checked first, so that everything written before the end is read.
            over = await to_thread.run_sync(_is_over, control, *attempt, limiter=stream_threads())
            while chunk := await to_thread.run_sync(reader.read, limiter=stream_threads()):
                yield chunk
            if over:
                return
            await asyncio.sleep(POLL_S)


def _whole(reader: LogReader, first: bytes, bytes_most: int) -> bytes:
    """Return the rest, up to this many bytes."""
    parts, count = [first], len(first)
    while count < bytes_most and (chunk := reader.read()):
        parts.append(chunk)
        count += len(chunk)
    reader.close()
    return b"".join(parts)[:bytes_most]


def _is_over(control: Control, job_id: JobId, attempt: int) -> bool:
    story = read.job(control.store, job_id, attempt + 1, 1)
    if story is None:
        return True
    ends = [one.ended_ms for one in story.attempts if one.number == attempt]
    return not ends or ends[0] is not None


ROUTES = Router("/api/v1", route_handlers=[job_logs])
