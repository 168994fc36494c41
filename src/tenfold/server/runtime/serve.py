"""Serve a control plane on this machine until it is stopped.

HTTP runs in the main thread, the loop in another. Stopping ends both but no job: supervisors
outlive the control plane, and the next one takes them over.
"""

import logging
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from getpass import getuser
from socket import gethostname
from types import FrameType

import uvicorn
from litestar import Litestar
from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy.exc import SQLAlchemyError

from tenfold import __version__
from tenfold.client.endpoint import Address, read_address
from tenfold.clock.wall import now_ms
from tenfold.compose.node_rules import node_tester_of
from tenfold.journal.leadership.lease import Claim
from tenfold.journal.read import counts
from tenfold.journal.store import reason_of
from tenfold.journal.usable import check_usable
from tenfold.live.gpu_use import gpu_reader
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.node_test import COMMAND
from tenfold.live.local.processes import boot
from tenfold.live.local.usage import LocalProbe
from tenfold.live.sites.folders import all_homes
from tenfold.model.errors import TenfoldError, Unreachable
from tenfold.model.reason import Reason
from tenfold.server.app import make_app
from tenfold.server.auth.tokens import Role, Tokens
from tenfold.server.background.heap_trimming import limit_heap, spare_the_collector
from tenfold.server.background.pruning import AttemptPruner
from tenfold.server.background.retention import RetentionSettings
from tenfold.server.background.services.ports import is_free_anywhere, is_free_here
from tenfold.server.metrics.traces import traces_from_environment
from tenfold.server.runtime.admission import Budgets
from tenfold.server.runtime.budgets import Limits
from tenfold.server.runtime.connections.connection import (
    IDLE_S,
    GuardedConnection,
    max_connections,
)
from tenfold.server.runtime.connections.server import GuardedServer
from tenfold.server.runtime.executors import ChosenExecutor, choose_executor
from tenfold.server.runtime.leadership import STANDBY, Sharing
from tenfold.server.runtime.limiter import max_streams
from tenfold.server.runtime.logs import log_to
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from tenfold.server.runtime.settings import BACKLOG, Settings, check, check_pair, listen, url_of
from tenfold.server.runtime.state_dir import (
    LocalLogs,
    StateDir,
    check_folders,
    program_check,
    saved_in,
    workdir_in,
)

GRACE_S = 5
"""From the signal to the end of requests in progress."""
BEGIN_S = 3.0
"""How long the loop may take to start before a warning: it reads events and finds its jobs."""
ADMIN = "admin"
DEFAULT_NAME = "main"
"""How a control plane without a name is shown."""
NAME_MAX = 80
LOCAL_BEFORE = "this-machine"
"""The name of the local token in earlier versions."""
DAYS = 365
ALIVE = ("starting", "running", "stopping")
_LOG = logging.getLogger("tenfold.server")


class Started(Struct, frozen=True, kw_only=True):
    """What to show once the server answers."""

    url: str
    state_dir: str
    admin_token: str | None
    """Shown at the first start, or if no admin token is left; never again."""
    teams: str = ""
    """Which users the jobs of teams run as."""
    memory_scope: str = ""
    """Whether memory limits are those of a `job` or of each `process`; empty if unknown."""
    trouble: Reason | None = None
    """Why it does not accept jobs yet; it keeps trying, and read requests already work."""
    is_standby: bool = False
    """Whether another control plane is the leader."""
    leader_url: str = ""


class Stopped(Struct, frozen=True, kw_only=True):
    """What to show at the end."""

    jobs_alive: int | None
    """Jobs that keep running without the control plane; None if the journal could not be read."""


