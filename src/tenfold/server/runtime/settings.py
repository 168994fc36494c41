"""Settings of a control plane: its state directory, its network address, and its limits.

By default only this machine can reach it. Other machines need TLS, unless `insecure` is set.
"""

import ipaddress
import re
import socket
import ssl
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tenfold.decide.detect.acceptance import AcceptanceRule
from tenfold.decide.detect.idle import IdleRule
from tenfold.decide.recover.lemons import CordonThresholds
from tenfold.files.policy.burst import BurstFile
from tenfold.files.sites import SiteEngine
from tenfold.journal.compaction import KEEP_DAYS
from tenfold.journal.leadership.lease import LEASE_MS
from tenfold.live.local.attempt.pruning import AttemptRetention
from tenfold.live.local.member.limits import PIDS_MOST
from tenfold.live.local.member.team_users import MOST, UidRange
from tenfold.live.slurm.executor.engine import SlurmOptions
from tenfold.model.errors import InputError, Refused
from tenfold.model.fleet.node import Node
from tenfold.model.policy.policy import Policy
from tenfold.server.background.objects_process import ObjectsSettings
from tenfold.server.runtime.budgets import Limits

PORT = 7410
BACKLOG = 2_048
KEEP_DAYS_MIN = 2
"""A request may be repeated with its idempotency key for a day, so the journal must cover that."""
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
LEASE_MS_MIN, LEASE_MS_MAX = 1_000, 60_000
"""A shorter lease would be lost to pauses of a busy machine."""
PIDS_MIN = 64
"""A container runtime alone needs a few dozen threads."""


class Settings(Struct, frozen=True, kw_only=True):
    """What `run` needs."""

    state_dir: Path
    nodes: tuple[Node, ...] = ()
    """Nodes that join if the journal does not know them yet."""
    policy: Policy = Policy()
    shadow: Policy | None = None
    """A policy whose decisions are logged and not carried out."""
    host: str = "127.0.0.1"
    port: int = PORT
    """0 picks a free port."""
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    insecure: bool = False
    """Whether other machines may connect without TLS."""
    journal: str = ""
    """A database URL; empty for a file in the state directory."""
    kept: AttemptRetention = AttemptRetention()
    """How long to keep the attempt folders of ended jobs, and how much of them."""
    blaming: CordonThresholds = CordonThresholds()
    """When a node is cordoned because jobs keep failing there."""
    acceptance: AcceptanceRule = AcceptanceRule()
    """How far below its pool a node may be."""
    tests_nodes: bool = False
    """Whether nodes are benchmarked before they join."""
    idling: IdleRule = IdleRule()
    """When a job counts as idle."""
    reads_gpus: bool = False
    """Whether the GPUs of the nodes are real ones of this machine, and not virtual."""
    team_users: Literal["auto", "on", "off"] = "auto"
    """Whether each team's jobs run as a separate user; `auto` where that is possible."""
    team_uids: UidRange = UidRange()
    """The UIDs of those users."""
    pids_most: int = PIDS_MOST
    """Processes and threads that a job may have at a time; 0 for no limit."""
    executor: Literal["local", "slurm", "ray"] = "local"
    """What runs the jobs."""
    sites: tuple[SiteEngine, ...] = ()
    """The engine of each site, in place of one executor for all."""
    slurm: SlurmOptions = SlurmOptions()
    ray_address: str = ""
    """The URL of a Ray head's dashboard."""
    unix_users: tuple[tuple[str, str], ...] = ()
    """Teams, and the Unix users that their jobs run as on another system; `*` is every team."""
    keep_days: float = KEEP_DAYS
    """Days to keep in the journal; older events are archived in bundle files in the state
    directory."""
    gateway: str = ""
    """Address and port where a gateway of this control plane listens; empty for none."""
    objects: ObjectsSettings | None = None
    """The object store that runs beside it; None for none."""
    gateway_admin: tuple[str, ...] = ()
    """Admin addresses of gateways, where they say their load."""
    limits: Limits = Limits()
    """What all clients together may use."""
    name: str = ""
    """Tells control planes apart that share a journal and a state directory."""
    lease_ms: int = LEASE_MS
    """How long a control plane leads without renewing; only in PostgreSQL."""
    burst: BurstFile | None = None
    """What may be rented for jobs that would be late; None for nothing."""
    requeues_running: bool = False
    """Whether jobs that ran on another machine are requeued, because that machine is gone."""

    @property
    def is_shared(self) -> bool:
        """Whether other control planes may share the journal."""
        return self.journal.startswith(("postgresql", "postgres:"))

    @property
    def has_tls(self) -> bool:
        """Whether connections use TLS."""
        return self.tls_certificate is not None


