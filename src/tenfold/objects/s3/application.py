"""S3 as a whole: a request is named, authenticated, answered, and its errors become XML."""

import logging
from secrets import token_hex

from tenfold.model.errors import Unreachable
from tenfold.objects.s3.auth.identity import Caller
from tenfold.objects.s3.auth.payload import STREAMING_PREFIX, AwsChunks
from tenfold.objects.s3.auth.presigned_v2 import check_presigned_v2, is_presigned_v2
from tenfold.objects.s3.auth.sigv4 import UNSIGNED, Signature, check_header, check_presigned
from tenfold.objects.s3.call import Call, Dependencies
from tenfold.objects.s3.errors import S3Error, s3_error
from tenfold.objects.s3.http.answer import Answer, Request
from tenfold.objects.s3.http.body import Body
from tenfold.objects.s3.http.head import BadHead, Head
from tenfold.objects.s3.operations.cors import add_cors
from tenfold.objects.s3.routes import find_operation
from tenfold.objects.s3.uri import decode_text, parse_query
from tenfold.objects.s3.xml import DECLARATION, node, tag

_LOG = logging.getLogger("tenfold.objects")
_READS = ("GET", "HEAD", "OPTIONS")


class Application:
    """Answers requests; `Answer.code` and the log say what happened."""

    def __init__(self, deps: Dependencies) -> None:
        self.deps = deps
        self._prefix = token_hex(4)
        self._count = 0

    def request_of(self, head: Head, body: Body, peer: str) -> Request:
        """Give a request its id."""
        self._count += 1
        return Request(f"{self._prefix}{self._count:012x}", head, body, peer)

    async def answer(self, request: Request) -> Answer:
        """Answer a request; never raises."""
        try:
            call = Call(self.deps, request)
            call.query = parse_query(request.head.query)
            call.bucket_name, call.key = self._names(request.head)
            answer = await self._answer(call)
            if answer.stream is not None:
                await answer.stream.begin()
            return answer
        except Exception as raised:
            error = s3_error(raised)
            if error is None:
                _LOG.exception("request %s failed", request.id)
                error = S3Error("InternalError")
            elif isinstance(raised, Unreachable):
                _LOG.warning("request %s: %s", request.id, raised.message)
            return error_answer(error, request)

    def refusal(self, error: BadHead) -> Answer:
        """Answer what is no request."""
        return error_answer(S3Error(error.code, f"{error.message}."), None)

    async def _answer(self, call: Call) -> Answer:
        if "origin" not in call.headers or call.method == "OPTIONS":
            return await self._operate(call)
        try:
            answer = await self._operate(call)
        except Exception as raised:
            error = s3_error(raised)
            if error is None:
                raise
            # A page must be able to read why it was refused.
            answer = error_answer(error, call.request)
        add_cors(call, answer)
        return answer

    async def _operate(self, call: Call) -> Answer:
        _, operation = find_operation(call)
        if call.method != "OPTIONS":
            self._authenticate(call)
        return await operation(call)

    def _authenticate(self, call: Call) -> None:
        signature = self._signature(call)
        if signature is not None:
            call.signature = signature
            key = signature.key
            call.caller = Caller(key.team, key.id, key.is_read_only)
            if key.is_read_only and call.method not in _READS:
                raise S3Error("AccessDenied", "The access key is read-only.")
        payload = call.headers.get("x-amz-content-sha256", UNSIGNED)
        if payload.startswith(STREAMING_PREFIX):
            call.payload = AwsChunks(call.request.body, payload, signature)

    def _signature(self, call: Call) -> Signature | None:
        head = call.request.head
        keys, now_ms = self.deps.keys, call.now_ms
        if "X-Amz-Algorithm" in call.query:
            if "authorization" in head.headers:
                raise S3Error("InvalidArgument", "A request is signed in one place only.")
            return check_presigned(head, call.query, keys, now_ms)
        if "authorization" in head.headers:
            return check_header(head, keys, now_ms)
        if is_presigned_v2(call.query):
            host_bucket = self._host_bucket(head)
            return check_presigned_v2(head, call.query, host_bucket, keys, now_ms)
        return None

    def _names(self, head: Head) -> tuple[str, str]:
        """Return the bucket and the key, from the host and the path."""
        path = decode_text(head.path)
        if named := self._host_bucket(head):
            return named, path[1:]
        bucket, _, key = path[1:].partition("/")
        return bucket, key

    def _host_bucket(self, head: Head) -> str:
        """Return the bucket that the host names; empty if the path does."""
        host = head.headers.get("host", "").lower().partition(":")[0]
        for domain in self.deps.settings.domains:
            if host.endswith(f".{domain}"):
                return host.removesuffix(f".{domain}")
        return ""


def error_answer(error: S3Error, request: Request | None) -> Answer:
    """Return an error as S3 writes it."""
    is_bare = error.status == 304 or (request is not None and request.head.method == "HEAD")
    body = b""
    if not is_bare:
        body = (
            DECLARATION
            + node(
                "Error",
                tag("Code", error.code),
                tag("Message", error.message),
                tag("Resource", request.head.path if request is not None else ""),
                tag("RequestId", request.id if request is not None else ""),
                tag("HostId", "tenfold"),
            )
        ).encode("utf-8", "replace")
    headers = {"content-type": "application/xml", **error.headers}
    if error.status == 503:
        headers["retry-after"] = "1"
    return Answer(error.status, headers, body, code=error.code)
