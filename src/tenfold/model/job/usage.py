"""Utilization of what a job holds: the values of one sample."""

from typing import Literal

from msgspec import Struct

from tenfold.model.units import Millis

Measure = Literal["gpu", "cpu"]
"""`gpu` is measured on the devices. `cpu` is the CPU time of the processes, used for jobs without
GPUs and on virtual nodes without real devices."""


class GpuUse(Struct, frozen=True, kw_only=True):
    """One device of this machine."""

    number: int
    use_milli: int
    """Per mille of the time in which a kernel ran on it."""
    memory_used_bytes: int
    memory_bytes: int


class JobUse(Struct, frozen=True, kw_only=True):
    """One running attempt."""

    at_ms: Millis
    measure: Measure
    use_milli: int
    """For `gpu`, the mean over its devices; for `cpu`, milli-CPUs of all its processes."""
    use_milli_most: int
    """For `gpu`, the busiest device; for `cpu`, the same as `use_milli`."""
    memory_used_bytes: int = 0
    """Memory in use on its devices, where measured."""
