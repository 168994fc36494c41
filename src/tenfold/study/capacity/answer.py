"""The answer of a capacity plan: phases with dates, what limits them, and what they cost."""

from typing import Literal

from msgspec import Struct

PhaseKind = Literal["buy", "reserve", "fix", "storage", "gate"]


class Phase(Struct, frozen=True, kw_only=True):
    """One thing to order: what, by when, until when it is needed, and what it costs."""

    kind: PhaseKind
    what: str
    reason: str = ""
    """The layer that it fixes, or the classes of demand that it serves."""
    order_by: str
    """The last day to order, or how long before a factor if the grow file has no `[pace]`."""
    needed: str
    """The day from which it is needed; empty if only a factor is known."""
    lead_weeks: float | None
    """P90 of the lead time; None if none is known."""
    confidence: float | None
    """Probability that it arrives before it is needed, over demand and lead times."""
    usd_per_month: float | None
    late: bool = False
    """Whether the day to order by is past."""
    factor: float | None = None
    """The factor of growth at which a layer breaks without it; for fixes."""


class Binding(Struct, frozen=True, kw_only=True):
    """A limit that the plan would exceed if it could, and what more of it is worth."""

    name: str
    unit: str
    months: int
    """Months in which it binds."""
    usd_per_unit: float
    """Dollars saved over the horizon by one more unit in all of these months."""
    step: float
    """A handy number of units, for display."""


class ScenarioShown(Struct, frozen=True, kw_only=True):
    """One course of demand, and what it costs under the plan."""

    name: str
    probability: float
    gpus_first: float
    gpus_last: float
    usd: float
    unmet_gpu_months: float


class CurvePoint(Struct, frozen=True, kw_only=True):
    """The expected cost if more or less is bought and reserved than planned."""

    factor: float
    usd_owned: float
    """What is bought and reserved."""
    usd_rented: float
    usd_delay: float
    idle_share: float
    """Share of own and reserved capacity that is not used."""

    @property
    def usd(self) -> float:
        """All of it."""
        return self.usd_owned + self.usd_rented + self.usd_delay


class CostYear(Struct, frozen=True, kw_only=True):
    """Expected dollars in one year of the plan."""

    year: int
    fixed: float
    own: float
    reserved: float
    on_demand: float
    spot: float
    delay: float

    @property
    def paid(self) -> float:
        """What is paid; a delay is not."""
        return self.fixed + self.own + self.reserved + self.on_demand + self.spot


class BreakEven(Struct, frozen=True, kw_only=True):
    """Owning against renting one accelerator, per GPU-hour."""

    option: str
    offer: str
    owned_usd_per_hour: float
    rented_usd_per_hour: float
    utilisation: float | None
    """Above this utilisation owning is cheaper; None: never."""
    planned: float
    """Utilisation of own GPUs under the plan."""


class MixMonth(Struct, frozen=True, kw_only=True):
    """Mean GPUs by mode in one month, and the demand that they serve."""

    month: int
    day: str
    demand: float
    demand_low: float
    demand_high: float
    own: float
    """Usable own GPUs, whether used or not."""
    reserved: float
    on_demand: float
    spot: float
    unmet: float
    stock_out: float
    """Probability that own and reserved GPUs do not suffice and no more can be rented."""


class DriverShare(Struct, frozen=True, kw_only=True):
    """What one driver adds to demand: remove it, and demand falls by this."""

    name: str
    group: str
    gpu_hours_first_year: float
    gpu_hours: float
    share: float
    """Of all GPU-hours over the horizon."""
    per_unit: str
    """What the planner makes of it, such as GPU-hours per run."""


class Shortfall(Struct, frozen=True, kw_only=True):
    """What is missing to add some nodes."""

    name: str
    unit: str
    needed: float
    free: float
    sentence: str


class CapacityAnswer(Struct, frozen=True, kw_only=True):
    """Everything that `capacity plan` prints."""

    fleet: str
    start: str
    months: int
    sentence: str
    phases: tuple[Phase, ...]
    binding: tuple[Binding, ...]
    scenarios: tuple[ScenarioShown, ...]
    mix: tuple[MixMonth, ...]
    curve: tuple[CurvePoint, ...]
    years: tuple[CostYear, ...]
    usd: float
    """Expected dollars over the horizon, without the cost of delays."""
    usd_delay: float
    break_even: tuple[BreakEven, ...]
    drivers: tuple[DriverShare, ...]
    stock_out: float
    """Probability of a stock-out in any month."""
    optimal_within: float
    """No plan is cheaper by more than this share."""
    rents: tuple["Rented", ...]
    notes: tuple[str, ...]


class Rented(Struct, frozen=True, kw_only=True):
    """What is rented from one offer: by the hour in the month with the most, and reserved."""

    offer: str
    provider: str
    region: str
    instance_type: str
    gpus_per_instance: int
    on_demand_instances: int
    spot_instances: int
    reserved_instances: int
    """At most at once."""
    reserved_from: str
    reserved_months: int
