"""Options of `tenfold up` that say how long things are kept and which nodes are trusted."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from tenfold.cli.quantities import parse_duration

if TYPE_CHECKING:
    from tenfold.server.runtime.settings import Settings

KeepDays = Annotated[
    float, Parameter(help="Days that stay in the journal; older events move into bundles. 30.")
]
KeepLogsDays = Annotated[float, Parameter(help="Days that logs of jobs stay that are over. 14.")]
KeepLogsGib = Annotated[
    float, Parameter(help="GiB of such logs that stay at most, the newest. 20.")
]
BlameShare = Annotated[
    float,
    Parameter(help="Share of nodes that may be cordoned for failing jobs; 0 cordons none. 0.1."),
]
Acceptance = Annotated[
    bool | None,
    Parameter(
        negative="--no-acceptance",
        help="Measure nodes before they join, and refuse slow ones. Real nodes, not virtual ones.",
    ),
]
AcceptanceBand = Annotated[
    float, Parameter(help="How far below its pool a node may be; 0.2 refuses what is 20% slower.")
]
IdleAfter = Annotated[
    str, Parameter(help="How long a job uses nothing before it is said to idle; 0 never. 15m.")
]
IdleBelow = Annotated[
    float, Parameter(help="Percent of its GPUs below which a job uses nothing. 5.")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Care:
    """What is looked after while a control plane runs; each is an option of its own."""

    keep_days: KeepDays = 30
    keep_logs_days: KeepLogsDays = 14
    keep_logs_gib: KeepLogsGib = 20
    blame_share: BlameShare = 0.1
    acceptance: Acceptance = None
    acceptance_band: AcceptanceBand = 0.2
    idle_after: IdleAfter = "15m"
    idle_below: IdleBelow = 5

    def applied(self, settings: "Settings", *, is_virtual: bool) -> "Settings":
        """Return settings with these; nodes that only stand for nodes are not measured."""
        # What they stand on takes long to import, and refusals come before it.
        from msgspec.structs import replace  # noqa: PLC0415

        from tenfold.compose.acceptance import rule_of  # noqa: PLC0415
        from tenfold.compose.blame import blaming_of  # noqa: PLC0415
        from tenfold.decide.detect.idle import idle_rule_of  # noqa: PLC0415
        from tenfold.live.local.attempt.pruning import AttemptRetention  # noqa: PLC0415

        return replace(
            settings,
            keep_days=self.keep_days,
            kept=AttemptRetention(days=self.keep_logs_days, gib=self.keep_logs_gib),
            blaming=blaming_of(self.blame_share),
            acceptance=rule_of(self.acceptance_band),
            idling=idle_rule_of(_idle_s(self.idle_after), self.idle_below),
            asks_gpus=not is_virtual,
            tests_nodes=not is_virtual if self.acceptance is None else self.acceptance,
        )


def _idle_s(text: str) -> float:
    return 0.0 if text.strip() == "0" else parse_duration(text, "--idle-after")


USUAL = Care()
