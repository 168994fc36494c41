"""Options of `tenfold up`: retention, node health, idle jobs, team users, and shared journals."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter, validators

from tenfold.cli.quantities import parse_duration
from tenfold.model.errors import InputError

if TYPE_CHECKING:
    from tenfold.files.policy.burst import BurstFile
    from tenfold.server.runtime.settings import Settings

LimitPairs = Annotated[
    tuple[str, ...],
    Parameter(
        negative="",
        help="Limit on client connections, requests or streams, as NAME=NUMBER; repeatable"
        " (names: see the HTTP API reference)",
    ),
]
KeepDays = Annotated[
    float,
    Parameter(
        help="Days of events to keep in the journal; older events are archived in bundle files "
        "(default: 30)"
    ),
]
KeepLogsDays = Annotated[float, Parameter(help="Days to keep the logs of ended jobs (default: 14)")]
KeepLogsGib = Annotated[
    float,
    Parameter(
        help="Maximum size of finished jobs' logs, in GiB; oldest deleted first (default: 20)"
    ),
]
MaxPids = Annotated[
    int,
    Parameter(help="Maximum processes and threads per job; 0 for no limit (default: 16384)"),
]
BlameShare = Annotated[
    float,
    Parameter(
        help="Maximum share of nodes to cordon automatically after repeated job"
        " failures; 0 disables it (default: 0.1)"
    ),
]
Acceptance = Annotated[
    bool | None,
    Parameter(
        negative="--no-acceptance",
        help="Benchmark new nodes and reject slow ones (default: on for real nodes, off for "
        "virtual nodes)",
    ),
]
AcceptanceBand = Annotated[
    float,
    Parameter(
        help="Reject nodes that are slower than the pool median by more than "
        "this share (default: 0.2)"
    ),
]
IdleAfter = Annotated[
    str,
    Parameter(
        help="Mark a job as idle after this long without GPU use; 0 disables it (default: 15m)"
    ),
]
IdleBelow = Annotated[
    float,
    Parameter(help="GPU utilisation, in percent, below which a GPU counts as unused (default: 5)"),
]
TeamUsers = Annotated[
    Literal["auto", "on", "off"],
    Parameter(
        help="Run each team's jobs as a separate Unix user; auto: only if "
        "started as root (default: auto)"
    ),
]
ExecutorName = Annotated[
    Literal["local", "slurm", "ray"],
    Parameter(help="What runs the jobs: this machine, Slurm or Ray (default: local)"),
]
RayAddress = Annotated[
    str, Parameter(help="URL of the Ray head's dashboard (default: http://127.0.0.1:8265)")
]
Sites = Annotated[
    Path | None,
    Parameter(
        help="Sites file: the engine of each site in the fleet file (local, slurm or ray), instead"
        " of --executor"
    ),
]
SlurmPartition = Annotated[str, Parameter(help="Slurm partition to submit jobs to")]
SlurmAccount = Annotated[str, Parameter(help="Slurm account to submit jobs under")]
SlurmQos = Annotated[str, Parameter(help="Slurm QOS to submit jobs with")]
SlurmUser = Annotated[
    tuple[str, ...],
    Parameter(
        negative="",
        help="Unix user that a team's jobs run as in Slurm, as TEAM=USER (root only); repeatable,"
        " `*` matches all other teams",
    ),
]
TeamUids = Annotated[
    str,
    Parameter(help="UID range for team users (default: 2100000000-2100009999)"),
]


Burst = Annotated[
    Path | None,
    Parameter(
        help="Burst file: rent cloud nodes for jobs that would miss their deadline, within a "
        "budget; renting is simulated "
        "(default: never)"
    ),
]
Gateway = Annotated[
    str,
    Parameter(
        help="Also run the service gateway on this address and port; port 0 selects a free port"
    ),
]
GatewayAdmin = Annotated[
    tuple[str, ...],
    Parameter(
        negative="",
        help="Admin URL of a gateway whose load is used to autoscale services; repeatable",
    ),
]
Objects = Annotated[
    Path | None,
    Parameter(help="Also run an object store (S3) in this directory; access keys are per team"),
]
ObjectsListen = Annotated[
    str,
    Parameter(
        help="Address and port of the object store; port 0 selects a free port"
        " (default: 127.0.0.1:9000)"
    ),
]
ObjectsProcesses = Annotated[
    int,
    Parameter(
        help="Number of object store processes (default: 1)",
        validator=validators.Number(gte=1, lte=256),
    ),
]
Name = Annotated[
    str,
    Parameter(
        help="Name of this control plane, if several share a PostgreSQL journal and a state "
        "directory"
    ),
]
Lease = Annotated[
    str,
    Parameter(
        help="With PostgreSQL: a standby takes over if the leader is unresponsive for this long"
        " (default: 4s)"
    ),
]
RequeueRunning = Annotated[
    bool,
    Parameter(
        negative="",
        help="Requeue jobs that were running on a previous control-plane host that is gone",
    ),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OperationOptions:
    """How long data is kept, and when nodes and jobs are flagged."""

    keep_days: KeepDays = 30
    keep_logs_days: KeepLogsDays = 14
    keep_logs_gib: KeepLogsGib = 20
    max_pids: MaxPids = 16_384
    blame_share: BlameShare = 0.1
    acceptance: Acceptance = None
    acceptance_band: AcceptanceBand = 0.2
    idle_after: IdleAfter = "15m"
    idle_below: IdleBelow = 5
    limit: LimitPairs = ()
    burst: Burst = None

    def applied(self, settings: "Settings", *, is_virtual: bool) -> "Settings":
        """Return settings with these options; virtual nodes are not benchmarked by default."""
        # These imports are slow, and errors in the options should come first.
        from msgspec.structs import replace  # noqa: PLC0415

        from tenfold.decide.detect.acceptance import acceptance_rule  # noqa: PLC0415
        from tenfold.decide.detect.idle import idle_rule_of  # noqa: PLC0415
        from tenfold.decide.recover.lemons import blame_rule  # noqa: PLC0415
        from tenfold.live.local.attempt.pruning import AttemptRetention  # noqa: PLC0415
        from tenfold.server.runtime.budgets import limits_of  # noqa: PLC0415

        return replace(
            settings,
            keep_days=self.keep_days,
            kept=AttemptRetention(days=self.keep_logs_days, gib=self.keep_logs_gib),
            pids_most=self.max_pids,
            blaming=blame_rule(self.blame_share),
            acceptance=acceptance_rule(self.acceptance_band),
            idling=idle_rule_of(_idle_s(self.idle_after), self.idle_below),
            reads_gpus=not is_virtual,
            limits=limits_of(self.limit),
            burst=None if self.burst is None else _burst(self.burst),
            tests_nodes=not is_virtual if self.acceptance is None else self.acceptance,
        )


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TeamUserOptions:
    """The Unix users that teams' jobs run as."""

    team_users: TeamUsers = "auto"
    team_uids: TeamUids = ""

    def applied(self, settings: "Settings") -> "Settings":
        """Return settings with these options."""
        from msgspec.structs import replace  # noqa: PLC0415 - errors come first

        from tenfold.live.local.member.team_users import UidRange  # noqa: PLC0415

        uids = UidRange()
        if self.team_uids:
            first, dash, last = self.team_uids.partition("-")
            if not (dash and first.isdecimal() and last.isdecimal()):
                raise InputError(
                    "wrong-value",
                    f"`--team-uids` must be a range of UIDs, got `{self.team_uids}`",
                    "write it like 2100000000-2100009999",
                    field="--team-uids",
                )
            uids = UidRange(int(first), int(last))
        return replace(settings, team_users=self.team_users, team_uids=uids)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class SharingOptions:
    """How several control planes share a journal."""

    name: Name = ""
    lease: Lease = "4s"
    requeue_running: RequeueRunning = False

    def applied(self, settings: "Settings") -> "Settings":
        """Return settings with these options."""
        from msgspec.structs import replace  # noqa: PLC0415 - errors come first

        return replace(
            settings,
            name=self.name,
            lease_ms=round(parse_duration(self.lease, "--lease") * 1_000),
            requeues_running=self.requeue_running,
        )


