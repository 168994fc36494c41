"""Drivers: what people know about demand that no history shows, from four groups.

Each driver has one amount at three levels, low, base and high, with probabilities, and a
probability that it happens at all. What it means in GPU-hours, TB and GB/s is worked out by the
planner, not stated.
"""

from typing import Annotated, Literal

from msgspec import Meta

from tenfold.model.growth.growth import GrowTable, Name, Rate, Seconds, Share, Tokens

DriverGroup = Literal["roadmap", "product", "data", "finance"]
DriverKind = Literal["training", "gpus", "service", "dataset", "budget"]
KIND_GROUPS: dict[DriverKind, tuple[DriverGroup, ...]] = {
    "training": ("roadmap",),
    "gpus": ("roadmap", "product"),
    "service": ("product",),
    "dataset": ("data",),
    "budget": ("finance",),
}
"""The groups that may state a kind of driver."""
Amount = Annotated[float, Meta(ge=0, le=1e15)]


class Levels(GrowTable, frozen=True, kw_only=True):
    """An amount at three levels; low and high are the base if they are left out."""

    base: Amount
    low: Amount | None = None
    high: Amount | None = None
    chances: tuple[Share, Share, Share] = (0.25, 0.5, 0.25)
    """Probabilities of low, base and high."""

    @property
    def values(self) -> tuple[float, float, float]:
        """The amount at low, base and high."""
        low = self.base if self.low is None else self.low
        return low, self.base, self.base if self.high is None else self.high

    @property
    def mean(self) -> float:
        """The amount to expect."""
        return sum(chance * value for chance, value in zip(self.chances, self.values, strict=True))


class Driver(GrowTable, frozen=True, kw_only=True):
    """One thing that will change demand, the budget or stored data.

    The amount is runs a year (`training`), GPUs (`gpus`), requests per second on top of today's
    (`service`), TB a month (`dataset`) or dollars a month (`budget`).
    """

    name: Name
    group: DriverGroup
    kind: DriverKind
    amount: Levels
    begins: str
    """The first day, such as `2027-03-01`."""
    ends: str = ""
    """The day it ends; empty: never."""
    probability: Share = 1.0
    """Probability that it happens at all."""
    demand: str = ""
    """The class of demand it adds to; empty: the only one."""
    model: str = ""
    tokens: Annotated[float, Meta(gt=0, le=1e18)] | None = None
    """Length of a training run in tokens."""
    gpus: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """GPUs of a training run; None: as many as the planner chooses."""
    input_tokens: Tokens | None = None
    output_tokens: Tokens | None = None
    ttft_s: Seconds | None = None
    tpot_s: Seconds | None = None
    tier: str = ""
    """The tier that a dataset is stored on."""
    passes_per_month: Rate | None = None
    """How often a month new data is read in whole; None: not read."""
