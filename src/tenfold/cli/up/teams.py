"""Options of `tenfold up` that say as whom the jobs of teams run."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from tenfold.model.errors import InputError

if TYPE_CHECKING:
    from tenfold.server.runtime.settings import Settings

TeamUsers = Annotated[
    Literal["auto", "on", "off"],
    Parameter(help="Run each team's jobs as a user of its own. auto: where started as root."),
]
TeamUids = Annotated[
    str, Parameter(help="Numbers for those users. 2100000000-2100009999, which nothing else uses.")
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Teams:
    """How teams are kept apart on this machine; each is an option of its own."""

    team_users: TeamUsers = "auto"
    team_uids: TeamUids = ""

    def applied(self, settings: "Settings") -> "Settings":
        """Return settings with these."""
        from msgspec.structs import replace  # noqa: PLC0415 - refusals come before it

        from tenfold.live.local.member.team_users import UidRange  # noqa: PLC0415

        span = UidRange()
        if self.team_uids:
            first, dash, last = self.team_uids.partition("-")
            if not (dash and first.isdecimal() and last.isdecimal()):
                raise InputError(
                    "wrong-value",
                    f"--team-uids is `{self.team_uids}`, which is no range of numbers",
                    "write it like 2100000000-2100009999",
                    field="--team-uids",
                )
            span = UidRange(int(first), int(last))
        return replace(settings, team_users=self.team_users, team_uids=span)


TOGETHER_OR_APART = Teams()
