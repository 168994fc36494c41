"""The result of a growth analysis: what breaks, in order, how to fix it, and what is unknown."""

from msgspec import Struct, field

from tenfold.model.growth.growth import Axis, Grade, GrowthLimits
from tenfold.physics.growth.breaking import BreakStatus


class ReliefShown(Struct, frozen=True, kw_only=True):
    """A relief as printed: what to do, what it costs and how long it takes."""

    code: str
    sentence: str
    usd_per_month: float | None
    """None if no price is known; 0 for a change of settings."""
    weeks: float | None
    usd_low: float | None = None
    usd_high: float | None = None
    """The range of the cost, if a price in it is assumed."""
    assumed_prices: tuple[str, ...] = ()
    unpriced: int = 0
    """Parts without a price; `usd_per_month` is the sum of the others."""


class AlternativeShown(Struct, frozen=True, kw_only=True):
    """Another way out of a break, in place of its fix: a switch of the scheduler."""

    relief: ReliefShown
    k_after: float | None
    """The factor up to which the whole fleet is OK with it; None: every factor requested."""


class Row(Struct, frozen=True, kw_only=True):
    """One layer: where it breaks, the symptom, and what fixes it.

    In `GrowAnswer.rows`, `k_after` is the factor up to which the whole fleet is OK with this
    relief and those above it in place; None there means beyond the largest factor requested.
    """

    layer: str
    resource: str
    title: str = ""
    """The layer by its name on screen."""
    label: str = ""
    """Layer and resource by their names on screen."""
    k: float | None
    low: float | None
    high: float | None
    status: BreakStatus
    grade: Grade | None
    symptom: str = ""
    relief: ReliefShown | None = None
    usd: float | None = None
    order_by: str = ""
    late: bool = False
    """Whether the day to order by is before `today` of `[pace]`."""
    k_after: float | None = None
    alternatives: tuple[AlternativeShown, ...] = ()
    sentence: str = ""
    """Why there is no fix, or what is uncertain about it."""


class Missing(Struct, frozen=True, kw_only=True):
    """A layer that cannot be evaluated, and the missing input."""

    layer: str
    resource: str
    title: str
    """The layer by its name on screen."""
    needs: str
    could_break: bool = False
    """Whether it could break along the axis: a required factor is not known without its input."""


class UtilisationCurve(Struct, frozen=True, kw_only=True):
    """Utilisation of one layer at some factors, for charts."""

    layer: str
    resource: str
    label: str
    points: tuple[tuple[float, float], ...]


class CostLine(Struct, frozen=True, kw_only=True):
    """One line of the monthly cost: today, and at the factor reached."""

    name: str
    usd_today: float
    usd_then: float


class MonthlyBill(Struct, frozen=True, kw_only=True):
    """What the fleet costs a month, today and at the factor that it reaches with all fixes."""

    factor: float
    lines: tuple[CostLine, ...]
    usd_today: float
    usd_then: float
    unpriced: tuple[str, ...] = ()
    """Pools without a price; the sums leave them out."""


class CalibrationShown(Struct, frozen=True, kw_only=True):
    """How well the simulation reproduces the history at factor 1, in one sentence."""

    calibrated: bool
    sentence: str


class GrowAnswer(Struct, frozen=True, kw_only=True):
    """What breaks, in order, and everything printed with it."""

    fleet: str
    axis: Axis
    to: tuple[float, ...]
    calibration: CalibrationShown
    first: Row | None
    rows: tuple[Row, ...]
    """What breaks, in order: each row assumes that the reliefs above it are in place."""
    over: tuple[Row, ...] = ()
    """Layers over their limit today that do not grow along the axis."""
    ok_up_to: float | None = field(name="stands")
    """The factor up to which the fleet is OK with all reliefs; None: every factor requested."""
    next_label: str = ""
    """What breaks there, if no further fix is listed because the list is full."""
    layers: tuple[Row, ...]
    """Every layer evaluated on today's fleet, lowest factor first."""
    unknown: tuple[Missing, ...]
    curves: tuple[UtilisationCurve, ...]
    month: MonthlyBill
    limits: GrowthLimits
    assumptions: tuple[str, ...]
    sentence: str
