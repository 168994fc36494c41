"""The shells that are open: who opened each, and how its bytes go in and out.

The stream of a shell's output is its lease. A shell that nobody reads is hung up, and so is one
whose token has ended.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import contextmanager, suppress

import msgspec

from tenfold.live.executor import Shell, ShellEnded, ShellRequest
from tenfold.model.api.shells import Frame, ShellEnd, framed
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.server.auth.tokens import Token
from tenfold.server.problems import Problem
from tenfold.server.runtime.logs import FIELDS

SHELLS_MAX = 64
OF_TEAM_MAX = 32
OF_TOKEN_MAX = 8
ATTACH_S = 10.0
"""How long an opened shell waits for its stream."""
CHECK_S = 2.0
"""How often the token of a shell is checked, and whether the reader of a quiet one is there."""
WRITE_S = 2.0
"""How long input waits for a program that does not read."""
_LOG = logging.getLogger("tenfold.server")


OpenShellCall = Callable[[JobId, int, ShellRequest], Shell | Reason]
"""Opens a shell in an attempt of a job, from any thread."""


def no_shells(job_id: JobId, attempt: int, request: ShellRequest) -> Reason:
    """Refuse every shell."""
    return Reason("shell-unsupported")


class OpenShells:
    """All shells of a server; used in its event loop only."""

    def __init__(self) -> None:
        self._shells: dict[str, ShellSession] = {}
        self._opening: list[tuple[str, str]] = []
        """Token and team of shells that are being opened."""

    @contextmanager
    def opening(self, token: Token) -> Generator[None]:
        """Count a shell before it is opened; raise if this token may open no more."""
        used = [(one.token_id, one.team) for one in self._shells.values()] + self._opening
        counts = (
            (sum(one == token.id for one, _ in used), OF_TOKEN_MAX),
            (sum(team == token.team for _, team in used), OF_TEAM_MAX),
            (len(used), SHELLS_MAX),
        )
        for count, most in counts:
            if count >= most:
                reason = Reason("too-many-shells", {"most": most})
                raise Problem(429, reason, "close one of them first")
        self._opening.append((token.id, token.team))
        try:
            yield
        finally:
            self._opening.remove((token.id, token.team))

    def add(self, shell: Shell, token: Token, job_id: str) -> "ShellSession":
        """Keep a shell until it is closed; one that is not read soon is hung up."""
        session = ShellSession(secrets.token_hex(8), shell, token, job_id, self._remove)
        self._shells[session.id] = session
        loop = asyncio.get_running_loop()
        loop.call_later(ATTACH_S, session.close_unless_read)
        return session

    def find(self, shell_id: str, token: Token, job_id: str) -> "ShellSession":
        """Return a shell that this token opened in a job; raise if there is none."""
        session = self._shells.get(shell_id)
        if session is None or session.token_id != token.id or session.job_id != job_id:
            reason = Reason("no-such-shell", sentence=f"no shell `{shell_id}` in job `{job_id}`")
            raise Problem(404, reason, "it has ended; open another with `tenfold job shell`")
        return session

    def _remove(self, shell_id: str) -> None:
        self._shells.pop(shell_id, None)


class ShellSession:
    """One open shell."""

    def __init__(
        self,
        shell_id: str,
        shell: Shell,
        token: Token,
        job_id: str,
        on_close: Callable[[str], None],
    ) -> None:
        self.id = shell_id
        self.token_id, self.team = token.id, token.team
        self.job_id = job_id
        self.shell = shell
        self.received = 0
        """Bytes of input so far."""
        self.is_claimed = self.is_read = False
        """Whether a request for its output came, and whether that is being answered."""
        self._on_close = on_close
        self._is_closed = self._must_end = False
        self._output_ready: asyncio.Event | None = None
        """Set while the reader waits for output."""
        self._typing = asyncio.Lock()

    def close_unless_read(self) -> None:
        """Hang up if nobody reads the output."""
        if not self.is_read:
            self.close()

    def close(self) -> None:
        """Hang up."""
        if not self._is_closed:
            self._is_closed = True
            self._on_close(self.id)
            self.shell.close()
            _LOG.info("shell closed", extra={FIELDS: {"job": self.job_id, "shell": self.id}})

    async def type(self, offset: int, data: bytes) -> int:
        """Send input from a byte on; return the number of the next byte that is expected."""
        async with self._typing:
            rest = data[max(0, self.received - offset) :] if offset <= self.received else b""
            ends_s = asyncio.get_running_loop().time() + WRITE_S
            while rest and not self._is_closed:
                taken = self.shell.write(rest)
                self.received += taken
                rest = rest[taken:]
                if rest and not taken:
                    if asyncio.get_running_loop().time() >= ends_s:
                        break
                    await asyncio.sleep(0.02)
            return self.received

    async def output(self, may_go_on: Callable[[], Awaitable[bool]]) -> AsyncGenerator[bytes, None]:
        """Yield frames until the shell ends; it is hung up when the reader leaves."""
        self.is_read = True
        watch = asyncio.create_task(self._end_unless(may_go_on))
        try:
            while not self._is_closed and not self._must_end:
                for one in self.shell.read():
                    if isinstance(one, ShellEnded):
                        end = ShellEnd(exit_code=one.exit_code, signal=one.signal)
                        yield _end(end)
                        return
                    yield framed(Frame("errors" if one.is_error else "output", one.content))
                    if self._must_end:
                        break
                else:
                    if not await self._readable():
                        # Also notices a client that is gone.
                        yield framed(Frame("alive"))
            if self._must_end:
                yield _end(ShellEnd(reason="the control plane closed it"))
        finally:
            watch.cancel()
            self.close()

    async def _end_unless(self, may_go_on: Callable[[], Awaitable[bool]]) -> None:
        """End it when it may not go on, however much it prints and however slowly that is read."""
        try:
            while await may_go_on():
                await asyncio.sleep(CHECK_S)
        except Exception:
            # Of any kind: a shell that cannot be checked is closed.
            _LOG.exception("cannot check the token of a shell")
        self._must_end = True
        if self._output_ready is not None:
            self._output_ready.set()
        else:
            # The reader may never take what was sent before.
            self.close()

    async def _readable(self) -> bool:
        """Wait until there is output, for a while; tell whether there is."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        file = self.shell.fileno()
        # Only while waiting: a reader that is slow would otherwise be woken again and again.
        loop.add_reader(file, ready.set)
        self._output_ready = ready
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(ready.wait(), CHECK_S)
        finally:
            self._output_ready = None
            loop.remove_reader(file)
        return ready.is_set()


def _end(end: ShellEnd) -> bytes:
    return framed(Frame("end", msgspec.json.encode(end)))
