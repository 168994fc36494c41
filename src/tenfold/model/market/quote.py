"""A quote: what one job costs on one offer, and why."""

from msgspec import Struct

from tenfold.model.market.offer import Offer, Trust

EU = (
    "AT",
    "BE",
    "BG",
    "CY",
    "CZ",
    "DE",
    "DK",
    "EE",
    "ES",
    "FI",
    "FR",
    "GR",
    "HR",
    "HU",
    "IE",
    "IT",
    "LT",
    "LU",
    "LV",
    "MT",
    "NL",
    "PL",
    "PT",
    "RO",
    "SE",
    "SI",
    "SK",
)
"""ISO codes of the members of the European Union."""
AREAS: dict[str, tuple[str, ...]] = {
    "EU": EU,
    "EEA": (*EU, "IS", "LI", "NO"),
}
"""Names of several countries that a residency rule may use."""


class RentalRules(Struct, frozen=True, kw_only=True):
    """What an offer must meet to be ranked."""

    countries: tuple[str, ...] = ()
    """ISO codes that data may be in; empty for any."""
    trust: Trust = "community"
    """The least trusted operator that is accepted."""
    deadline_h: float | None = None
    availability: float = 0.0


class Speed(Struct, frozen=True, kw_only=True):
    """How a job runs on one kind of instance."""

    gpus: int
    """GPUs that the job uses."""
    instances: int
    """Nodes: each of them may fail."""
    units: int
    """How often the price of the offer is paid: instances, or GPUs where it is sold by the GPU."""
    work_per_hour: float
    """At full speed, in units of work."""
    save_s: float = 0.0
    """Time to save a checkpoint."""
    cold_start_s: float = 0.0
    """From a started instance to the first useful step, beyond the provider's start-up."""
    how: str = ""
    calibrated: bool = True
    """Whether measured runs of this accelerator are known; else its speed is a rougher guess."""


class Quote(Struct, frozen=True, kw_only=True):
    """The cost of a job on one offer."""

    offer: Offer
    instances: int
    gpus: int
    usd_per_hour: float
    usd_per_gpu_hour: float
    """The listed price."""
    work_per_hour: float
    effective_share: float
    """Share of the billed time that is useful work (goodput): without failures, reclaims,
    restarts."""
    billed_h: float
    calendar_h: float
    usd: float
    usd_egress: float
    usd_per_unit: float
    how: str
    assumed: tuple[str, ...] = ()
    """Terms that the provider does not state."""