def run(settings: Settings, on_start: Callable[[Started], None]) -> Stopped:
    """Serve until SIGINT or SIGTERM; return what keeps running."""
    check(settings)
    check_pair(settings)
    folder = StateDir(settings.state_dir, settings.name)
    folder.check_journal(settings.journal)
    folder.prepare()
    os.umask(0o077)
    limit_heap()
    log_to(folder.log)
    with listen(settings) as bound:
        executor = choose_executor(settings, folder)
        runtime = Runtime(_deps(settings, folder, executor))
        address = _AddressFile(folder, runtime, url_of(settings, bound))
        try:
            check_usable(runtime.store)
            runtime.check_head()
            if runtime.leadership is None:
                with _clear_disk_errors():
                    address.write()
            runtime.start(settings.nodes, tests_nodes=settings.tests_nodes)
            config = _config(settings, make_app(runtime.control))
            server = _Server(config, runtime.budgets, runtime.begin_stop)
            _LOG.info("serving at %s", address.url)
            trouble = runtime.wait_until_ready(BEGIN_S)
            on_start(
                Started(
                    url=address.url,
                    state_dir=str(folder.path),
                    admin_token=address.admin_token(),
                    teams=executor.teams,
                    memory_scope=executor.memory_scope(),
                    trouble=trouble,
                    is_standby=trouble is not None and trouble.code == STANDBY,
                    leader_url="" if runtime.leadership is None else runtime.leadership.leader_url,
                )
            )
            spare_the_collector()
            server.run(sockets=[bound])
            return Stopped(jobs_alive=_alive(runtime))
        finally:
            if runtime.leadership is None:
                address.end()
            runtime.stop()
            _LOG.info("stopped")


class _AddressFile:
    """Where commands on this machine find the control plane that leads, and their token."""

    def __init__(self, folder: StateDir, runtime: Runtime, url: str) -> None:
        self.url = runtime.url = url
        self._folder, self._runtime = folder, runtime
        self._admin: str | None = None
        self._is_admin_shown = False
        if runtime.leadership is not None:
            runtime.on_lead, runtime.last_words = self.write, self.end
            runtime.leadership.on_others = self._write_address
        self._token = ""

    def write(self) -> None:
        """Write it, with a token; at the first start also create an admin token."""
        tokens = self._runtime.control.tokens
        if not self._is_admin_shown:
            self._admin = self._admin or first_admin(tokens)
        self._token = self._token_kept() or _local_token(tokens)
        self._write_address()

    def admin_token(self) -> str | None:
        """Return the admin token, to be shown; none is created after that."""
        self._is_admin_shown = True
        return self._admin

    def end(self) -> None:
        """Remove it and revoke its token, unless another control plane uses them."""
        lead = self._runtime.leadership
        if lead is not None and lead.still_has_others():
            return
        self._folder.remove_address()
        with suppress(TenfoldError, OSError, SQLAlchemyError):
            _end_local(self._runtime.control.tokens)

    def _token_kept(self) -> str:
        """Return the token of the leader before, so that commands go on while another one leads."""
        before = None if self._runtime.leadership is None else read_address(self._folder.path)
        if before is None:
            return ""
        tokens = self._runtime.control.tokens
        found = tokens.find(before.token)
        is_valid = found is not None and found.revoked_ms is None and not tokens.has_ended(found)
        return before.token if found is not None and is_valid and is_local(found.name) else ""

    def _write_address(self) -> None:
        lead, pid = self._runtime.leadership, os.getpid()
        waits_s = 0.0 if lead is None or not lead.has_others() else lead.failover_s
        address = Address(url=self.url, token=self._token, pid=pid, failover_s=waits_s)
        self._folder.write_address(address)


def first_admin(tokens: Tokens) -> str | None:
    """Return a new admin token if no valid one is left; otherwise None."""
    now_ms = tokens.now_ms()
    for one in tokens.all():
        holds = one.revoked_ms is None and one.expires_ms > now_ms
        if holds and one.role is Role.admin and not is_local(one.name):
            return None
    return tokens.create(name=ADMIN, team=ADMIN, role=Role.admin, days=DAYS)[0]


def local_name() -> str:
    """Return who runs commands on this machine, as in `ops@login-1`; it is shown with changes."""
    try:
        user = getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{gethostname()}"[:NAME_MAX]


def is_local(name: str) -> bool:
    """Tell whether a token is the local one; names of other tokens have no `@`."""
    return "@" in name or name == LOCAL_BEFORE


def _local_token(tokens: Tokens) -> str:
    """Return a token for commands of this user on this machine; earlier ones are revoked."""
    _end_local(tokens)
    return tokens.create(name=local_name(), team=ADMIN, role=Role.admin, days=DAYS)[0]


def _end_local(tokens: Tokens) -> None:
    for one in tokens.all():
        if is_local(one.name) and one.revoked_ms is None:
            tokens.revoke(one.id)


