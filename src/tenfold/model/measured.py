"""One measurement of use: how much of a resource was used at a factor, and how much there is.

Rigs, telemetry and reports all come in as these, so that one law is fitted to all of them.
"""

from msgspec import Struct


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
