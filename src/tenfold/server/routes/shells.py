"""Shells in running jobs over HTTP: open one, read its output, type into it.

Whoever may cancel a job may open a shell in it. Only the token that opened a shell can use it.
"""

import logging
from base64 import b64decode
from binascii import Error as NotBase64

from anyio import to_thread
from litestar import Router, get, post
from litestar.params import FromPath
from litestar.response import Stream

from tenfold.live.executor import ShellRequest, TerminalSize
from tenfold.model.api.shells import (
    DEFAULT_COMMAND,
    INPUT_BYTES_MAX,
    OpenedShell,
    OpenShell,
    ShellInput,
    ShellReceived,
)
from tenfold.model.ids import JobId
from tenfold.model.job.job import ENDED, JobState
from tenfold.model.reason import Reason
from tenfold.report.reasons.render import render
from tenfold.server.auth.access import AuthedRequest, is_still_valid, requires_role
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.problems import Problem
from tenfold.server.routes.jobs import job_of
from tenfold.server.runtime.deps import ControlDep
from tenfold.server.runtime.logs import FIELDS
from tenfold.server.submissions import read_body

MEDIA_TYPE = "application/octet-stream"
_STATUS = {"shell-no-member": 404}
_HINTS = {
    "shell-not-running": "wait until it runs; `tenfold job show` shows its state",
    "shell-failed": "check the command, and the log of the job",
}
_LOG = logging.getLogger("tenfold.server")


@post(
    "/jobs/{job_id:str}/shells",
    opt=requires_role(Role.member),
    status_code=201,
    operation_id="openShell",
)
async def open_shell(
    request: AuthedRequest, control: ControlDep, job_id: FromPath[str]
) -> OpenedShell:
    """Open a shell beside a process of a running job, with its user, folder, GPUs and limits.

    Read its output within 10 seconds, or it is hung up.
    """
    wanted = read_body(OpenShell, await request.body() or b"{}", "the shell")
    story = await to_thread.run_sync(job_of, control, request.user, job_id, None, 1)
    attempt, terminal = story.job.attempts, wanted.terminal
    order = ShellRequest(
        command=tuple(wanted.command) or DEFAULT_COMMAND,
        member=wanted.member,
        terminal=None if terminal is None else TerminalSize(terminal.rows, terminal.columns),
        term="" if terminal is None else terminal.term,
    )
    with control.shells.opening(request.user):
        found = await to_thread.run_sync(control.open_shell, JobId(job_id), attempt, order)
        if isinstance(found, Reason):
            raise _no_shell(found, story.job.state, job_id, request.user, story.job.team)
        session = control.shells.add(found, request.user, job_id)
    _log("shell opened", request.user, job_id, session.id, order.command)
    return OpenedShell(id=session.id, job=job_id, attempt=attempt, member=wanted.member)


@get(
    "/jobs/{job_id:str}/shells/{shell_id:str}",
    opt=requires_role(Role.member),
    operation_id="readShell",
    media_type=MEDIA_TYPE,
)
async def read_shell(
    request: AuthedRequest, control: ControlDep, job_id: FromPath[str], shell_id: FromPath[str]
) -> Stream:
    """Stream the output of a shell until it ends; it is hung up when this stream is closed.

    Frames: a byte for the kind (0 alive, 1 output, 2 errors, 3 end), four for the length, and the
    content; that of the end is JSON with `exit_code` or `signal`.
    """
    session = control.shells.find(shell_id, request.user, job_id)
    if session.is_claimed:
        reason = Reason("shell-in-use", sentence=f"shell `{shell_id}` is already being read")
        raise Problem(409, reason, "open another with `tenfold job shell`")
    control.budgets.open_stream(request)
    session.is_claimed = True

    async def may_go_on() -> bool:
        return not control.is_closing() and await is_still_valid(control.tokens, request.user)

    return Stream(session.output(may_go_on), media_type=MEDIA_TYPE)


@post(
    "/jobs/{job_id:str}/shells/{shell_id:str}",
    opt=requires_role(Role.member),
    status_code=200,
    operation_id="typeIntoShell",
)
async def type_into_shell(
    request: AuthedRequest, control: ControlDep, job_id: FromPath[str], shell_id: FromPath[str]
) -> ShellReceived:
    """Send input to a shell, change the size of its terminal, or end its input."""
    session = control.shells.find(shell_id, request.user, job_id)
    typed = read_body(ShellInput, await request.body(), "the input")
    data = _decoded(typed.data)
    if typed.rows is not None and typed.columns is not None:
        session.shell.resize(TerminalSize(typed.rows, typed.columns))
    offset = await session.type(typed.offset, data)
    if typed.end and offset >= typed.offset + len(data):
        session.shell.end_input()
    return ShellReceived(offset=offset)


def _no_shell(reason: Reason, state: JobState, job_id: str, user: Token, team: str) -> Problem:
    """Return the problem for a shell that cannot be opened; a job that has ended never runs."""
    said, hint = render(reason, user.reader, team), _HINTS.get(reason.code, "")
    if reason.code == "shell-not-running" and state in ENDED:
        said = f"job `{job_id}` has ended ({state})"
        hint = (
            f"`tenfold job logs {job_id}` shows its output; "
            f"`tenfold job rerun {job_id}` runs it again"
        )
    status = _STATUS.get(reason.code, 409)
    return Problem(status, Reason(reason.code, sentence=said), hint)


def _decoded(data: str) -> bytes:
    try:
        content = b64decode(data, validate=True)
    except (NotBase64, ValueError):
        reason = Reason("wrong-value", sentence="`data` is not valid base64")
        raise Problem(422, reason, "encode the input as base64") from None
    if len(content) > INPUT_BYTES_MAX:
        reason = Reason("wrong-value", sentence=f"`data` has over {INPUT_BYTES_MAX:,} bytes")
        raise Problem(422, reason, "send it in several requests")
    return content


def _log(what: str, token: Token, job_id: str, shell_id: str, command: tuple[str, ...]) -> None:
    """Log who did what; arguments may be secrets, so only the program is named."""
    fields = {"job": job_id, "shell": shell_id, "user": token.name, "team": token.team}
    _LOG.info(what, extra={FIELDS: {**fields, "token": token.id, "program": command[0]}})


ROUTES = Router("/api/v1", route_handlers=[open_shell, read_shell, type_into_shell])