@contextmanager
def _clear_disk_errors() -> Generator[None, None, None]:
    """Turn a full disk at startup into one clear error."""
    try:
        yield
    except SQLAlchemyError as error:
        raise Unreachable(
            "journal-unwritable",
            f"cannot write to the journal: {reason_of(error)}",
            "free some disk space or bring back the database; running jobs are not affected",
        ) from None


def _deps(settings: Settings, folder: StateDir, executor: ChosenExecutor) -> ServerDeps:
    users, reads_gpus = executor.users, settings.reads_gpus

    def probe() -> LocalProbe:
        return LocalProbe(str(folder.run), gpu_reader() if reads_gpus else None)

    return ServerDeps(
        journal=settings.journal or str(folder.journal),
        executor=executor.make,
        logs=LocalLogs(folder.run),
        saved_at=saved_in(folder.run, users),
        workdir=workdir_in(folder.run),
        memory_scope=executor.memory_scope,
        machine=boot(),
        folder_check=check_folders(users),
        program_check=program_check(users),
        open_shell=executor.open_shell,
        policy=settings.policy,
        shadow=settings.shadow,
        shadow_log=folder.shadow,
        blaming=settings.blaming,
        probe=probe if executor.is_local else None,
        idling=settings.idling,
        gpus_on=settings.nodes[0].id if reads_gpus and settings.nodes else "",
        pruning=lambda store: AttemptPruner(folder.run, settings.kept, store, now_ms),
        node_tester=node_tester_of(settings.acceptance, COMMAND),
        traces=traces_from_environment(),
        number_least=folder.last_number() + 1,
        limits=limits_within_files(settings.limits),
        retention=RetentionSettings(folder=folder.history, days=settings.keep_days),
        state_dir=folder.path,
        gateways=settings.gateway_admin,
        gateway=settings.gateway,
        burst=settings.burst,
        objects=settings.objects,
        host_of=executor.host_of,
        is_port_free=is_free_here if executor.is_local else is_free_anywhere,
        holder=f"{gethostname()}:{os.getpid()}",
        sharing=_sharing(settings, folder) if settings.is_shared else None,
        note_nodes=folder.note_nodes,
        epoch_least=lambda: max(ExecutorDir(one).fence() for one in all_homes(str(folder.run))) + 1,
    )


def _sharing(settings: Settings, folder: StateDir) -> Sharing:
    """Return how a control plane shares its journal: by its state directory and its name."""
    identity = folder.identity()
    # Attempts of an external system outlive this machine, and are found from another one.
    kinds = dict.fromkeys(one.engine for one in settings.sites) or {settings.executor: None}
    place = gethostname() if "local" in kinds else "+".join(kinds)
    claim = Claim(
        control_plane=f"{identity}/{settings.name}",
        executor=f"local-{identity} {place}:{folder.run}",
        lease_ms=settings.lease_ms,
        requeues=settings.requeues_running,
    )
    return Sharing(
        claim=claim,
        name=settings.name or DEFAULT_NAME,
        version=__version__,
        is_dead=folder.is_dead,
    )


def limits_within_files(limits: Limits) -> Limits:
    """Return limits that fit the open file limit of this process."""
    connections = min(limits.connections or max_connections(), max_connections())
    streams = max_streams(connections, limits.streams)
    return replace(limits, connections=connections, streams=streams)


def _config(settings: Settings, app: Litestar) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=GuardedConnection,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_S,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )


def _alive(runtime: Runtime) -> int | None:
    with suppress(TenfoldError):
        jobs = counts(runtime.store)
        return sum(jobs.get(state, 0) for state in ALIVE)
    return None


class _Server(GuardedServer):
    """Ends its streams on the signal, and lets the program clean up after it."""

    def __init__(
        self, config: uvicorn.Config, budgets: Budgets, begin_stop: Callable[[], None]
    ) -> None:
        super().__init__(config, budgets.limits.connections, budgets)
        self._begin_stop = begin_stop

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle the signals while serving; the program must still clean up afterwards."""
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {one: signal.signal(one, self.handle_exit) for one in signals}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to stop."""
        self._begin_stop()
        super().handle_exit(sig, frame)
