"""Schema of the governance tables of a policy file: one struct per table, in the file's units.

Amounts, times of day and timestamps are left raw here and parsed in `values`, so that each gets
its own error with its line.
"""

from typing import Annotated

from msgspec import Meta, field

from tenfold.files.fleet.rows import Row
from tenfold.model.policy.governance import FairShare, GovernanceRules
from tenfold.model.strings import Name
from tenfold.model.units import HOUR, MINUTE

DEFAULTS = GovernanceRules()
MOST_GPUS = 100_000_000
MOST_USD_PER_HOUR = 1e9
Minutes = Annotated[float, Meta(ge=0, le=10_000_000)]
Count = Annotated[int, Meta(ge=0, le=1_000_000)]
RENAMED = {"promises": "reservations", "promise_after_min": "reserve_after_min"}
"""Old keys of `[govern]`, which are read for one more version with a warning."""


class GovernanceRow(Row, frozen=True, kw_only=True):
    """`[govern]`: the rules for all teams."""

    fair_share: FairShare = DEFAULTS.fair_share
    half_life_h: Annotated[float, Meta(gt=0, le=100_000)] = DEFAULTS.half_life_ms / HOUR
    reservations: Count = DEFAULTS.reservations
    reserve_after_min: Minutes = DEFAULTS.reserve_after_ms / MINUTE
    backfill: bool = DEFAULTS.backfill
    preempts: bool = DEFAULTS.preempts
    min_run_min: Minutes = DEFAULTS.min_run_ms / MINUTE
    delay_min: Minutes = DEFAULTS.delay_ms / MINUTE
    stops_per_hour: Count = DEFAULTS.stops_per_hour
    stops_per_job: Count = DEFAULTS.stops_per_job
    restart_cost_min: Minutes = DEFAULTS.restart_cost_ms / MINUTE
    defragment: bool = DEFAULTS.defragment
    idle_min: Annotated[float, Meta(gt=0, le=10_000_000)] | None = None
    off_peak: list[str] = field(default_factory=list[str])
    utc_offset_h: Annotated[float, Meta(ge=-14, le=14)] = 0.0
    zero: object = None
    """The timestamp of time 0 of the run."""


class HoursRow(Row, frozen=True, kw_only=True):
    """One entry of a team's `hours`: a quota for part of the day."""

    start: object = field(name="from")
    end: object = field(name="to")
    quota: object


class TeamRow(Row, frozen=True, kw_only=True):
    """`[[teams]]`."""

    id: Name
    parent: Name | None = None
    weight: Annotated[float, Meta(gt=0, le=1_000_000)] = 1.0
    quota: object = field(default_factory=dict[str, object])
    borrow: object = field(default_factory=dict[str, object])
    lend: object = field(default_factory=dict[str, object])
    hours: object = field(default_factory=list[object])
    residency: list[Name] = field(default_factory=list[Name])
    min_run_min: Minutes | None = None
    inference: object = field(default_factory=dict[str, object])


class WindowRow(Row, frozen=True, kw_only=True):
    """`[[windows]]`: nodes reserved for a team, or for maintenance, for a period."""

    id: Name
    start_h: Annotated[float, Meta(ge=-1e6, le=1e6)] | None = None
    start: object = None
    hours: Annotated[float, Meta(ge=-1e6, le=1e6)]
    every_h: Annotated[float, Meta(gt=0, le=1e6)] | None = None
    nodes: list[Name]
    team: Name | None = None


class PricesRow(Row, frozen=True, kw_only=True):
    """`[prices]`: GPU prices for quotas in dollars."""

    usd_per_gpu_hour: object = field(default_factory=dict[str, object])
