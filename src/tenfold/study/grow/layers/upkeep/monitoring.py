"""Monitoring: samples scraped against the ingest rate, and bytes stored against the store.

Series belong to nodes and GPUs, so monitoring grows with the fleet. A longer scrape interval costs
no money but hides shorter events; the relief says so.
"""

from collections.abc import Callable, Iterable
from math import ceil

from msgspec.structs import replace

from tenfold.model.growth.growth import Axis, Monitoring, grown_by
from tenfold.physics.growth.breaking import STATED
from tenfold.report.figures import count
from tenfold.study.grow.cost.prices import priced
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks, round_up_digits, with_relief
from tenfold.study.grow.state import State

SAMPLES, STORE = "samples", "store"
SECONDS_PER_DAY = 86_400
_TABLE = "under `[monitoring]` in the grow file"


class MonitoringLayer(ComputedLayer):
    """Samples scraped against the ingest rate, and samples kept against the store."""

    name = "monitoring"
    labels = ((SAMPLES, "Monitoring ingest"), (STORE, "Monitoring storage"))
    breaks = "samples exceed what Prometheus can ingest, or what the store can hold"
    cause_rank = 55
    grows_with = ("nodes",)
    grows_by = "series of the nodes and their GPUs"
    needs = f"`series_per_node` and `interval_s` {_TABLE}"
    fixed_by = "a longer scrape interval, shorter retention, more servers, or a larger store"
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraints on ingest and store; each is unknown without its inputs."""
        if state.grow.monitoring == Monitoring():
            return [self.unknown(SAMPLES)]
        return [self._intake(state, axis), self._store(state, axis)]

    def _intake(self, state: State, axis: Axis) -> Constraint:
        most, today = state.grow.monitoring.samples_per_s_most, _samples_per_s(state)
        if most is None or today is None:
            return self.unknown(SAMPLES, _missing(state, samples_per_s_most=most))

        def arriving(factor: float) -> float:
            return today * grown_by(axis, "nodes", factor)

        def symptom(factor: float) -> str:
            return f"Prometheus ingests {arriving(factor):,.0f} of {most:,.0f} samples/s"

        def relieve(multiple: float) -> list[Relief]:
            return [_coarser(state, multiple), _servers(most, multiple)]

        return self.constraint(SAMPLES, arriving, most, STATED, symptom, relieve)

    def _store(self, state: State, axis: Axis) -> Constraint:
        stated, today = state.grow.monitoring, _samples_per_s(state)
        days, room = stated.retention_days, stated.store_bytes
        if days is None or room is None or today is None:
            return self.unknown(STORE, _missing(state, retention_days=days, store_tb=room))

        def kept(factor: float) -> float:
            samples = today * grown_by(axis, "nodes", factor) * days * SECONDS_PER_DAY
            return samples * stated.bytes_per_sample

        def symptom(factor: float) -> str:
            tb = f"{kept(factor) / 1e12:,.2f} of {room / 1e12:,.2f} TB"
            return f"{days:g} days of samples: {tb}"

        def relieve(multiple: float) -> list[Relief]:
            return [
                _coarser(state, multiple),
                _shorter(days, multiple),
                _larger(state, room, multiple),
            ]

        return self.constraint(STORE, kept, float(room), STATED, symptom, relieve)


def _samples_per_s(state: State) -> float | None:
    """Return the samples per second of today's fleet; None if inputs are missing."""
    stated = state.grow.monitoring
    if stated.interval_s is None or (
        stated.series_per_node is None and stated.series_per_gpu is None
    ):
        return None
    series = (stated.series_per_node or 0.0) * state.spec.nodes
    series += (stated.series_per_gpu or 0.0) * state.spec.gpus
    return series / stated.interval_s


def _missing(state: State, **others: object) -> str:
    """Return the first missing key, by its name in the file."""
    stated = state.grow.monitoring
    series = stated.series_per_node if stated.series_per_gpu is None else stated.series_per_gpu
    known = {"series_per_node": series, "interval_s": stated.interval_s, **others}
    return next((f"`{key}` {_TABLE}" for key, value in known.items() if value is None), "")


def _coarser(state: State, multiple: float) -> Relief:
    old = state.grow.monitoring.interval_s or 1.0
    new = round_up_digits(old * multiple)
    text = f"scrape every {new:g} s instead of {old:g} s (shorter events are missed)"
    return Relief("interval", text, 0.0, 0.0, _monitored("interval", interval_s=new))


def _servers(one: float, multiple: float) -> Relief:
    parts = ceil(multiple * NEARLY)
    text = f"split the nodes across {count(parts, 'server')} of {one:,.0f} samples/s each"
    apply = _monitored("servers", samples_per_s_most=one * parts)
    return Relief("servers", text, None, None, apply)


def _shorter(days: float, multiple: float) -> Relief:
    fewer = float(f"{days / multiple * NEARLY:.6g}")
    kept = int(fewer) if fewer >= 1 else fewer
    text = f"keep samples for {kept:g} days instead of {days:g}"
    return Relief("retention", text, 0.0, 0.0, _monitored("retention", retention_days=kept))


def _larger(state: State, room: int, multiple: float) -> Relief:
    tb = round_up_digits(ceil(room * multiple) / 1e12)
    text = f"grow the store to {tb:g} TB (up from {room / 1e12:g})"
    apply = _monitored("store", store_tb=tb)
    relief = Relief("store", text, None, lead_weeks(state, "storage"), apply)
    return priced(state, relief, "storage-tb", tb - room / 1e12)


def _monitored(relief: str, **changed: float) -> Callable[[State], State]:
    def apply(now: State) -> State:
        monitoring: Monitoring = replace(now.grow.monitoring, **changed)
        return replace(with_relief(now, relief), grow=replace(now.grow, monitoring=monitoring))

    return apply
