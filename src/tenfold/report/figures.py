"""Format numbers for people."""

from tenfold.model.units import GIB, TIB, usd


def quantity_bytes(value: float) -> str:
    """Return memory in GiB or TiB."""
    if value >= TIB:
        return f"{value / TIB:,.1f} TiB"
    return f"{value / GIB:,.0f} GiB"


def file_bytes(value: float) -> str:
    """Return the size of a file in a readable unit."""
    for unit in ("bytes", "KiB", "MiB"):
        if value < 1_024:
            return f"{value:,.0f} {unit}"
        value /= 1_024
    return f"{value:,.1f} GiB"


def rate_bytes(value: float) -> str:
    """Return a rate in MB/s, GB/s or TB/s."""
    if value >= 1e12:
        return f"{value / 1e12:,.1f} TB/s"
    return f"{value / 1e9:,.1f} GB/s" if value >= 1e9 else f"{value / 1e6:,.1f} MB/s"


def line_rate(value: float) -> str:
    """Return a rate in bytes per second as links are sold, in Gbit/s or Mbit/s."""
    gbps = value * 8 / 1e9
    return f"{gbps:,.4g} Gbit/s" if gbps >= 1 else f"{gbps * 1_000:,.4g} Mbit/s"


def delay_us(value: float) -> str:
    """Return a delay in microseconds or milliseconds."""
    return f"{value / 1000:,.1f} ms" if value >= 1000 else f"{value:,.1f} us"


def power_kw(value: float) -> str:
    """Return power in kW or MW."""
    return f"{value / 1000:,.2f} MW" if value >= 1000 else f"{value:,.1f} kW"


def pflops(value: float) -> str:
    """Return arithmetic in PFLOP/s or EFLOP/s."""
    return f"{value / 1000:,.2f} EFLOP/s" if value >= 1000 else f"{value:,.1f} PFLOP/s"


def dollars(micros: int) -> str:
    """Return micro-dollars as dollars and cents."""
    return f"${usd(micros):,.2f}"


def share(value: float) -> str:
    """Return a share as a percentage, with one decimal if it is small."""
    if 0 < value < 0.0005:
        return "<0.1%"
    return f"{value:.0%}" if value >= 0.1 or value == 0 else f"{value:.1%}"


def count(value: int, noun: str) -> str:
    """Return `1 node`, `2 nodes`."""
    if value == 1:
        return f"1 {noun}"
    # `copy`, but not `day`.
    by_ies = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    return f"{value:,} {noun[:-1]}ies" if by_ies else f"{value:,} {noun}s"
