"""Options of `tenfold up`: retention, node health, idle jobs, and the users that jobs run as."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from tenfold.cli.quantities import parse_duration
from tenfold.model.errors import InputError

if TYPE_CHECKING:
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
        help="Days of events to keep in the journal; older events move to bundles (default: 30)"
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
        help="Benchmark new nodes and reject slow ones (default: on, but off for virtual nodes)",
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
TeamUids = Annotated[
    str,
    Parameter(help="UID range for team users (default: 2100000000-2100009999)"),
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


def _idle_s(text: str) -> float:
    return 0.0 if text.strip() == "0" else parse_duration(text, "--idle-after")


DEFAULT_OPERATIONS = OperationOptions()
DEFAULT_TEAM_USERS = TeamUserOptions()
