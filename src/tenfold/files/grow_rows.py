"""What a file of growth may say: one struct a table, in the units people write.

Keys that are left out are not known, but for limits, which have a usual value. Bounds are
wide; they catch a wrong unit, not an unusual fleet.
"""

from datetime import date
from typing import Annotated

from msgspec import Meta

from tenfold.files.fleet_rows import Kw, Name, Row, Tb, Usd
from tenfold.model.growth import Axis, ControllerKind

Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[float, Meta(gt=0, le=1e9)]
Count = Annotated[int, Meta(ge=0, le=100_000_000)]
Rate = Annotated[float, Meta(gt=0, le=1e12)]
Weeks = Annotated[float, Meta(ge=0, le=1_000)]
Tokens = Annotated[int, Meta(ge=1, le=100_000_000)]


class LimitsRow(Row, frozen=True, kw_only=True):
    """`[limits]`."""

    wait_s_p90: Seconds | None = None
    step_efficiency_least: Share | None = None
    stall_share_most: Share | None = None
    attainment_least: Share | None = None
    kw_most: Kw | None = None
    usd_per_month_most: Usd | None = None
    headroom_least: Annotated[float, Meta(ge=0, lt=1)] | None = None
    admission_wait_s_most: Seconds | None = None
    spare_shortfall_share_most: Share | None = None
    fairness_least: Share | None = None
    stranded_share_most: Share | None = None
    lost_share_most: Share | None = None


class ControllerRow(Row, frozen=True, kw_only=True):
    """`[[controller]]`."""

    kind: ControllerKind
    queue: str = ""
    cycles_per_min: Rate | None = None
    heads_per_cycle: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    admitted_share: Share | None = None
    cost_ms_per_job: Annotated[float, Meta(gt=0, le=1e9)] | None = None


class ServiceRow(Row, frozen=True, kw_only=True):
    """`[[service]]`."""

    name: Name
    model: Name
    qps: Rate
    input_tokens: Tokens
    output_tokens: Tokens
    ttft_s: Seconds | None = None
    tpot_s: Seconds | None = None
    pool: str = ""
    replicas_most: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None


class DatasetRow(Row, frozen=True, kw_only=True):
    """`[[dataset]]`."""

    name: Name
    tier: Name
    tb: Tb
    grows_with: Axis = "data"
    source_site: str = ""


class MonitoringRow(Row, frozen=True, kw_only=True):
    """`[monitoring]`."""

    series_per_node: Rate | None = None
    series_per_gpu: Rate | None = None
    interval_s: Seconds | None = None
    samples_per_s_most: Rate | None = None
    retention_days: Annotated[float, Meta(gt=0, le=100_000)] | None = None
    bytes_per_sample: Annotated[float, Meta(gt=0, le=10_000)] = 1.7
    store_tb: Tb | None = None


class OperationsRow(Row, frozen=True, kw_only=True):
    """`[operations]`."""

    crew: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    repairs_per_person_day: Annotated[float, Meta(gt=0, le=10_000)] | None = None
    nodes_per_person_most: Annotated[float, Meta(gt=0, le=1_000_000)] | None = None
    usd_per_person_month: Usd | None = None
    spares: Count | None = None
    checkpoint_every_min: Annotated[float, Meta(gt=0, le=100_000)] | None = None


class FacilityRow(Row, frozen=True, kw_only=True):
    """`[facility]`."""

    floor_racks: Count | None = None
    ports_free: Count | None = None


class LeadTimeRow(Row, frozen=True, kw_only=True):
    """`[[lead_time]]`."""

    thing: Name
    weeks_p50: Weeks
    weeks_p90: Weeks


class PaceRow(Row, frozen=True, kw_only=True):
    """`[pace]`."""

    today: date
    doubles_in_months: Annotated[float, Meta(gt=0, le=1_200)]


SINGLE: dict[str, type[Row]] = {
    "limits": LimitsRow,
    "monitoring": MonitoringRow,
    "operations": OperationsRow,
    "facility": FacilityRow,
    "pace": PaceRow,
}
MANY: dict[str, type[Row]] = {
    "controller": ControllerRow,
    "service": ServiceRow,
    "dataset": DatasetRow,
    "lead_time": LeadTimeRow,
}
