"""The configuration of HAProxy: text, made from a plan and settings.

Names in it come from the routing state and consist of letters, digits, dots, dashes and
underscores; paths and headers are checked where the plan is made.
"""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from tenfold.gateway.admit.refusals import error_body
from tenfold.gateway.forward.headers import CREDENTIALS
from tenfold.gateway.haproxy.plan import PREFIX_BYTES, WITHOUT_TOKEN, HotService, Plan, Server

BUFFER_BYTES = 65_536
"""In which the model of a request is looked for, and from which it can be sent again."""
LEARN_PERCENT = 1
"""Requests that go through the gateway although HAProxy could serve them: from their answers it
learns how many tokens prompts and answers have, and how long the first byte takes."""
LEARN_PER_S = 5
"""Of those at most: what is learned depends on how many there are, not on their share. Each costs
as much as twenty that HAProxy answers."""
RANDOM = 1_000_000
FRONT = "clients"
PYTHON = "gateway"
SESSIONS = 100_000
_REMOVED = (
    *(*sorted(CREDENTIALS), "proxy-authorization", "forwarded", "x-forwarded-for"),
    *("x-forwarded-host", "x-forwarded-proto", "x-real-ip", "x-tenfold-service"),
)
_TWICE = r'"model"[[:space:]]*:[^\x01]*"model"[[:space:]]*:'
_ESCAPED = r"\\u00[4-7]"
"""A body with the key twice, or with letters that are escaped, as no encoder escapes them."""
_REQUEST_ID = "^[A-Za-z0-9._-]{1,128}$"


class HaproxySettings(Struct, frozen=True, kw_only=True):
    """What a configuration depends on besides the plan."""

    folder: Path
    """Only for the gateway's user: it holds the socket, the maps and the certificate."""
    listen: tuple[str, int]
    python: Path
    """The socket at which the gateway listens."""
    connections_max: int
    body_bytes_max: int
    drain_s: float
    certificate: Path | None = None
    threads: int = 1
    learn_percent: float = LEARN_PERCENT

    @property
    def models(self) -> Path:
        """The map of models."""
        return self.folder / "models.map"

    @property
    def callers(self) -> Path:
        """The map of callers."""
        return self.folder / "callers.map"


def backend_of(service: str) -> str:
    """Return the backend of a service; the prefix keeps it apart from the gateway's own."""
    return f"svc.{service}"


def config_text(plan: Plan, settings: HaproxySettings) -> str:
    """Return the whole configuration."""
    parts = [_global(settings), _defaults(), _frontend(plan.services, settings)]
    parts += [_backend(one) for one in plan.services]
    parts.append(
        f"backend {PYTHON}\n"
        "    timeout server 1d\n"
        "    retries 3\n"
        f"    server {PYTHON} unix@{settings.python}\n"
    )
    return "\n".join(parts)


def map_text(entries: dict[str, str]) -> str:
    """Return a map file."""
    return "".join(f"{key} {value}\n" for key, value in entries.items())


def server_words(server: Server) -> str:
    """Return the settings of a server, in a configuration and for the runtime API."""
    host = f"[{server.host}]" if ":" in server.host else server.host
    limit = f" maxconn {server.maxconn}" if server.maxconn else ""
    return f"{host}:{server.port} weight {server.weight}{limit}"


def _global(settings: HaproxySettings) -> str:
    return (
        "global\n"
        f"    maxconn {settings.connections_max}\n"
        f"    nbthread {settings.threads}\n"
        f"    stats socket {settings.folder / 'worker.sock'} mode 600 level admin "
        "expose-fd listeners\n"
        f"    hard-stop-after {max(1, round(settings.drain_s * 1_000))}ms\n"
        f"    tune.bufsize {BUFFER_BYTES}\n"
        "    ssl-default-bind-options ssl-min-ver TLSv1.2\n"
    )


def _defaults() -> str:
    errors = {
        502: ("replica_failed", "no replica answered"),
        503: ("replica_failed", "no replica could be reached"),
        504: ("replica_timeout", "the replica did not answer in time"),
    }
    lines = [
        "defaults",
        "    mode http",
        # Without it, HAProxy collects small chunks and delays streamed tokens.
        "    option http-no-delay",
        "    option http-buffer-request",
        "    option redispatch 1",
        "    timeout connect 5s",
        "    timeout client 600s",
        "    timeout http-request 120s",
        "    timeout http-keep-alive 75s",
        "    timeout queue 1s",
        # A request on a connection that the replica has just closed is sent again.
        "    http-reuse always",
        "    retry-on conn-failure empty-response",
    ]
    for status, (code, message) in errors.items():
        body = error_body(code, message).decode().replace("\\", "\\\\").replace('"', '\\"')
        lines.append(
            f'    http-error status {status} content-type application/json string "{body}"'
        )
    return "\n".join(lines) + "\n"


