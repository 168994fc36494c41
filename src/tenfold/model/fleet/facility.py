"""Failures, power and money: facts about the building and about bad luck."""

from typing import Literal

import msgspec

from tenfold.model.facts.fact import Fact

Cooling = Literal["air", "liquid", "hybrid"]
PriceKind = Literal["owned", "reserved", "on-demand", "spot"]

IDLE_POWER_SHARE = 0.12
"""Share of its power that a machine without work draws: an assumption, and said to be one."""


class FailurePreset(Fact, frozen=True, kw_only=True):
    """How often nodes fail and how long they stay away, as one fleet saw it.

    `frailty_shape` is the shape of a gamma multiplier of mean 1 on each node's rate:
    small values mean a few lemons cause most faults. `arrival_cv` is the spread of the
    times between faults over their mean: 1 is plain chance, more means bursts. Repair is
    lognormal. `transient_causes` need a restart and no repair.
    """

    failures_per_1000_node_days: float
    gpus_per_node: int
    frailty_shape: float | None = None
    repair_h_median: float | None = None
    repair_h_mean: float | None = None
    arrival_cv: float = 1.0
    burst_nodes_max: int = 32
    """The most nodes that one burst takes: those behind one leaf; an assumption."""
    detection_s: float = 300.0
    """Until a failure is noticed: health checks every five minutes; an assumption."""
    restart_s: float = 600.0
    """From noticing to the first useful step; an assumption in the range of 5-20 minutes."""
    causes: dict[str, float] = msgspec.field(default_factory=dict)
    transient_causes: tuple[str, ...] = ()


class CoolingClass(Fact, frozen=True, kw_only=True):
    """What one rack may draw under a kind of cooling, and the building's overhead."""

    cooling: Cooling
    rack_kw_max: float
    pue: float


class EnergyDefaults(Fact, frozen=True, kw_only=True):
    """Figures that turn watts into money and carbon where a site says nothing."""

    usd_per_kwh: float
    co2_g_per_kwh: float
    server_overhead: float
    """Node power over the sum of its accelerators' TDP, where no node shape says."""


class PriceFact(Fact, frozen=True, kw_only=True):
    """What one provider asks for one accelerator-hour, over its regions and sizes."""

    provider: str
    accelerator: str
    kind: PriceKind
    usd_per_gpu_hour: float
    usd_per_gpu_hour_min: float
    usd_per_gpu_hour_max: float
    offers: int
    regions: int = 0
