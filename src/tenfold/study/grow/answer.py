"""What growth answers: a ladder of breaks, each with its relief, and what could not be judged."""

from msgspec import Struct, field

from tenfold.model.growth.growth import Axis, Grade, GrowthLimits
from tenfold.physics.growth.breaking import BreakStatus


class ReliefShown(Struct, frozen=True, kw_only=True):
    """A relief as it is printed: what it is, what it costs and how long it takes."""

    code: str
    sentence: str
    usd_per_month: float | None
    """None where no price is known; 0 where it is a change of settings."""
    weeks: float | None


class Row(Struct, frozen=True, kw_only=True):
    """One layer: where it breaks, what is seen then, and what relieves it.

    On the ladder `k_after` is the factor that the whole fleet stands once this relief and
    those above it are in place; None there means beyond the largest factor asked for.
    """

    layer: str
    resource: str
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
    """Whether the day to order by was before the day of asking."""
    k_after: float | None = None
    sentence: str = ""


class Missing(Struct, frozen=True, kw_only=True):
    """A layer that cannot be judged, and the figure that would answer it."""

    layer: str
    resource: str
    needs: str


class UtilisationCurve(Struct, frozen=True, kw_only=True):
    """Strain of one layer at some factors, for charts."""

    layer: str
    resource: str
    points: tuple[tuple[float, float], ...]


class CalibrationShown(Struct, frozen=True, kw_only=True):
    """How well the history is reproduced at factor 1, in one sentence."""

    calibrated: bool
    sentence: str


class GrowAnswer(Struct, frozen=True, kw_only=True):
    """The ladder, first break first, and everything that stands beside it."""

    fleet: str
    axis: Axis
    to: tuple[float, ...]
    calibration: CalibrationShown
    first: Row | None
    rows: tuple[Row, ...]
    """The ladder: each row stands on the reliefs of those above it."""
    ok_up_to: float | None = field(name="stands")
    """The factor that the fleet stands with all reliefs of the ladder; None: all asked for."""
    layers: tuple[Row, ...]
    """Every layer that could be judged, as the fleet stands today, lowest factor first."""
    unknown: tuple[Missing, ...]
    curves: tuple[UtilisationCurve, ...]
    limits: GrowthLimits
    assumptions: tuple[str, ...]
    sentence: str
