"""Load, check and sum a fleet file with the facts laid under it."""

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from tenfold.compose.settings import facts_folder
from tenfold.facts.loader import load_catalogue
from tenfold.files.fleet.read import load_fleet as load_fleet_file
from tenfold.files.fleet.read import read_fleet
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.facts.fact import spelling
from tenfold.model.fleet.finding import Finding
from tenfold.model.fleet.spec import FleetSpec
from tenfold.physics.layout import Layout, lay_out
from tenfold.physics.limits import lint

UNUSED_FACTS = ("stacks", "corrections", "engines", "workloads")
"""What neither a simulation nor a control plane looks up."""
OwnFacts = Annotated[
    Path | None,
    Meta(
        description="Directory with data that overrides the built-in data on hardware, prices "
        "and models"
    ),
]
"""Which facts a question is answered with."""


class FleetCheck(Struct, frozen=True, kw_only=True):
    """Everything found about one file, faults first."""

    file: str
    faults: tuple[Finding, ...]
    warnings: tuple[Finding, ...]


class OpenFleet(Struct, frozen=True, kw_only=True):
    """A fleet with its layout and the facts it was read with."""

    spec: FleetSpec
    layout: Layout
    catalogue: Catalogue


def load_facts(folder: str | Path | None = None, *, without: Collection[str] = ()) -> Catalogue:
    """Return the shipped facts with a user's folder over them, but for files left unread."""
    chosen = facts_folder(None if folder is None else Path(folder))
    return load_catalogue(chosen, without=without)


def load_fleet(path: str | Path, facts: str | Path | None = None) -> FleetSpec:
    """Return the description in a fleet file, or raise with all of its faults."""
    return load_fleet_file(Path(path), load_facts(facts))


def open_fleet(path: Path, facts: Path | None = None) -> OpenFleet:
    """Load a fleet file and lay its nodes out."""
    catalogue = load_facts(facts)
    spec = load_fleet_file(path, catalogue)
    return OpenFleet(spec=spec, layout=lay_out(spec), catalogue=catalogue)


def check_fleet(path: Path, facts: Path | None = None) -> FleetCheck:
    """Read a fleet file to its end and lint it where it has no fault."""
    catalogue = load_facts(facts)
    reading = read_fleet(path, catalogue)
    if reading.spec is None:
        return FleetCheck(file=str(path), faults=reading.findings, warnings=())
    warnings = reading.located(lint(lay_out(reading.spec), catalogue))
    warnings.sort(key=lambda found: (found.line or 0, found.code))
    return FleetCheck(file=str(path), faults=(), warnings=tuple(warnings))


def choose_accelerator(fleet: FleetSpec) -> str:
    """Return the hint for an accelerator that a fleet does not have."""
    names = dict.fromkeys(pool.accelerator for pool in fleet.pools if pool.gpus)
    known = ", ".join(name for name in names if name)
    return f"choose an accelerator in the fleet: {known}" if known else "add a pool with GPUs"


def accelerator_names(names: Iterable[str | None]) -> Mapping[str, str]:
    """Return the accelerator names of a fleet by their spelling."""
    return {spelling(name): name for name in dict.fromkeys(names) if name}


def canonical_accelerator(name: str, fleet_names: Mapping[str, str], catalogue: Catalogue) -> str:
    """Return an accelerator's name as the fleet has it: by the facts, or by its own names."""
    part = catalogue.accelerators.find(name)
    return part.name if part else fleet_names.get(spelling(name), name)
