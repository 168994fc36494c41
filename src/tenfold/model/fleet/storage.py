"""Storage media and the tiers built from them."""

from typing import Literal

from tenfold.model.facts.fact import Fact

TierRole = Literal["gpu-direct", "hot", "warm", "cold", "memory"]


class Medium(Fact, frozen=True, kw_only=True):
    """One drive, cartridge or memory module."""

    capacity_tb: float
    latency_us: float
    read_gb_per_s: float
    write_gb_per_s: float
    read_iops: float | None = None
    write_iops: float | None = None
    usd_per_tb: float | None = None
    power_w: float | None = None


class TierClass(Fact, frozen=True, kw_only=True):
    """A storage tier: capacity, throughput, streams and price of one shelf.

    Capacity, throughput and streams scale with the number of shelves.
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
