"""Passes an answer on to the client, part by part, and counts its tokens on the way."""

import asyncio

from aiohttp import ClientError
from aiohttp.web import BaseRequest, Response, StreamResponse

from tenfold.gateway.admit.refusals import error_body
from tenfold.gateway.forward.call import Answer
from tenfold.gateway.forward.headers import REQUEST_ID, response_headers
from tenfold.gateway.forward.usage import NO_USAGE, EventStream, LineTooLong, Usage, usage_in
from tenfold.gateway.pool.admission import Admission
from tenfold.gateway.pool.grant import Grant

SERVER = "tenfold"
JSON = "application/json"


class Streams:
    """Answers under way; those that stand still for too long are ended."""

    def __init__(self) -> None:
        self._streams: dict[Relay, None] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def add(self, stream: "Relay") -> None:
        """Watch a stream until it is removed."""
        self._streams[stream] = None

    def remove(self, stream: "Relay") -> None:
        """Watch a stream no longer."""
        self._streams.pop(stream, None)

    def sweep(self, now_s: float) -> None:
        """End streams whose replica sends nothing."""
        for stream in list(self._streams):
            if now_s - stream.last_s > stream.idle_s:
                stream.expire()


class Relay:
    """One answer on its way from a target to a client."""

    __slots__ = (
        "_admission",
        "_answer",
        "_blocked_s",
        "_events",
        "_granted",
        "idle_s",
        "last_s",
    )

    def __init__(self, admission: Admission, granted: Grant, answer: Answer) -> None:
        self._admission = admission
        self._granted = granted
        self._answer = answer
        self._events = EventStream() if answer.is_events else None
        self.idle_s = admission.service.spec.idle_timeout_s
        self.last_s = 0.0
        self._blocked_s = 0.0
        """For which the client took nothing."""

    def expire(self) -> None:
        """Stop waiting for the target."""
        self._answer.response.close()

    async def send(self, request: BaseRequest, request_id: str, streams: Streams) -> StreamResponse:
        """Send the answer to the client; the grant has ended when this returns or raises."""
        answer = self._answer
        headers = response_headers(answer.headers)
        headers["Server"] = SERVER
        headers.setdefault(REQUEST_ID, request_id)
        if not answer.is_whole or request.method == "HEAD":
            length = answer.headers.get("Content-Length")
            if length is not None:
                headers["Content-Length"] = length
        now_s = asyncio.get_running_loop().time()
        if answer.status < 500:
            self._granted.answered(now_s)
        if answer.is_whole:
            self._end_whole(now_s)
            # The phrase of the status is the gateway's own: a replica's is free text.
            return Response(body=answer.first or None, status=answer.status, headers=headers)
        response = StreamResponse(status=answer.status, headers=headers)
        self.last_s = now_s
        streams.add(self)
        try:
            return await self._stream(request, response)
        except BaseException:
            self._granted.abandon(asyncio.get_running_loop().time())
            self._charge(NO_USAGE)
            answer.response.close()
            raise
        finally:
            streams.remove(self)

    async def _stream(self, request: BaseRequest, response: StreamResponse) -> StreamResponse:
        """Pass on parts as they come. What is raised here is the client's doing."""
        answer, events = self._answer, self._events
        loop = asyncio.get_running_loop()
        time, read, granted = loop.time, answer.response.content.readany, self._granted
        part = answer.first
        await response.prepare(request)
        write = response.write
        while part:
            if events is not None:
                try:
                    granted.progressed(self.last_s, events.feed(part))
                except LineTooLong:
                    return self._broken_off(request, response)
            await write(part)
            self._blocked_s += time() - self.last_s
            try:
                part = await read()
            except (ClientError, OSError):
                if events is not None and events.is_between_events:
                    await write(_last_event(self._admission.service.spec.name))
                return self._broken_off(request, response)
            self.last_s = time()
        usage = NO_USAGE if events is None else events.usage()
        self._end(time(), usage, failed=answer.status >= 500)
        return response

    def _broken_off(self, request: BaseRequest, response: StreamResponse) -> StreamResponse:
        """End an answer that the replica did not: the client sees that it is not complete."""
        self._answer.response.close()
        self._end(asyncio.get_running_loop().time(), NO_USAGE, failed=True)
        self._admission.service.failed += 1
        if request.transport is not None:
            request.transport.close()
        response.force_close()
        return response

    def _end_whole(self, now_s: float) -> None:
        answer = self._answer
        if self._events is not None:
            self._events.feed(answer.first)
            self._end(now_s, self._events.usage(), failed=answer.status >= 500)
            return
        is_json = answer.response.content_type == JSON and answer.status < 300
        usage = usage_in(answer.first) if is_json else NO_USAGE
        self._end(now_s, usage, failed=answer.status >= 500)

    def _end(self, now_s: float, usage: Usage, *, failed: bool) -> None:
        written = self._charge(usage)
        self._granted.end(
            now_s, usage.input_tokens, written, failed=failed, blocked_s=self._blocked_s
        )

    def _charge(self, usage: Usage) -> int:
        """Charge the team what was used; return the tokens of the answer."""
        events = 0 if self._events is None else self._events.events
        written = events if usage.output_tokens is None else usage.output_tokens
        read = usage.input_tokens
        ticket = self._admission.ticket
        self._admission.tokens_used = written + (ticket.input_tokens if read is None else read)
        return written


def _last_event(service: str) -> bytes:
    message = f"a replica of `{service}` stopped in the middle of the answer"
    return b"data: " + error_body("replica_interrupted", message) + b"\n\n"
