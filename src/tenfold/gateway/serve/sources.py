"""Where the routing state comes from: a file, or the control plane. The last good one is kept."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec
from aiohttp import ClientError, ClientSession, ClientTimeout

from tenfold.files.routing import read_routing
from tenfold.model.errors import TenfoldError
from tenfold.model.service.routing import RoutingState

LOOK_S = 1.0
"""How often a file is looked at."""
WAIT_S = 30
"""How long the control plane holds a request until there is news."""
ANSWER_S = WAIT_S + 15.0
RETRY_S_MIN, RETRY_S_MAX = 0.5, 10.0
AFRESH_S = 300.0
"""After so long without news the whole state is read again: a restored control plane may have
begun to count versions anew."""
STATE_BYTES_MAX = 64 << 20

_LOG = logging.getLogger("tenfold.gateway")
Apply = Callable[[RoutingState], None]


class Source(Protocol):
    """Delivers routing states for as long as the gateway runs."""

    async def run(self, apply: Apply, confirmed: Callable[[], None]) -> None:
        """Apply every new state; call `confirmed` when the newest is known to be in use."""
        ...


class RoutingFile:
    """A routing file, read again when it changes. A file with errors changes nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = asyncio.Event()

    def reload(self) -> None:
        """Look at the file now."""
        self._changed.set()

    async def run(self, apply: Apply, confirmed: Callable[[], None]) -> None:
        """Apply every new state; call `confirmed` when the newest is known to be in use."""
        seen: tuple[int, int, int] | None = None
        while True:
            stamp = _stamp(self._path)
            if stamp is not None and stamp != seen:
                seen = stamp
                try:
                    state = await asyncio.to_thread(read_routing, self._path)
                except TenfoldError as error:
                    place = f"{error.file}:{error.line}: " if error.line else ""
                    _LOG.error("routing file not used: %s%s", place, error.message)
                else:
                    apply(state)
                    _LOG.info("routing by %s, %d services", self._path, len(state.services))
                    confirmed()
            elif stamp is not None:
                confirmed()
            try:
                async with asyncio.timeout(LOOK_S):
                    await self._changed.wait()
            except TimeoutError:
                continue
            self._changed.clear()
            seen = None


class Address(NamedTuple):
    """A control plane, and the token to use with it."""

    url: str
    token: str


class ControlPlane:
    """The control plane, asked for the next state. While it is away the last state is used."""

    def __init__(self, address: Callable[[], Address]) -> None:
        self._address = address
        """Asked again after each failure: a restarted control plane has another token."""

    async def run(self, apply: Apply, confirmed: Callable[[], None]) -> None:
        """Apply every new state; call `confirmed` when the newest is known to be in use."""
        loop = asyncio.get_running_loop()
        after, news_s, retry_s = -1, loop.time(), RETRY_S_MIN
        is_away = False
        async with ClientSession(timeout=ClientTimeout(total=ANSWER_S)) as session:
            while True:
                try:
                    state = await self._ask(session, after)
                except _Away as why:
                    if not is_away:
                        _LOG.warning("control plane not available: %s", why)
                    is_away = True
                    await asyncio.sleep(retry_s)
                    retry_s = min(2 * retry_s, RETRY_S_MAX)
                    continue
                if is_away:
                    _LOG.info("control plane available again")
                is_away, retry_s = False, RETRY_S_MIN
                confirmed()
                if state is not None:
                    after, news_s = state.version, loop.time()
                    apply(state)
                    _LOG.info("routing version %d, %d services", after, len(state.services))
                elif loop.time() - news_s > AFRESH_S:
                    after, news_s = -1, loop.time()

    async def _ask(self, session: ClientSession, after: int) -> RoutingState | None:
        """Return the next state; None if there is none yet."""
        try:
            address = self._address()
            query = f"after={after}&wait_s={WAIT_S if after >= 0 else 0}"
            async with session.get(
                f"{address.url}/api/v1/routing?{query}",
                headers={"Authorization": f"Bearer {address.token}"},
                allow_redirects=False,
            ) as response:
                if response.status == 204:
                    return None
                if response.status != 200:
                    raise _Away(f"status {response.status}")
                body = await response.content.read(STATE_BYTES_MAX)
                return msgspec.json.decode(body, type=RoutingState)
        except TenfoldError as error:
            raise _Away(error.message) from None
        except (ClientError, OSError, TimeoutError) as error:
            raise _Away(type(error).__name__) from None
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise _Away("its answer is not a routing state") from None


class _Away(Exception):
    """The control plane gave no state."""


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
