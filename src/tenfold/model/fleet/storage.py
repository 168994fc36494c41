"""Storage media and the tiers built from them."""

from typing import Literal

from tenfold.model.facts.fact import Fact

TierRole = Literal["gpu-direct", "hot", "warm", "cold", "memory"]


class Medium(Fact, frozen=True, kw_only=True):
    """One drive, cartridge or module: what a single unit of a medium does."""

    capacity_tb: float
    latency_us: float
    read_gb_per_s: float
    write_gb_per_s: float
    read_iops: float | None = None
    write_iops: float | None = None
    usd_per_tb: float | None = None
    power_w: float | None = None


class TierClass(Fact, frozen=True, kw_only=True):
    """A tier as it is bought: one shelf, on three axes and in money.

    A tier grows by shelves; capacity, throughput and streams grow with them.
    """

    role: TierRole
    medium: str
    latency_us: float
    capacity_tb: float
    read_gb_per_s: float
    write_gb_per_s: float
    iops: float
    streams: int
    usd_per_tb_month: float
    power_kw: float | None = None
