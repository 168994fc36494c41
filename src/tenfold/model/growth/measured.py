"""One usage measurement: how much of a resource was used at a factor, and its limit.

Rigs, telemetry and reports all use this form, so that one fit serves them all.
"""

from msgspec import Struct

from tenfold.model.growth.growth import Axis


class UsagePoint(Struct, frozen=True, kw_only=True):
    """Usage of one resource at one factor of today's demand.

    `limit` is None if the measurement does not include it.
    """

    layer: str
    resource: str
    queue: str = ""
    factor: float
    usage: float
    limit: float | None = None
    unit: str = ""
    axis: Axis | None = None
    """What grew during the measurement; None: it counts for any axis."""

    def along(self, axis: Axis) -> bool:
        """Return whether this counts along an axis; `all` includes every axis."""
        return self.axis in (None, axis) or axis == "all"
