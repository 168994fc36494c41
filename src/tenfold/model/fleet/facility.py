"""Facts about failures, cooling, energy and prices."""

from typing import Literal

import msgspec

from tenfold.model.facts.fact import Fact

Cooling = Literal["air", "liquid", "hybrid"]
PriceKind = Literal["owned", "reserved", "on-demand", "spot"]

IDLE_POWER_SHARE = 0.12
"""Share of its full power that an idle node draws (an assumption)."""


class FailurePreset(Fact, frozen=True, kw_only=True):
    """How often nodes fail and how long repairs take, as observed on one fleet.

    `frailty_shape` is the shape of a gamma multiplier of mean 1 on each node's rate:
    small values mean that a few bad nodes cause most failures. `arrival_cv` is the
    coefficient of variation of the time between failures: 1 is a Poisson process, more means
    bursts. Repair times are lognormal. `transient_causes` need a restart but no repair.
    """

    failures_per_1000_node_days: float
    gpus_per_node: int
    frailty_shape: float | None = None
    repair_h_median: float | None = None
    repair_h_mean: float | None = None
    arrival_cv: float = 1.0
    burst_nodes_max: int = 32
    """Nodes that one burst takes down at most: those behind one leaf (an assumption)."""
    detection_s: float = 300.0
    """Time until a failure is noticed: health checks every five minutes (an assumption)."""
    restart_s: float = 600.0
    """Time from detection to the first useful step (an assumption; 5-20 minutes is typical)."""
    causes: dict[str, float] = msgspec.field(default_factory=dict)
    transient_causes: tuple[str, ...] = ()


class CoolingClass(Fact, frozen=True, kw_only=True):
    """The rack power limit of a kind of cooling, and its PUE."""

    cooling: Cooling
    rack_kw_max: float
    pue: float


class EnergyDefaults(Fact, frozen=True, kw_only=True):
    """Default energy price and carbon intensity for sites that state none."""

    usd_per_kwh: float
    co2_g_per_kwh: float
    server_overhead: float
    """Node power over the sum of its accelerators' TDP, for nodes without a known shape."""


class UnitPrice(Fact, frozen=True, kw_only=True):
    """What one unit of the building, the network or the staff costs, with its range."""

    usd: float
    usd_min: float
    usd_max: float
    months: float = 1.0
    """Months over which a purchase is spread; 1 for what is paid by month."""


class PriceFact(Fact, frozen=True, kw_only=True):
    """What one provider charges for an accelerator-hour, over its regions and instance sizes."""

    provider: str
    accelerator: str
    kind: PriceKind
    usd_per_gpu_hour: float
    usd_per_gpu_hour_min: float
    usd_per_gpu_hour_max: float
    offers: int
    regions: int = 0
