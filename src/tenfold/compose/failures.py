"""Resolve `--failures`: a preset, none, or a recorded fault trace."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tenfold.files.traces.node_faults import read_fault_trace
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.facts.failure_law import NO_FAILURES, FailureLaw, law_of
from tenfold.model.fault import Fault, FaultTrace
from tenfold.model.fleet.node import Node
from tenfold.model.units import Millis
from tenfold.sim.faults.generate import generate_faults
from tenfold.sim.faults.replay import replay_faults

FailureSource = FailureLaw | FaultTrace
START_MS = Millis(0)
_TRACE_SUFFIXES = (".json", ".csv")


def failure_source(named: str, catalogue: Catalogue) -> FailureSource:
    """Return the law or trace of a name: `none`, a preset, or a file."""
    if named.strip().lower() == NO_FAILURES.name:
        return NO_FAILURES
    preset = catalogue.failures.find(named)
    if preset is not None:
        return law_of(preset)
    path = Path(named)
    if path.suffix.lower() in _TRACE_SUFFIXES or len(path.parts) > 1 or path.exists():
        return read_fault_trace(path)
    return law_of(catalogue.failures.get(named))


def faults_of(
    source: FailureSource,
    nodes: Sequence[Node],
    horizon_ms: Millis,
    seed: int,
    lasting_after_ms: Millis = START_MS,
) -> tuple[Iterator[Fault], list[str]]:
    """Return the faults of a fleet in order of time, and notes on assumptions.

    Drawn faults that end before `lasting_after_ms` are left out.
    """
    if isinstance(source, FaultTrace):
        return replay_faults(source, nodes, horizon_ms)
    return generate_faults(nodes, source, horizon_ms, seed, lasting_after_ms), []
