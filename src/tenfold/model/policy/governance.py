"""Governance: who may use how much of a fleet, and what happens when all want more.

Amounts of GPUs are by accelerator type; `ANY` counts GPUs of every type, `USD` what they
cost an hour. Quotas are guaranteed, not set aside: what a team does not use may be borrowed,
within the limits that the lender and the borrower declare.
"""

from typing import Literal

from msgspec import Struct, field

from tenfold.model.ids import TeamId
from tenfold.model.job.terms import Hours, Window
from tenfold.model.units import HOUR, MINUTE, Millis, UsdMicros

ANY = "any"
"""Counts GPUs of every type together."""
USD = "usd"
"""Counts what held GPUs cost an hour, in micro-USD."""

Amounts = dict[str, int]
"""Thousandths of a GPU by accelerator type or `ANY`; micro-USD an hour under `USD`."""
FairShare = Literal["held", "decayed"]
"""`held` looks at what teams hold now; `decayed` also at what they used of late."""


class TeamRules(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one team is promised, and what it may take beyond that."""

    id: TeamId
    parent: TeamId | None = None
    weight: float = 1.0
    quota: Amounts = {}
    """What it can always get back; a type that is not named is 0."""
    borrow: Amounts = {}
    """How far beyond its quota it may go; a type that is not named has no limit."""
    lend: Amounts = {}
    """How much of its quota others may use; a type that is not named is lent whole."""
    hours: tuple[tuple[Hours, Amounts], ...] = ()
    """Quotas that hold at some hours of the day, in place of `quota`."""
    residency: tuple[str, ...] = ()
    """Tags that every node of its jobs must bear."""
    min_run_ms: Millis | None = None
    """Its jobs run at least so long before they may be stopped; None: as the policy says."""


class GovernanceRules(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of a shared fleet."""

    teams: tuple[TeamRules, ...] = ()
    fair_share: FairShare = "held"
    half_life_ms: Millis = Millis(24 * HOUR)
    """After so long, use counts half as much under `decayed`."""
    reservations: int = field(default=4, name="promises")
    """Blocked gangs that are promised a start at a time; 0 turns promises off."""
    reserve_after_ms: Millis = field(default=Millis(30 * MINUTE), name="promise_after_ms")
    """A gang waits so long before it is promised anything."""
    backfill: bool = True
    """Whether jobs that end in time may use nodes that are kept for a promise."""
    preempts: bool = True
    min_run_ms: Millis = Millis(5 * MINUTE)
    """A job runs at least so long before it may be stopped for another."""
    delay_ms: Millis = Millis(0)
    """A job waits at least so long before others are stopped for it."""
    stops_per_hour: int = 0
    """Jobs that may be stopped for others within an hour; 0 means no limit."""
    stops_per_job: int = 0
    """Times that one job may be stopped for others; 0 means no limit."""
    restart_cost_ms: Millis = Millis(5 * MINUTE)
    """What a stop is reckoned to cost beyond the work it loses."""
    defragment: bool = False
    """Whether jobs are moved together where that lets a gang start."""
    idle_ms: Millis | None = None
    """An interactive session that idles so long is ended."""
    off_peak: tuple[Hours, ...] = ()
    """When jobs that ask for off-peak hours may start; none means at any time."""
    windows: tuple[Window, ...] = ()
    usd_micros_per_gpu_hour: dict[str, UsdMicros] = {}
    """Prices by accelerator type, for quotas in dollars."""
    timezone_ms: Millis = Millis(0)
    """What is added to the clock before hours of the day are read."""
