"""The kinds of fact: name, record type, and table of the catalogue."""

from typing import NamedTuple

from tenfold.model.facts.fact import Fact
from tenfold.model.facts.profiles import EngineProfile, StackCorrection, StackProfile
from tenfold.model.facts.shape import ModelPreset
from tenfold.model.fleet.facility import (
    CoolingClass,
    EnergyDefaults,
    FailurePreset,
    PriceFact,
    UnitPrice,
)
from tenfold.model.fleet.hardware import Accelerator, LinkClass, NodeShape
from tenfold.model.fleet.storage import Medium, TierClass
from tenfold.model.job.workload import WorkloadMix
from tenfold.model.market.offer import ProviderTerms


class Kind(NamedTuple):
    """One kind of fact."""

    name: str
    struct: type[Fact]
    table: str
    says: str


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("accelerator", Accelerator, "accelerators", "peak FLOPS, memory, links, power"),
        Kind("link", LinkClass, "links", "rate, latency, efficiency by message size"),
        Kind("node", NodeShape, "nodes", "servers and cloud instances"),
        Kind("medium", Medium, "media", "one drive, cartridge or module"),
        Kind("tier", TierClass, "tiers", "one shelf of a storage tier"),
        Kind("failure", FailurePreset, "failures", "failure rates and repair times"),
        Kind("cooling", CoolingClass, "cooling", "kW per rack and PUE"),
        Kind("energy", EnergyDefaults, "energy", "price and carbon per kWh"),
        Kind("price", PriceFact, "prices", "dollars per GPU-hour, by provider"),
        Kind("provider", ProviderTerms, "providers", "egress, start-up, trust and regions"),
        Kind("unit-price", UnitPrice, "unit_prices", "dollars per port, rack, kW and technician"),
        Kind("model", ModelPreset, "models", "layer shapes of published models"),
        Kind("stack", StackProfile, "stacks", "efficiency of training stacks"),
        Kind("correction", StackCorrection, "corrections", "adjustments from published runs"),
        Kind("engine", EngineProfile, "engines", "efficiency of serving engines"),
        Kind("workload", WorkloadMix, "workloads", "job mixes: sizes, durations, daily pattern"),
    )
}
