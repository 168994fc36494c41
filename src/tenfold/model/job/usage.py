"""How much of what it holds is used: figures of one look, none of which is a decision."""

from typing import Literal

from msgspec import Struct

from tenfold.model.units import Millis

Measure = Literal["gpu", "cpu"]
"""`gpu` asked the devices themselves. `cpu` stands in for them where they are only numbers, or
where a job holds none: it is the CPU time of its processes."""


class GpuUse(Struct, frozen=True, kw_only=True):
    """One device of this machine."""

    number: int
    use_milli: int
    """Thousandths of the time in which something ran on it."""
    memory_used_bytes: int
    memory_bytes: int


class JobUse(Struct, frozen=True, kw_only=True):
    """One attempt that runs."""

    at_ms: Millis
    measure: Measure
    use_milli: int
    """By `gpu` the mean of its devices; by `cpu` thousandths of one CPU, all processes together."""
    use_milli_most: int
    """By `gpu` that of its busiest device; by `cpu` the same again."""
    memory_used_bytes: int = 0
    """Of its devices, where they could be asked."""