def check(settings: Settings) -> None:
    """Raise if settings would expose tokens on the network, or contradict each other."""
    if (settings.tls_certificate is None) != (settings.tls_key is None):
        raise InputError(
            "tls-half",
            "`--tls-cert` and `--tls-key` must be used together",
            "set both, or neither",
        )
    if not (settings.kept.days >= 0 and settings.kept.gib >= 0):
        raise InputError(
            "wrong-value",
            "`--keep-logs-days` and `--keep-logs-gib` must be at least 0",
            "use numbers that are not negative",
            field="--keep-logs-days" if not settings.kept.days >= 0 else "--keep-logs-gib",
        )
    if not settings.keep_days >= KEEP_DAYS_MIN:
        raise InputError(
            "wrong-value",
            f"`--keep-days` must be at least {KEEP_DAYS_MIN}, got {settings.keep_days:g}",
            "use a larger number; `tenfold journal compact` can move out more on demand",
            field="--keep-days",
        )
    if settings.pids_most and settings.pids_most < PIDS_MIN:
        raise InputError(
            "wrong-value",
            f"`--max-pids` must be at least {PIDS_MIN}, got {settings.pids_most}",
            "use a larger number, or 0 for no limit",
            field="--max-pids",
        )
    span = settings.team_uids
    if not 0 < span.first <= span.last <= MOST:
        raise InputError(
            "wrong-value",
            f"`--team-uids` must begin at 1 or above and end at {MOST} or below, "
            f"got {span.first}-{span.last}",
            "use a range like 2100000000-2100009999; UID 0 is root",
            field="--team-uids",
        )
    _check_sharing(settings)
    for path in (settings.tls_certificate, settings.tls_key):
        if path is not None and not path.is_file():
            raise InputError(
                "no-such-file", f"no such file: `{path}`", "check the path", file=str(path)
            )
    if not (is_loopback(settings.host) or settings.has_tls or settings.insecure):
        raise Refused(
            "not-encrypted",
            f"`{settings.host}` is reachable from other machines: tokens would be sent unencrypted",
            "set `--tls-cert` and `--tls-key`, or allow it with `--insecure`",
        )


def _check_sharing(settings: Settings) -> None:
    if settings.name and not settings.is_shared:
        raise Refused(
            "journal-not-shared",
            f"control plane `{settings.name}` cannot share a journal that is a file",
            "use a PostgreSQL journal (`--journal postgresql://...`), or leave out `--name`",
        )
    if settings.name and not NAME.fullmatch(settings.name):
        raise InputError(
            "wrong-value",
            f"`--name` must be of lower-case letters, digits and dashes, got `{settings.name}`",
            "use a short name, like `b`",
            field="--name",
        )
    if not LEASE_MS_MIN <= settings.lease_ms <= LEASE_MS_MAX:
        raise InputError(
            "wrong-value",
            f"`--lease` must be from {LEASE_MS_MIN // 1_000} to {LEASE_MS_MAX // 1_000} s, "
            f"got {settings.lease_ms / 1_000:g} s",
            "a standby takes over within about this time after a leader stalls",
            field="--lease",
        )


def check_pair(settings: Settings) -> None:
    """Raise if the certificate and key cannot be loaded, before the address is announced."""
    if settings.tls_certificate is None or settings.tls_key is None:
        return
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        # A key with a password would make the server wait for input.
        context.load_cert_chain(settings.tls_certificate, settings.tls_key, password=lambda: "")
    except (OSError, ValueError) as error:
        raise InputError(
            "tls-unusable",
            f"cannot use `{settings.tls_certificate}` with `{settings.tls_key}`: {error}",
            "use a certificate and its own key, both in PEM, the key without a password",
            file=str(settings.tls_certificate),
        ) from None


def is_loopback(host: str) -> bool:
    """Tell whether an address is reachable from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(settings: Settings) -> socket.socket:
    """Return a listening socket, so that clients can connect as soon as they know the address."""
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
    """Return the URL for clients on this machine."""
    port: int = bound.getsockname()[1]
    stated = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(settings.host, settings.host)
    host = f"[{stated}]" if ":" in stated else stated
    return f"{'https' if settings.has_tls else 'http'}://{host}:{port}"


def _cannot_listen(settings: Settings, error: OSError) -> InputError:
    return InputError(
        "cannot-listen",
        f"cannot listen on `{settings.host}` port {settings.port}: {error.strerror or error}",
        "another control plane may be running; use it, or choose another port with `--listen`",
    )
