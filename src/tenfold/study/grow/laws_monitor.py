"""Laws of monitoring: samples that arrive against those taken in, and bytes against the store.

Series belong to nodes and GPUs, so monitoring grows with the fleet. What is scraped a second
must be taken in at once; what is kept must find room.
"""

from tenfold.model.growth import Axis, Monitoring, grown_by, moves
from tenfold.physics.growth.law import STATED, Law, Named
from tenfold.study.grow.state import State

INTAKE = Named("monitoring", "samples", 55)
STORE = Named("monitoring", "store", 56)
SECONDS_PER_DAY = 86_400
_TABLE = "under `[monitoring]` of the grow file"


def monitor_laws(state: State, axis: Axis) -> list[Law]:
    """Return the laws of intake and of the store; each is unknown without its own figures."""
    if not moves(axis, "nodes"):
        return []
    stated = state.grow.monitoring
    if stated == Monitoring():
        return [INTAKE.unknown(f"`series_per_node` and `interval_s` {_TABLE}")]
    return [_intake(state, axis), _store(state, axis)]


def _samples_per_s(state: State) -> float | None:
    """Return the samples a second of the fleet as it is; None where figures are missing."""
    stated = state.grow.monitoring
    if stated.interval_s is None or (
        stated.series_per_node is None and stated.series_per_gpu is None
    ):
        return None
    series = (stated.series_per_node or 0.0) * state.spec.nodes
    series += (stated.series_per_gpu or 0.0) * state.spec.gpus
    return series / stated.interval_s


def _missing(state: State, **others: object) -> str:
    """Return the first key that is needed and not stated, by the name it has in the file."""
    stated = state.grow.monitoring
    series = stated.series_per_node if stated.series_per_gpu is None else stated.series_per_gpu
    known = {"series_per_node": series, "interval_s": stated.interval_s, **others}
    return next((f"`{key}` {_TABLE}" for key, value in known.items() if value is None), "")


def _intake(state: State, axis: Axis) -> Law:
    most, today = state.grow.monitoring.samples_per_s_most, _samples_per_s(state)
    if most is None or today is None:
        return INTAKE.unknown(_missing(state, samples_per_s_most=most))

    def arriving(factor: float) -> float:
        return today * grown_by(axis, "nodes", factor)

    def seen(factor: float) -> str:
        return f"{arriving(factor):,.0f} samples a second arrive, {most:,.0f} are taken in"

    return INTAKE.law(arriving, most, STATED, seen)


def _store(state: State, axis: Axis) -> Law:
    stated, today = state.grow.monitoring, _samples_per_s(state)
    days, room = stated.retention_days, stated.store_bytes
    if days is None or room is None or today is None:
        return STORE.unknown(_missing(state, retention_days=days, store_tb=room))

    def kept(factor: float) -> float:
        samples = today * grown_by(axis, "nodes", factor) * days * SECONDS_PER_DAY
        return samples * stated.bytes_per_sample

    def seen(factor: float) -> str:
        return (
            f"{days:g} days of samples take {kept(factor) / 1e12:,.2f} TB of {room / 1e12:,.2f} TB"
        )

    return STORE.law(kept, float(room), STATED, seen)
