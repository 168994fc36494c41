"""Serve a control plane on this machine until it is told to stop.

HTTP runs in the main thread, the loop in another. Stopping ends both and no job: supervisors
outlive the control plane, and the next one takes them over.
"""

import logging
import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from socket import gethostname
from types import FrameType

import uvicorn
from litestar import Litestar
from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from tenfold.client.place import Address
from tenfold.clock.wall import now_ms
from tenfold.compose.acceptance import node_tester_of
from tenfold.journal.read import counts
from tenfold.journal.store import reason_of
from tenfold.journal.usable import check_usable
from tenfold.live.gpu_use import gpu_reader
from tenfold.live.local.executor import LocalExecutor
from tenfold.live.local.member.team_users import TeamUsers
from tenfold.live.local.node_test import COMMAND
from tenfold.live.local.usage import LocalProbe
from tenfold.model.errors import TenfoldError, Unreachable
from tenfold.model.reason import Reason
from tenfold.server.app import make_app
from tenfold.server.auth.team_isolation import teams_apart
from tenfold.server.auth.tokens import Role, Tokens
from tenfold.server.background.pruning import Pruning
from tenfold.server.background.retention import Keeping
from tenfold.server.metrics.traces import traces_here
from tenfold.server.runtime.connections import IDLE_S, Guarded, GuardedServer, connections_most
from tenfold.server.runtime.limiter import Streams, streams_most
from tenfold.server.runtime.logs import log_to
from tenfold.server.runtime.runtime import Fittings, Serving
from tenfold.server.runtime.settings import BACKLOG, Settings, check, check_pair, listen, url_of
from tenfold.server.runtime.state_dir import LocalLogs, StateFolder, saved_in

GRACE_S = 5
"""From the signal to the end of requests that still run."""
BEGIN_S = 3.0
"""How long the loop may take to begin before its absence is said: events are read, jobs found."""
ADMIN = "admin"
LOCAL = "this-machine"
"""The name of the token that commands on this machine use; a new one at each start."""
DAYS = 365
ALIVE = ("starting", "running", "stopping")
_LOG = logging.getLogger("tenfold.server")


class Started(Struct, frozen=True, kw_only=True):
    """What is said once requests are answered."""

    url: str
    home: str
    admin_token: str | None
    """Shown at the first start, and where no admin is left; never again."""
    teams: str = ""
    """As whom the jobs of teams run."""
    trouble: Reason | None = None
    """What keeps it from taking work; it tries again, and answers questions meanwhile."""


class Stopped(Struct, frozen=True, kw_only=True):
    """What is said at the end."""

    jobs_alive: int | None
    """Jobs that go on without the control plane; None where the journal could not say."""


def run(settings: Settings, on_start: Callable[[Started], None]) -> Stopped:
    """Serve until SIGINT or SIGTERM; return what goes on."""
    check(settings)
    check_pair(settings)
    folder = StateFolder(settings.home)
    folder.prepare()
    os.umask(0o077)
    log_to(folder.log)
    with listen(settings) as bound:
        apart = teams_apart(settings, folder)
        serving = Serving(_fittings(settings, folder, apart.users))
        try:
            tokens, url = serving.control.tokens, url_of(settings, bound)
            check_usable(serving.store)
            with _said_plainly():
                admin = first_admin(tokens)
                local = _local_token(tokens)
            serving.start(settings.nodes, tests_nodes=settings.tests_nodes)
            config = _config(settings, make_app(serving.control))
            server = _Server(config, connections_most(), serving.close_streams)
            folder.tell(Address(url=url, token=local, pid=os.getpid()))
            _LOG.info("serving at %s", url)
            told = Started(
                url=url,
                home=str(folder.path),
                admin_token=admin,
                teams=apart.says,
                trouble=serving.begun(BEGIN_S),
            )
            on_start(told)
            server.run(sockets=[bound])
            return Stopped(jobs_alive=_alive(serving))
        finally:
            folder.forget()
            with suppress(TenfoldError, OSError, SQLAlchemyError):
                _end_local(serving.control.tokens)
            serving.stop()
            _LOG.info("stopped")


def first_admin(tokens: Tokens) -> str | None:
    """Return a new token for an admin where there is none that holds; else None."""
    now_ms = tokens.now_ms()
    for one in tokens.all():
        holds = one.revoked_ms is None and one.expires_ms > now_ms
        if holds and one.role is Role.admin and one.name != LOCAL:
            return None
    return tokens.create(name=ADMIN, team=ADMIN, role=Role.admin, days=DAYS)[0]


def _local_token(tokens: Tokens) -> str:
    """Return a token for commands of this user on this machine; those of before end."""
    _end_local(tokens)
    return tokens.create(name=LOCAL, team=ADMIN, role=Role.admin, days=DAYS)[0]


def _end_local(tokens: Tokens) -> None:
    for one in tokens.all():
        if one.name == LOCAL and one.revoked_ms is None:
            tokens.revoke(one.id)


@contextmanager
def _said_plainly() -> Generator[None, None, None]:
    """Say in one sentence that the disk is full: nothing has begun that could go on with it."""
    try:
        yield
    except SQLAlchemyError as error:
        raise Unreachable(
            "journal-unwritable",
            f"the journal took nothing: {reason_of(error)}",
            "free the disk or bring back the database; jobs that run go on meanwhile",
        ) from None


def _fittings(settings: Settings, folder: StateFolder, users: TeamUsers | None) -> Fittings:
    return Fittings(
        journal=settings.journal or str(folder.journal),
        executor=lambda: LocalExecutor(str(folder.run), users=users),
        logs=LocalLogs(folder.run),
        saved_at=saved_in(folder.run),
        policy=settings.policy,
        shadow=settings.shadow,
        shadow_log=folder.shadow,
        blaming=settings.blaming,
        probe=lambda: LocalProbe(str(folder.run), gpu_reader() if settings.asks_gpus else None),
        idling=settings.idling,
        gpus_on=settings.nodes[0].id if settings.asks_gpus and settings.nodes else "",
        pruning=lambda store: Pruning(folder.run, settings.kept, store, now_ms),
        node_tester=node_tester_of(settings.acceptance, COMMAND),
        traces=traces_here(),
        number_least=folder.last_number() + 1,
        streams=Streams(streams_most(connections_most())),
        keeping=Keeping(folder=folder.history, days=settings.keep_days),
        holder=f"{gethostname()}:{os.getpid()}",
    )


def _config(settings: Settings, app: Litestar) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=Guarded,
        backlog=BACKLOG,
        timeout_keep_alive=IDLE_S,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=GRACE_S,
        ssl_certfile=settings.tls_certificate,
        ssl_keyfile=settings.tls_key,
    )


def _alive(serving: Serving) -> int | None:
    with suppress(TenfoldError):
        told = counts(serving.store)
        return sum(told.get(state, 0) for state in ALIVE)
    return None


class _Server(GuardedServer):
    """Ends its streams with the signal, and lets the program go on after it."""

    def __init__(
        self, config: uvicorn.Config, most: int, close_streams: Callable[[], None]
    ) -> None:
        super().__init__(config, most)
        self._close_streams = close_streams

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Take the signals while serving; the program itself must still tidy up after them."""
        taken = (signal.SIGINT, signal.SIGTERM)
        before = {one: signal.signal(one, self.handle_exit) for one in taken}
        try:
            yield
        finally:
            for one, handler in before.items():
                signal.signal(one, handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to stop."""
        self._close_streams()
        super().handle_exit(sig, frame)