def _burst(path: Path) -> "BurstFile":
    from tenfold.compose.fleet import load_facts  # noqa: PLC0415
    from tenfold.files.policy.burst import read_burst  # noqa: PLC0415

    return read_burst(path, load_facts().accelerators)


def _idle_s(text: str) -> float:
    return 0.0 if text.strip() == "0" else parse_duration(text, "--idle-after")


RAY_ADDRESS = "http://127.0.0.1:8265"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ExecutorOptions:
    """What runs the jobs."""

    executor: ExecutorName = "local"
    slurm_partition: SlurmPartition = ""
    slurm_account: SlurmAccount = ""
    slurm_qos: SlurmQos = ""
    slurm_user: SlurmUser = ()
    ray_address: RayAddress = ""
    sites: Sites = None

    @property
    def ray_url(self) -> str:
        """The URL of Ray's dashboard; empty for another executor."""
        return (self.ray_address or RAY_ADDRESS) if self.executor == "ray" else ""

    def check(self, *, has_fleet: bool) -> None:
        """Raise if an option needs another executor, or a fleet file."""
        if self.sites is not None and self.executor != "local":
            raise InputError(
                "two-executors",
                f"`--sites` names an engine for each site, and `--executor` is {self.executor}",
                "leave out one of them",
                field="--sites",
            )
        if self.sites is not None and not has_fleet:
            raise InputError(
                "needs-fleet",
                "`--sites` needs `--fleet`: the fleet file has the nodes and prices of each site",
                "add a fleet file; `tenfold fleet import slurm` writes one for a cluster",
                field="--sites",
            )
        named = {
            "--slurm-partition": self.slurm_partition,
            "--slurm-account": self.slurm_account,
            "--slurm-qos": self.slurm_qos,
            "--slurm-user": self.slurm_user,
        }
        used = [name for name, value in named.items() if value]
        if used == ["--slurm-user"] and self.sites is not None:
            used = []
        if used and self.executor != "slurm":
            raise InputError(
                "needs-slurm",
                f"`{used[0]}` needs `--executor slurm`",
                "add it, or leave out the option",
                field=used[0],
            )
        if self.ray_address and self.executor != "ray":
            raise InputError(
                "needs-ray",
                "`--ray-address` needs `--executor ray`",
                "add it, or leave out the option",
                field="--ray-address",
            )

    def applied(self, settings: "Settings") -> "Settings":
        """Return settings with these options."""
        from msgspec.structs import replace  # noqa: PLC0415 - errors come first

        from tenfold.live.slurm.executor.engine import SlurmOptions  # noqa: PLC0415

        slurm = SlurmOptions(
            partition=self.slurm_partition, account=self.slurm_account, qos=self.slurm_qos
        )
        users = tuple(_team_and_user(one) for one in self.slurm_user)
        if settings.burst is not None and (self.executor != "local" or self.sites is not None):
            named = "`--sites` is set" if self.sites else f"`--executor` is {self.executor}"
            raise InputError(
                "burst-executor",
                f"`--burst` rents virtual nodes of this machine, but {named}",
                "leave one of them out",
                field="--burst",
            )
        return replace(
            settings,
            executor=self.executor,
            slurm=slurm,
            unix_users=users,
            ray_address=self.ray_url,
        )


