"""A baseline: how fast a workload ran when it ran well, kept to compare later runs with.

What is measured comes in three kinds, since tools see different things: the steps of a
job, the transfers of a network test, the kernels of a profile. Only like is compared
with like.
"""

from typing import Literal

from msgspec import Struct

STORED_VALUES_MAX = 1_000
"""Longer runs keep this many of their steps, spread evenly over the run."""

Part = Literal["compute", "communication", "data"]
PARTS: tuple[Part, ...] = ("compute", "communication", "data")


class Steps(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="steps"):
    """Seconds of the steps of a job, in order, and of the parts of each where known."""

    count: int
    """Steps that were seen; fewer may be kept."""
    step_s: tuple[float, ...]
    parts_s: dict[Part, tuple[float, ...]] = {}


class Transfer(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One size of a collective as a network test timed it."""

    size_bytes: int
    in_place: bool
    time_us: float
    bus_gb_per_s: float


class Transfers(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="transfers"):
    """A collective timed over sizes."""

    operation: str
    transfers: tuple[Transfer, ...]


class Kernel(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All calls of one GPU kernel in a profile."""

    name: str
    calls: int
    mean_s: float
    median_s: float
    deviation_s: float

    @property
    def part(self) -> Part:
        """Kernels of NCCL communicate, all others compute."""
        return "communication" if is_communication(self.name) else "compute"


class Kernels(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag="kernels"):
    """The kernels of a profile."""

    kernels: tuple[Kernel, ...]


Measured = Steps | Transfers | Kernels


class Baseline(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One recorded run of a workload; `number` counts them from 1."""

    number: int
    recorded_at_ms: int
    source: str
    measured: Measured
    keys: dict[str, str] = {}
    """What the run ran on and with: `gpus`, `accelerator`, `stack` ..."""
    note: str = ""


def kind_of(measured: Measured) -> str:
    """Return the kind of a measurement as people call it."""
    match measured:
        case Steps():
            return "steps"
        case Transfers():
            return "transfers"
        case Kernels():
            return "kernels"


def is_communication(kernel: str) -> bool:
    """Tell whether a kernel moves data between GPUs, by its name."""
    return kernel.removeprefix("void ").lower().startswith(("nccl", "rccl"))


def downsample_values(values: tuple[float, ...]) -> tuple[float, ...]:
    """Return at most as many values as are kept, spread evenly and in order."""
    size = len(values)
    if size <= STORED_VALUES_MAX:
        return values
    return tuple(values[at * size // STORED_VALUES_MAX] for at in range(STORED_VALUES_MAX))
