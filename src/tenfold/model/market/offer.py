"""An offer: capacity that one could rent now, at one price, in one place."""

from typing import Literal

import msgspec
from msgspec import Struct

from tenfold.model.facts.fact import Fact
from tenfold.model.fleet.facility import PriceKind
from tenfold.model.units import UsdMicros

Trust = Literal["own", "certified", "standard", "community"]
"""Who operates the hardware: you; a provider with audited data centres; a provider; anyone."""
TRUST: tuple[Trust, ...] = ("own", "certified", "standard", "community")
"""From the most trusted to the least."""


class ProviderTerms(Fact, frozen=True, kw_only=True):
    """What renting from one provider is like, apart from the price.

    The row `default` holds for providers without a row, and for fields that a row leaves out.
    """

    trust: Trust | None = None
    egress_usd_per_gb: float | None = None
    """Data that leaves the provider for the internet."""
    startup_s: float | None = None
    """From the order to the first useful step: boot, image, process start."""
    failures_per_1000_node_days: float | None = None
    spot_up_h: float | None = None
    """Mean time that spot capacity lasts."""
    spot_down_h: float | None = None
    """Mean time until lost spot capacity comes back."""
    availability: float | None = None
    """Share of the time at which on-demand capacity is available."""
    regions: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """ISO country codes by region."""


class Offer(Struct, frozen=True, kw_only=True):
    """One rentable unit: an instance with its accelerators, at one price.

    A figure that is None is that of the provider's terms.
    """

    provider: str
    accelerator: str
    """The name of its fact."""
    gpus: float
    """Accelerators of one instance; below 1 for a slice of one."""
    kind: PriceKind
    usd_micros_per_hour: UsdMicros
    """Of the whole instance, its host included."""
    any_size: bool = False
    """Sold by the accelerator: an instance has as many as you ask for, up to a server."""
    region: str = ""
    zone: str = ""
    instance: str = ""
    country: str = ""
    """ISO code; empty where the region does not tell."""
    trust: Trust | None = None
    egress_usd_per_gb: float | None = None
    startup_s: float | None = None
    availability: float | None = None

    @property
    def usd_per_gpu_hour(self) -> float:
        """The price of one accelerator, for display and comparison."""
        return self.usd_micros_per_hour / 1e6 / self.gpus

    @property
    def name(self) -> str:
        """A short name: provider, instance or accelerators, and region."""
        unit = self.instance or f"{self.gpus:g}x{self.accelerator}"
        return "/".join(part for part in (self.provider, self.region, unit) if part)