def _team_and_user(text: str) -> tuple[str, str]:
    team, equals, user = text.partition("=")
    if not (team and equals and user):
        raise InputError(
            "wrong-value",
            f"`--slurm-user` must be a team and a user, got `{text}`",
            "write it like research=ann, or *=batch for every team",
            field="--slurm-user",
        )
    return team, user


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class GatewayOptions:
    """The gateways that send requests to services."""

    gateway: Gateway = ""
    gateway_admin: GatewayAdmin = ()

    def applied(self, settings: "Settings") -> "Settings":
        """Return settings with these options."""
        from msgspec import ValidationError, convert  # noqa: PLC0415 - errors come first
        from msgspec.structs import replace  # noqa: PLC0415

        from tenfold.model.service.routing import Url  # noqa: PLC0415

        for one in self.gateway_admin:
            try:
                convert(one, Url)
            except ValidationError:
                raise InputError(
                    "wrong-address",
                    f"`--gateway-admin` must be the URL of a gateway, got `{one}`",
                    "write it like http://127.0.0.1:7421",
                    field="--gateway-admin",
                ) from None
        return replace(
            settings, gateway=_checked_gateway(self.gateway), gateway_admin=self.gateway_admin
        )


def _checked_gateway(listen: str) -> str:
    """Return the address of a gateway with its port; a free one in place of 0."""
    if not listen:
        return ""
    from importlib.util import find_spec  # noqa: PLC0415 - errors come first

    host, port = _address("--gateway", listen, "127.0.0.1:7480")
    if find_spec("aiohttp") is None:
        raise InputError(
            "gateway-not-installed",
            "the gateway needs aiohttp, which is not installed",
            "run `pip install 'tenfold[gateway]'`",
            field="--gateway",
        )
    return f"{host}:{port or _free_port(host)}"


