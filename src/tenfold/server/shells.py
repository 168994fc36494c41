"""The shells that are open: who opened each, and how its bytes go in and out.

The stream of a shell's output is its lease. A shell that nobody reads is hung up, and so is one
whose token has ended.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress

import msgspec

from tenfold.live.executor import Shell, ShellEnded, ShellRequest
from tenfold.model.api.shells import Frame, ShellEnd, framed
from tenfold.model.ids import JobId
from tenfold.model.reason import Reason
from tenfold.server.auth.tokens import Token
from tenfold.server.problems import Problem
from tenfold.server.runtime.logs import FIELDS

SHELLS_MAX = 64
OF_TOKEN_MAX = 8
ATTACH_S = 10.0
"""How long an opened shell waits for its stream."""
CHECK_S = 2.0
"""How often a stream checks its token and that its client is there."""
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

    def check(self, token: Token) -> None:
        """Raise if a token may open no more shells."""
        own = sum(one.token_id == token.id for one in self._shells.values())
        if len(self._shells) < SHELLS_MAX and own < OF_TOKEN_MAX:
            return
        most = OF_TOKEN_MAX if own >= OF_TOKEN_MAX else SHELLS_MAX
        raise Problem(429, Reason("too-many-shells", {"most": most}), "close one of them first")

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
        self.token_id = token.id
        self.job_id = job_id
        self.shell = shell
        self.received = 0
        """Bytes of input so far."""
        self.is_claimed = self.is_read = False
        """Whether a request for its output came, and whether that is being answered."""
        self._on_close = on_close
        self._is_closed = False
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
        try:
            while not self._is_closed:
                for one in self.shell.read():
                    if isinstance(one, ShellEnded):
                        end = ShellEnd(exit_code=one.exit_code, signal=one.signal)
                        yield _end(end)
                        return
                    yield framed(Frame("errors" if one.is_error else "output", one.content))
                if not await self._readable():
                    # Also notices a client that is gone.
                    yield framed(Frame("alive"))
                    if not await may_go_on():
                        yield _end(ShellEnd(reason="the control plane closed it"))
                        return
        finally:
            self.close()

    async def _readable(self) -> bool:
        """Wait until there is output, for a while; tell whether there is."""
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        file = self.shell.fileno()
        # Only while waiting: a reader that is slow would otherwise be woken again and again.
        loop.add_reader(file, ready.set)
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(ready.wait(), CHECK_S)
        finally:
            loop.remove_reader(file)
        return ready.is_set()


def _end(end: ShellEnd) -> bytes:
    return framed(Frame("end", msgspec.json.encode(end)))
