"""Governance rules: how much of a fleet each team may use, and which jobs are preempted.

GPU amounts are by accelerator type; `ANY` counts GPUs of every type, `USD` their cost per hour.
Quotas are guaranteed, not set aside: idle quota may be borrowed, within the limits that lender
and borrower set.
"""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct, field

from tenfold.model.ids import TeamId
from tenfold.model.job.terms import Hours, Window
from tenfold.model.service.routing import InferenceLimits
from tenfold.model.units import HOUR, MINUTE, Millis, UsdMicros

ANY = "any"
"""Counts GPUs of every type together."""
USD = "usd"
"""Counts the hourly cost of held GPUs, in micro-USD."""

Amounts = dict[str, int]
"""Milli-GPUs by accelerator type or `ANY`; micro-USD an hour under `USD`."""
FairShare = Literal["held", "decayed"]
"""`held` counts current holdings; `decayed` also counts past usage with a half-life."""


class TeamRules(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The quota and limits of one team."""

    id: TeamId
    parent: TeamId | None = None
    weight: float = 1.0
    quota: Amounts = {}
    """What it can always reclaim; a type that is not listed is 0."""
    borrow: Amounts = {}
    """How far it may exceed its quota; a type that is not listed has no limit."""
    lend: Amounts = {}
    """How much of its quota others may use; a type that is not listed is lent entirely."""
    hours: tuple[tuple[Hours, Amounts], ...] = ()
    """Quotas for parts of the day, in place of `quota`."""
    residency: tuple[str, ...] = ()
    """Tags that every node of its jobs must have."""
    min_run_ms: Millis | None = None
    """Minimum run time of its jobs before preemption; None: the policy's."""
    inference: InferenceLimits = InferenceLimits()
    """Limits of its requests to services."""


class GovernanceRules(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The governance rules of a fleet."""

    teams: tuple[TeamRules, ...] = ()
    fair_share: FairShare = "held"
    half_life_ms: Millis = Millis(24 * HOUR)
    """Half-life of past usage under `decayed`."""
    reservations: int = field(default=4, name="promises")
    """Blocked gangs with a reserved start at the same time; 0 turns reservations off."""
    reserve_after_ms: Millis = field(default=Millis(30 * MINUTE), name="promise_after_ms")
    """How long a gang waits before it gets a reserved start."""
    backfill: bool = True
    """Whether jobs that end in time may use reserved nodes."""
    preempts: bool = True
    min_run_ms: Millis = Millis(5 * MINUTE)
    """Minimum run time before a job may be preempted."""
    delay_ms: Millis = Millis(0)
    """How long a job waits before it may preempt others."""
    stops_per_hour: int = 0
    """Maximum preemptions per hour; 0 means no limit."""
    stops_per_job: int = 0
    """Maximum preemptions of one job; 0 means no limit."""
    restart_cost_ms: Millis = Millis(5 * MINUTE)
    """Assumed cost of a preemption beyond the work it loses."""
    defragment: bool = False
    """Whether small jobs are moved so that a gang can start."""
    idle_ms: Millis | None = None
    """How long an interactive session may be idle before it is ended."""
    off_peak: tuple[Hours, ...] = ()
    """Hours in which off-peak jobs may start; none means at any time."""
    windows: tuple[Window, ...] = ()
    usd_micros_per_gpu_hour: dict[str, UsdMicros] = {}
    """Prices by accelerator type, for quotas in dollars."""
    timezone_ms: Millis = Millis(0)
    """Added to the clock before the time of day is read."""


def tags_needed(team: TeamRules, teams: Mapping[TeamId, TeamRules]) -> tuple[str, ...]:
    """Return the tags that a team's nodes must have: its own and those of its parents."""
    tags = dict.fromkeys(team.residency)
    above = team.parent
    while above is not None and above in teams:
        tags |= dict.fromkeys(teams[above].residency)
        above = teams[above].parent
    return tuple(tags)