OBJECTS_LISTEN = "127.0.0.1:9000"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ObjectStoreOptions:
    """The object store that runs beside the control plane."""

    objects: Objects = None
    objects_listen: ObjectsListen = ""
    objects_processes: ObjectsProcesses = 1

    def applied(self, settings: "Settings") -> "Settings":
        """Return settings with these options; TLS is that of the control plane."""
        if self.objects is None:
            if self.objects_listen or self.objects_processes != 1:
                raise InputError(
                    "needs-objects",
                    "`--objects-listen` and `--objects-processes` need `--objects`",
                    "name the folder of the object store with `--objects`",
                    field="--objects",
                )
            return settings
        from msgspec.structs import replace  # noqa: PLC0415 - errors come first

        from tenfold.cli.objects.command import check_installed, check_network  # noqa: PLC0415
        from tenfold.objects.serve.keys import ensure_key_file, read_key_file  # noqa: PLC0415
        from tenfold.objects.serve.settings import KEYS_FILE  # noqa: PLC0415
        from tenfold.server.background.objects_process import ObjectsSettings  # noqa: PLC0415

        host, port = _address(
            "--objects-listen", self.objects_listen or OBJECTS_LISTEN, OBJECTS_LISTEN
        )
        check_network(host, has_tls=settings.has_tls, insecure=settings.insecure)
        check_installed()
        folder = self.objects.absolute()
        ensure_key_file(folder / KEYS_FILE)
        read_key_file(folder / KEYS_FILE)
        made = ObjectsSettings(
            folder=folder,
            host=host,
            port=port or _free_port(host),
            processes=self.objects_processes,
            tls_certificate=settings.tls_certificate,
            tls_key=settings.tls_key,
            insecure=settings.insecure,
        )
        return replace(settings, objects=made)


def _address(option: str, text: str, example: str) -> tuple[str, int]:
    """Return the host and the port of an address, which may be 0."""
    host, colon, port = text.rpartition(":")
    if not (host and colon and port.isdecimal() and int(port) <= 65_535):
        raise InputError(
            "wrong-address",
            f"`{option}` must be an address and port, got `{text}`",
            f"write it like {example}",
            field=option,
        )
    return host, int(port)


def _free_port(host: str) -> int:
    from socket import create_server  # noqa: PLC0415 - errors come first

    with create_server((host.strip("[]"), 0)) as free:
        return free.getsockname()[1]


DEFAULT_OBJECTS = ObjectStoreOptions()
DEFAULT_GATEWAYS = GatewayOptions()
DEFAULT_EXECUTOR = ExecutorOptions()
DEFAULT_OPERATIONS = OperationOptions()
DEFAULT_TEAM_USERS = TeamUserOptions()
DEFAULT_SHARING = SharingOptions()
