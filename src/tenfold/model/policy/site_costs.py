"""What running a job at each site of a fleet costs: prices, links, and where its data is."""

from msgspec import Struct

from tenfold.model.units import UsdMicros


class SiteRoute(Struct, frozen=True, forbid_unknown_fields=True):
    """A link between two sites, for data that is not where a job runs; both ways are equal."""

    a: str
    b: str
    bytes_per_s: float
    usd_micros_per_gb: UsdMicros


class DataPlace(Struct, frozen=True, forbid_unknown_fields=True):
    """A named set of data: its size and the sites that hold it."""

    bytes: int
    sites: tuple[str, ...]


class SiteCosts(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The terms of all sites, from a fleet file."""

    usd_micros_per_gpu_hour: dict[str, dict[str, UsdMicros]]
    """By site and accelerator type."""
    routes: tuple[SiteRoute, ...] = ()
    data: dict[str, DataPlace] = {}
