"""One measurement of use: how much of a resource was used at a factor, and how much there is.

Rigs, telemetry and reports all come in as these, so that one law is fitted to all of them.
"""

from msgspec import Struct

from tenfold.model.growth.growth import Axis


class UsagePoint(Struct, frozen=True, kw_only=True):
    """Use of one resource at one factor of today's demand.

    `limit` is None where the measurement did not tell what there is of the resource.
    """

    layer: str
    resource: str
    queue: str = ""
    factor: float
    usage: float
    limit: float | None = None
    unit: str = ""
    axis: Axis | None = None
    """What grew when this was measured; None: it holds along any axis."""

    def along(self, axis: Axis) -> bool:
        """Return whether this tells of growth along an axis; all of it together has every one."""
        return self.axis in (None, axis) or axis == "all"
