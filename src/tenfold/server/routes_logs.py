"""What jobs wrote, over HTTP: the end of it, or all that comes until the attempt is over."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Annotated, BinaryIO

from anyio import to_thread
from litestar import Response, Router, get
from litestar.params import FromPath, QueryParameter
from litestar.response import Stream

from tenfold.journal import read
from tenfold.live.executor import LOG_TAIL_BYTES
from tenfold.model.ids import JobId
from tenfold.server.access import Asked, needs
from tenfold.server.control import Control, Given
from tenfold.server.routes_jobs import job_of
from tenfold.server.tokens import Role

MEDIA_TYPE = "text/plain; charset=utf-8"
READ_BYTES = 256 << 10
LOOK_S = 0.25
Member = Annotated[
    int, QueryParameter(ge=0, le=1_000_000, description="Which process of the gang.")
]
Attempt = Annotated[
    int | None, QueryParameter(ge=1, le=2**31, description="The latest, if left out.")
]
Tail = Annotated[int, QueryParameter(ge=0, le=4 << 20, description="Bytes from the end.")]
Follow = Annotated[bool, QueryParameter(description="Go on until the attempt is over.")]


class Growing:
    """A log that is still written, read from near its end; pieces may turn underneath."""

    def __init__(self, newest: Callable[[], str | None], bytes_most: int) -> None:
        self._newest = newest
        self._bytes_most = bytes_most
        self._file: BinaryIO | None = None

    def read(self) -> bytes:
        """Return what came since the last call; empty where nothing did."""
        path = self._newest()
        if self._file is None:
            if path is None or not os.path.exists(path):
                return b""
            self._file = Path(path).open("rb")  # noqa: SIM115
            size = self._file.seek(0, os.SEEK_END)
            self._file.seek(max(0, size - self._bytes_most))
        found = self._file.read(READ_BYTES)
        if found or path is None or not self._has_turned(path):
            return found
        self._file.close()
        self._file = Path(path).open("rb")  # noqa: SIM115
        return self._file.read(READ_BYTES)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()

    def _has_turned(self, path: str) -> bool:
        assert self._file is not None, "a file that was never open does not turn"
        try:
            return os.stat(path).st_ino != os.fstat(self._file.fileno()).st_ino
        except FileNotFoundError:
            return False


@get(
    "/jobs/{job_id:str}/logs",
    opt=needs(Role.viewer),
    operation_id="jobLogs",
    media_type="text/plain",
)
async def job_logs(
    request: Asked,
    control: Given,
    job_id: FromPath[str],
    member: Member = 0,
    attempt: Attempt = None,
    tail: Tail = LOG_TAIL_BYTES,
    follow: Follow = False,
) -> Response[bytes] | Stream:
    """Give the end of what a member wrote, or follow it."""
    story = await to_thread.run_sync(job_of, control, request.user, job_id)
    number = attempt or story.job.attempts
    if follow and number:
        chunks = followed(control, JobId(job_id), number, member, tail)
        return Stream(chunks, media_type=MEDIA_TYPE)
    if not number or not tail:
        return Response(b"", media_type=MEDIA_TYPE)
    log = await to_thread.run_sync(control.logs.logs, JobId(job_id), number, member, tail)
    return Response(log.tail, media_type=MEDIA_TYPE)


async def followed(
    control: Control, job_id: JobId, attempt: int, member: int, bytes_most: int
) -> AsyncGenerator[bytes, None]:
    """Yield what a member writes until its attempt is over, or the server closes."""

    def newest() -> str | None:
        paths = control.logs.logs(job_id, attempt, member, 1).paths
        return paths[-1] if paths else None

    growing = Growing(newest, bytes_most)
    try:
        while not control.is_closing():
            # Asked first: what was written before the end is then sure to be read.
            over = await to_thread.run_sync(_is_over, control, job_id, attempt)
            while chunk := await to_thread.run_sync(growing.read):
                yield chunk
            if over:
                return
            await asyncio.sleep(LOOK_S)
    finally:
        growing.close()


def _is_over(control: Control, job_id: JobId, attempt: int) -> bool:
    story = read.job(control.store, job_id)
    if story is None:
        return True
    ends = [one.ended_ms for one in story.attempts if one.number == attempt]
    return not ends or ends[0] is not None


ROUTES = Router("/api/v1", route_handlers=[job_logs])
