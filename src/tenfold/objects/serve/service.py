"""The requests of one process: limits on them, counts of them, and their end."""

from tenfold.objects.s3.application import Application, error_answer
from tenfold.objects.s3.errors import S3Error
from tenfold.objects.s3.http.answer import Answer, Request
from tenfold.objects.s3.http.body import Body
from tenfold.objects.s3.http.connection import Connection, Timeouts
from tenfold.objects.s3.http.head import BadHead, Head
from tenfold.objects.s3.times import http_date
from tenfold.objects.serve.counts import Counts


class ObjectService:
    """What all connections of a process share."""

    def __init__(
        self, application: Application, counts: Counts, connections_max: int, requests_max: int
    ) -> None:
        self.timeouts = Timeouts()
        self.connections: set[Connection] = set()
        self.under_way = 0
        self.is_stopping = False
        self._application = application
        self._counts = counts
        self._connections_max = connections_max
        self._requests_max = requests_max
        self._now_ms = application.deps.now_ms

    def opened(self, connection: Connection) -> bool:
        """Take note of a connection; False to refuse it."""
        if len(self.connections) >= self._connections_max:
            self._counts.increase("refused_connections")
            return False
        self.connections.add(connection)
        return True

    def closed(self, connection: Connection) -> None:
        """Take note that a connection is gone."""
        self.connections.discard(connection)

    def request_of(self, head: Head, body: Body, peer: str) -> Request:
        """Give a request its id."""
        return self._application.request_of(head, body, peer)

    async def answer(self, request: Request) -> Answer:
        """Answer a request, unless too many are under way."""
        if self.under_way >= self._requests_max:
            self._counts.increase("slowed_requests")
            return error_answer(S3Error("SlowDown"), request)
        self.under_way += 1
        try:
            answer = await self._application.answer(request)
        except BaseException:
            self.under_way -= 1
            raise
        answer.closes = answer.closes or self.is_stopping
        return answer

    def refusal(self, error: BadHead) -> Answer:
        """Answer what is no request."""
        self._counts.increase("requests_4xx")
        return self._application.refusal(error)

    def fixed_headers(self, request_id: str) -> str:
        """Return the headers that every answer has."""
        return (
            f"server: tenfold\r\ndate: {http_date(self._now_ms() // 1000)}\r\n"
            f"x-amz-request-id: {request_id}\r\nx-amz-id-2: tenfold\r\n"
        )

    def sent(self, request: Request, answer: Answer, sent_bytes: int, seconds: float) -> None:
        """Take note of an answer that was sent."""
        counts = self._counts
        if answer.code != "SlowDown":
            self.under_way -= 1
        counts.increase("requests")
        counts.increase(f"requests_{answer.status // 100}xx")
        counts.increase("sent_bytes", sent_bytes)
        counts.increase("received_bytes", request.body.length or 0)
        counts.increase("request_microseconds", int(seconds * 1_000_000))

    def sweep(self, now_s: float) -> None:
        """Cut off clients that take too long."""
        for connection in list(self.connections):
            connection.sweep(now_s)
        self._counts.set("connections", len(self.connections))
        self._counts.set("requests_under_way", self.under_way)
