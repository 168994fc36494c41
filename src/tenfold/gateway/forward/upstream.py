"""Connections to replicas: send one request, return the first byte of the answer."""

import asyncio
import logging
from collections.abc import Mapping

from aiohttp import (
    ClientConnectionError,
    ClientConnectorError,
    ClientError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    TCPConnector,
)
from multidict import CIMultiDict
from yarl import URL

from tenfold.gateway.forward.call import Answer, Call, with_model
from tenfold.gateway.forward.spans import PARENT
from tenfold.gateway.pool.grant import Target

CONNECT_S = 5.0
KEEP_ALIVE_S = 4.0
"""Below the 5 seconds after which uvicorn closes an idle connection."""
WHOLE_BYTES_MAX = 256 << 10
"""Shorter answers are read to their end before the first byte goes to the client."""
READ_BYTES = 256 << 10
AUTOMATIC = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
"""Headers that the client library would add; what a client did not send is not sent."""

_LOG = logging.getLogger("tenfold.gateway")


class SendFailed(Exception):
    """A target gave no usable answer; nothing was sent to the client."""

    def __init__(self, message: str, *, is_unreachable: bool = False, timed_out: bool = False):
        super().__init__(message)
        self.is_unreachable = is_unreachable
        """No connection: the request was not seen, and may be sent again whatever it is."""
        self.timed_out = timed_out


class Upstream:
    """A pool of connections to all targets."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._keys = keys
        self._waiting: dict[asyncio.Task[object], float] = {}
        """Attempts without a first byte, and when each has failed."""
        self._session = ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            timeout=ClientTimeout(total=None, sock_connect=CONNECT_S),
            read_bufsize=READ_BYTES,
            trust_env=False,
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def send(self, target: Target, call: Call, timeout_s: float) -> Answer:
        """Send a request and return its answer from the first byte; raise `SendFailed` if none."""
        # A timer for each request would cost more than looking at all of them now and then.
        task = asyncio.current_task()
        assert task is not None, "requests are sent by tasks"
        self._waiting[task] = asyncio.get_running_loop().time() + timeout_s
        try:
            return await self._send(target, call)
        except asyncio.CancelledError:
            if task in self._waiting or task.uncancel():
                raise
            raise SendFailed("timeout", timed_out=True) from None
        except TimeoutError:
            raise SendFailed("connect timeout", is_unreachable=True, timed_out=True) from None
        except ClientConnectorError as error:
            raise SendFailed(type(error).__name__, is_unreachable=True) from None
        except (ClientError, OSError, ValueError) as error:
            raise SendFailed(type(error).__name__) from None
        finally:
            self._waiting.pop(task, None)

    def sweep(self, now_s: float) -> None:
        """End attempts whose first byte is overdue."""
        for task in [one for one, due_s in self._waiting.items() if due_s < now_s]:
            # An attempt that is cancelled and no longer listed has timed out.
            del self._waiting[task]
            task.cancel()

    async def _send(self, target: Target, call: Call) -> Answer:
        if call.span is None:
            return await self._attempt(target, call, call.headers)
        span = call.span.child("attempt")
        span.note("tenfold.target", target.name)
        headers = CIMultiDict(call.headers)
        headers[PARENT] = span.header()
        answer: Answer | None = None
        try:
            answer = await self._attempt(target, call, headers)
            span.note("http.response.status_code", answer.status)
            return answer
        finally:
            span.end(failed=answer is None or answer.status >= 500)

    async def _attempt(self, target: Target, call: Call, headers: "CIMultiDict[str]") -> Answer:
        key = self._keys.get(target.key) if target.key else None
        body = call.body
        if key is not None:
            headers = CIMultiDict(headers)
            headers["Authorization"] = f"Bearer {key}"
        if target.model and body:
            body = with_model(body, target.model)
        response = await self._session.request(
            call.method,
            URL(target.url + call.path, encoded=True),
            data=body or None,
            headers=headers,
            skip_auto_headers=[name for name in AUTOMATIC if name not in headers] or None,
            allow_redirects=False,
        )
        try:
            return await _begun(response, call)
        except BaseException:
            response.close()
            raise


async def _begun(response: ClientResponse, call: Call) -> Answer:
    length = response.content_length
    if call.method == "HEAD" or length == 0 or response.status in (204, 304):
        response.release()
        return Answer(response, b"", is_whole=True)
    if length is not None and length <= WHOLE_BYTES_MAX:
        return Answer(response, await response.read(), is_whole=True)
    first = await response.content.readany()
    if not first and length:
        raise ClientConnectionError
    return Answer(response, first, is_whole=not first)
