"""The catalogue: every fact as a value, looked up by any common spelling."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Generic, TypeVar

from msgspec import Struct

from tenfold.model.errors import InputError
from tenfold.model.facts.fact import Fact, spelling
from tenfold.model.facts.profiles import EngineProfile, StackCorrection, StackProfile
from tenfold.model.facts.shape import ModelPreset
from tenfold.model.fleet.facility import (
    CoolingClass,
    EnergyDefaults,
    FailurePreset,
    PriceFact,
    PriceKind,
    UnitPrice,
)
from tenfold.model.fleet.hardware import Accelerator, LinkClass, NodeShape
from tenfold.model.fleet.storage import Medium, TierClass
from tenfold.model.job.workload import WorkloadMix
from tenfold.model.market.offer import ProviderTerms

F = TypeVar("F", bound=Fact)


LISTED_MAX = 12
"""A hint lists the names of a table up to this size; larger tables have a command."""
NOUNS = {
    "node": "node shape",
    "medium": "storage medium",
    "tier": "tier class",
    "failure": "failure preset",
    "cooling": "cooling class",
    "unit-price": "unit price",
    "stack": "training stack",
    "engine": "serving engine",
}
"""What a fact is called where the name of its kind is not enough."""


class FactTable(Generic[F]):
    """Facts of one kind by name, in the order of their files."""

    def __init__(self, kind: str, facts: Mapping[str, F]) -> None:
        self.kind = kind
        self._facts = dict(facts)
        self._names: dict[str, str] = {}
        for fact in self._facts.values():
            for alias in fact.aliases:
                self._names.setdefault(spelling(alias), fact.name)
        for name in self._facts:
            self._names[spelling(name)] = name

    @property
    def noun(self) -> str:
        """What one fact of this kind is called in a sentence."""
        return NOUNS.get(self.kind, self.kind)

    def __iter__(self) -> Iterator[F]:
        return iter(self._facts.values())

    def __len__(self) -> int:
        return len(self._facts)

    def find(self, name: str) -> F | None:
        """Return the fact known under any spelling of `name`, or None."""
        known = self._names.get(spelling(name))
        return None if known is None else self._facts[known]

    def get(self, name: str) -> F:
        """Return the fact known under any spelling of `name`, or raise with suggestions."""
        fact = self.find(name)
        if fact is None:
            raise InputError(
                f"unknown-{self.kind}", f"unknown {self.noun} `{name}`", self.hint(name)
            )
        return fact

    def hint(self, name: str) -> str:
        """Return what to try instead of an unknown name."""
        near = get_close_matches(spelling(name), list(self._names), n=3, cutoff=0.6)
        listing = f"`tenfold facts list --kind {self.kind}` lists every {self.noun}"
        if self.kind == "accelerator":
            listing = f"{listing}; `--facts` adds your own"
        if len(self) <= LISTED_MAX:
            listing = f"known: {', '.join(f'`{fact.name}`' for fact in self)}"
        if not near:
            return listing
        *most, last = dict.fromkeys(f"`{self._names[key]}`" for key in near)
        names = f"{', '.join(most)} or {last}" if most else last
        return f"did you mean {names}? {listing}"


class Catalogue(Struct, frozen=True, kw_only=True):
    """All facts, as plain values."""

    accelerators: FactTable[Accelerator]
    links: FactTable[LinkClass]
    nodes: FactTable[NodeShape]
    media: FactTable[Medium]
    tiers: FactTable[TierClass]
    failures: FactTable[FailurePreset]
    cooling: FactTable[CoolingClass]
    energy: FactTable[EnergyDefaults]
    prices: FactTable[PriceFact]
    providers: FactTable[ProviderTerms]
    unit_prices: FactTable[UnitPrice]
    models: FactTable[ModelPreset]
    stacks: FactTable[StackProfile]
    corrections: FactTable[StackCorrection]
    engines: FactTable[EngineProfile]
    workloads: FactTable[WorkloadMix]

    @property
    def tables(self) -> tuple[FactTable[Fact], ...]:
        """Every table, in listing order."""
        return tuple(getattr(self, field) for field in self.__struct_fields__)

    def default_shape(self, accelerator: str, gpus: int) -> NodeShape | None:
        """Return the first server shape with these accelerators, owned ones first."""
        fitting = [
            shape for shape in self.nodes if shape.accelerator == accelerator and shape.gpus == gpus
        ]
        return min(fitting, key=lambda shape: bool(shape.provider), default=None)

    def prices_of(self, accelerator: str, kind: PriceKind) -> list[PriceFact]:
        """Return the price facts of one accelerator and kind, cheapest first."""
        rows = [row for row in self.prices if row.accelerator == accelerator and row.kind == kind]
        return sorted(rows, key=lambda row: (row.usd_per_gpu_hour, row.provider))
