"""How a control plane is to be served: where its state lies, and who can reach it.

Only this machine can, unless told otherwise; and then only over TLS, unless told that too.
"""

import ipaddress
import socket
import ssl
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tenfold.decide.detect.acceptance import AcceptanceRule
from tenfold.decide.detect.idle import IdleRule
from tenfold.decide.recover.lemons import CordonThresholds
from tenfold.journal.compaction import KEEP_DAYS
from tenfold.live.local.attempt.pruning import AttemptRetention
from tenfold.live.local.member.team_users import MOST, UidRange
from tenfold.model.errors import InputError, Refused
from tenfold.model.fleet.node import Node
from tenfold.model.policy.policy import Policy

PORT = 7410
BACKLOG = 2_048
KEEP_DAYS_MIN = 2
"""Requests may be asked again under their key for a day: the journal must know of them."""


class Settings(Struct, frozen=True, kw_only=True):
    """What `run` needs to know."""

    state_dir: Path
    nodes: tuple[Node, ...] = ()
    """Nodes that join where the journal does not know them yet."""
    policy: Policy = Policy()
    shadow: Policy | None = None
    """A policy that is asked too, and only written down."""
    host: str = "127.0.0.1"
    port: int = PORT
    """0 takes any port that is free."""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False
    """Whether others may reach it without TLS."""
    journal: str = ""
    """The URL of a database; empty means a file in the state folder."""
    kept: AttemptRetention = AttemptRetention()
    """How long the folders of attempts stay whose jobs are over, and how much of them."""
    blaming: CordonThresholds = CordonThresholds()
    """When a node is cordoned because jobs keep failing there."""
    acceptance: AcceptanceRule = AcceptanceRule()
    """How far below its pool a node may be."""
    tests_nodes: bool = False
    """Whether nodes are measured before they join."""
    idling: IdleRule = IdleRule()
    """When a job is said to idle."""
    reads_gpus: bool = False
    """Whether the GPUs of the nodes are those of this machine, and not only numbers."""
    team_users: Literal["auto", "on", "off"] = "auto"
    """Whether each team's jobs run as a user of its own; by itself, where that can be done."""
    team_uids: UidRange = UidRange()
    """The numbers that such users are given."""
    keep_days: float = KEEP_DAYS
    """Days that stay in the journal; older events move into bundles in the state folder."""

    @property
    def has_tls(self) -> bool:
        """Whether what is said is encrypted."""
        return self.tls_certificate is not None


def check(settings: Settings) -> None:
    """Raise where settings would tell tokens to whoever listens, or do not fit together."""
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise InputError(
            "tls-half",
            "a certificate and its key come together, and only one was given",
            "give both, or neither",
        )
    if not (settings.kept.days >= 0 and settings.kept.gib >= 0):
        raise InputError(
            "wrong-value",
            f"logs are to stay for {settings.kept.days:g} days and {settings.kept.gib:g} GiB",
            "give numbers that are not below 0",
            field="--keep-logs-days" if not settings.kept.days >= 0 else "--keep-logs-gib",
        )
    if not settings.keep_days >= KEEP_DAYS_MIN:
        raise InputError(
            "wrong-value",
            f"the journal keeps {KEEP_DAYS_MIN} days at least, and is to keep "
            f"{settings.keep_days:g}",
            "give more days; `tenfold journal compact` moves out more when it is asked to",
            field="--keep-days",
        )
    span = settings.team_uids
    if not 0 < span.first <= span.last <= MOST:
        raise InputError(
            "wrong-value",
            f"--team-uids is {span.first} to {span.last}, which no users can have",
            f"give a range like 2100000000-2100009999, from 1 to {MOST}",
            field="--team-uids",
        )
    for path in (settings.tls_certificate, settings.tls_key):
        if path is not None and not path.is_file():
            raise InputError(
                "no-such-file", f"there is no file `{path}`", "check the path", file=str(path)
            )
    if not (is_loopback(settings.host) or settings.has_tls or settings.insecure):
        raise Refused(
            "not-encrypted",
            f"`{settings.host}` can be reached from elsewhere, and tokens would pass in the clear",
            "give a certificate and a key, or say that this network may see them (--insecure)",
        )


def check_pair(settings: Settings) -> None:
    """Raise where certificate and key cannot be used, before anybody is told the address."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # A key under a password would make the server wait for somebody to type it.
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, password=lambda: "")
    except (OSError, ValueError) as error:
        raise InputError(
            "tls-unusable",
            f"`{settings.tls_certificate}` and `{settings.tls_key}` cannot be used: {error}",
            "give a certificate and its own key, both in PEM, the key without a password",
            file=str(settings.tls_certificate),
        ) from None


def is_loopback(host: str) -> bool:
    """Tell whether an address can be reached from this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(settings: Settings) -> socket.socket:
    """Return a socket that listens, so that whoever is told the address can connect."""
    try:
        found = socket.getaddrinfo(
            settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, address = found[0]
        bound = socket.socket(family, kind, protocol)
    except OSError as error:
        raise _cannot_listen(settings, error) from None
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(BACKLOG)
    except OSError as error:
        bound.close()
        raise _cannot_listen(settings, error) from None
    return bound


def url_of(settings: Settings, bound: socket.socket) -> str:
    """Return the address to ask at from this machine."""
    port: int = bound.getsockname()[1]
    stated = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    host = f"[{stated}]" if ":" in stated else stated
    return f"{'https' if settings.has_tls else 'http'}://{host}:{port}"


def _cannot_listen(settings: Settings, error: OSError) -> InputError:
    return InputError(
        "cannot-listen",
        f"`{settings.host}` port {settings.port} cannot be used: {error.strerror or error}",
        "another control plane may run already; else name another port",
    )