def _frontend(services: Sequence[HotService], settings: HaproxySettings) -> str:
    host, port = settings.listen
    host = f"[{host}]" if ":" in host else host
    tls = f" ssl crt {settings.certificate} alpn http/1.1" if settings.certificate else ""
    learn = round(settings.learn_percent * RANDOM / 100)
    # Beyond so many requests a second, a share of the share: the product is `LEARN_PER_S`.
    most = round(LEARN_PER_S * RANDOM / max(learn, 1))
    lines = [
        f"frontend {FRONT}",
        f"    bind {host}:{port}{tls}",
        # Whatever is unusual is the gateway's: it refuses it with a reason.
        "    acl is_plain path -m reg ^/v1/[A-Za-z0-9_/-]+$",
        "    acl is_odd path -m sub // ",
        "    acl is_odd req.hdr(x-tenfold-service) -m found",
        "    acl is_odd req.hdr(content-encoding) -m found",
        "    acl is_odd req.hdr(transfer-encoding) -m found",
        # A replica reads the last `model` of a body, HAProxy the first: it has to have seen all of
        # the body, and only one.
        "    http-request set-var(txn.seen) req.body_len",
        "    acl is_odd req.body_size,sub(txn.seen) gt 0",
        f"    acl is_odd req.body -m reg '{_TWICE}'",
        f"    acl is_odd req.body -m reg '{_ESCAPED}'",
        "    acl is_odd req.hdr_cnt(authorization) gt 1",
        f"    http-request set-var(txn.rate) fe_req_rate if {{ rand({RANDOM}) lt {learn} }}",
        "    http-request set-var(txn.learn) int(1) if { var(txn.rate) -m found } "
        f"{{ rand({RANDOM}),mod(txn.rate) lt {most} }}",
        "    http-request set-var(txn.model) req.body,json_query('$.model') "
        "if METH_POST is_plain !is_odd !{ var(txn.learn) -m found }",
        f"    http-request set-var(txn.service) var(txn.model),map_str({settings.models}) "
        "if { var(txn.model) -m found }",
        f"    http-request set-var(txn.digest) str({WITHOUT_TOKEN}) "
        "if { var(txn.service) -m found } !{ req.hdr(authorization) -m found }",
        "    http-request set-var(txn.digest) http_auth_bearer,sha2(256),hex,lower "
        "if { var(txn.service) -m found } { req.hdr(authorization) -m found }",
        "    http-request set-var(txn.caller) var(txn.digest),concat(/,txn.service) "
        "if { var(txn.digest) -m found }",
        f"    http-request set-var(txn.team) var(txn.caller),map_str({settings.callers}) "
        "if { var(txn.caller) -m found }",
    ]
    for one in services:
        backend = backend_of(one.name)
        paths = " ".join(one.paths)
        free = f" {{ be_conn_free({backend}) gt 0 }}" if one.has_slots else ""
        lines.append(
            f"    use_backend {backend} if {{ var(txn.team) -m found }} "
            f"{{ var(txn.service) -m str {one.name} }} {{ path_beg {paths} }} "
            f"{{ nbsrv({backend}) gt 0 }}{free}"
        )
    lines.append(f"    default_backend {PYTHON}")
    return "\n".join(lines) + "\n"


def _backend(service: HotService) -> str:
    lines = [f"backend {backend_of(service.name)}"]
    if service.balance == "prefix":
        lines += [
            # The beginning of a prompt stays on one replica up to a quarter above the mean load.
            f"    balance hash req.body,bytes(0,{PREFIX_BYTES})",
            "    hash-type consistent",
            "    hash-balance-factor 125",
        ]
    else:
        lines.append("    balance leastconn")
    if service.session_header:
        lines += [
            f"    stick-table type string len 128 size {SESSIONS} expire 30m",
            f"    http-request set-var(txn.sid) req.hdr({service.session_header})",
            # Sessions of different teams do not meet, even if their names do.
            "    http-request set-var(txn.session) var(txn.team),concat(/,txn.sid) "
            "if { var(txn.sid) -m found }",
            "    stick on var(txn.session)",
        ]
    lines += [
        f"    timeout server {round(service.timeout_s * 1_000)}ms",
        f"    retries {service.retries}",
        f"    http-request set-var(txn.id) req.hdr(x-request-id) "
        f"if {{ req.hdr(x-request-id) -m reg {_REQUEST_ID} }}",
        "    http-request set-var(txn.id) uuid() if !{ var(txn.id) -m found }",
        *(f"    http-request del-header {name}" for name in _REMOVED),
        "    http-request set-header X-Request-Id %[var(txn.id)]",
        "    http-request set-header Accept-Encoding identity",
        "    http-response set-header X-Request-Id %[var(txn.id)]",
        "    http-response set-header Server tenfold",
    ]
    for server, _ in service.servers:
        state = " weight 0" if server.is_draining else ""
        lines.append(f"    server {server.name} {server_words(server)}{state}")
    return "\n".join(lines) + "\n"
