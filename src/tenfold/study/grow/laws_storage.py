"""Laws of storage: what a tier holds, what it reads and writes, and how many read at once.

What jobs draw comes from their profiles and the history, as a mean over its span: peaks are
for runs. Without profiles the model that the fleet expects stands in, read by every GPU at
once, and that is an assumption. No more jobs run than the GPUs there are carry: where the
fleet is full, more arrivals wait, and read no more.
"""

import numpy as np
from msgspec import Struct

from tenfold.model.fleet_spec import Tier
from tenfold.model.growth import Axis, Quantity, grown_by, moves
from tenfold.model.job import Job
from tenfold.model.units import SECOND
from tenfold.physics.growth.law import ASSUMED, STATED, SUPPOSED, Evidence, Law, Named, weakest
from tenfold.physics.operations.goodput import (
    checkpoint_bytes,
    checkpoint_s,
    daly_interval_s,
    goodput,
    mttf_s,
)
from tenfold.report.figures import rate_bytes
from tenfold.study.ceiling_storage import USUAL_STREAMS_PER_GPU, feed_rate, feeding_tier
from tenfold.study.design import Design
from tenfold.study.grow.history import busier, gpus_of, span_s
from tenfold.study.grow.state import State

CAPACITY, READ, STREAMS, WRITE = 30, 31, 32, 33
ASYNC_SAVES = "async-saves"
"""Code of the relief by which saves run beside training."""
STANDING_SHARE = 0.1
"""Part of a save for which training still stands when saves run beside it; an assumption."""
NO_DRAW = "profiles of jobs with a history, or `model` under `[expects]`"
_READ_BY: tuple[Quantity, ...] = ("data", "jobs", "job-size", "nodes")


class Draw(Struct, frozen=True, kw_only=True):
    """What jobs draw from one tier today, and how full the fleet is while they do."""

    read_bytes_per_s: float = 0.0
    write_bytes_per_s: float = 0.0
    readers: float = 0.0
    """GPUs that read, on average."""
    load: float = 1.0
    """GPUs in use over those there are."""
    evidence: Evidence


def storage_laws(state: State, axis: Axis) -> list[Law]:
    """Return the laws of every tier on its axes, and of saves."""
    tiers = state.spec.tiers
    if not tiers:
        grows = any(moves(axis, quantity) for quantity in _READ_BY)
        none = Named("storage-read", "tiers", READ).unknown("a tier that jobs read from")
        return [none] if grows else []
    return [*_capacities(state, axis), *_draw_laws(state, axis), *_saves(state, axis)]


def _capacities(state: State, axis: Axis) -> list[Law]:
    datasets = state.grow.datasets
    if not datasets:
        name = Named("storage-capacity", "tiers", CAPACITY)
        return [name.unknown("`dataset`s: what lies on the tiers")] if moves(axis, "data") else []
    return [
        _capacity(state, axis, tier)
        for tier in state.spec.tiers
        if any(dataset.tier == tier.id for dataset in datasets)
    ]


def _capacity(state: State, axis: Axis, tier: Tier) -> Law:
    held = [dataset for dataset in state.grow.datasets if dataset.tier == tier.id]

    def wanted(factor: float) -> float:
        return sum(
            dataset.bytes * (factor if _grows(axis, dataset.grows_with) else 1.0)
            for dataset in held
        )

    def seen(factor: float) -> str:
        return f"{wanted(factor) / 1e12:,.0f} TB lie on {tier.id}, of {tier.capacity / 1e12:,.0f}"

    name = Named("storage-capacity", f"tier {tier.id}", CAPACITY)
    return name.law(wanted, float(tier.capacity), _axis_evidence(tier, "capacity_tb"), seen)


def _grows(axis: Axis, along: Axis) -> bool:
    """Bytes that grow with everything grow along any axis."""
    return along == "all" or moves(axis, along)


def _draw_laws(state: State, axis: Axis) -> list[Law]:
    """Return reads, streams and mean writes of tiers that jobs are known to draw from."""
    draws = _draws(state)
    if not draws:
        grows = any(moves(axis, quantity) for quantity in _READ_BY)
        name = Named("storage-read", "tiers", READ)
        return [name.unknown(NO_DRAW)] if grows else []
    laws: list[Law] = []
    for tier in state.spec.tiers:
        draw = draws.get(tier.id)
        if draw is None:
            continue
        if draw.read_bytes_per_s:
            laws += [_read(axis, tier, draw), _streams(axis, tier, draw)]
        if draw.write_bytes_per_s:
            laws.append(_write(axis, tier, draw))
    return laws


def _draws(state: State) -> dict[str, Draw]:
    """Return what is drawn from each tier: by the history, else by the model expected."""
    profiles = state.inputs.profiles
    known = [job for job in state.inputs.jobs if job.profile in profiles and job.duration_ms]
    if known:
        return _history_draws(state, known)
    design = state.asked.design
    if design is None:
        return {}
    tier, rate = feeding_tier(design), feed_rate(design)
    if tier is None or rate is None:
        return {}
    gpus = float(design.gpus_today)
    return {tier.id: Draw(read_bytes_per_s=rate[0] * gpus, readers=gpus, evidence=ASSUMED)}


def _history_draws(state: State, known: list[Job]) -> dict[str, Draw]:
    span = span_s(known)
    gpus = max(1, state.spec.gpus)
    load = sum(gpus_of(job) * _runs_s(job) for job in state.inputs.jobs) / (gpus * span)
    draws: dict[str, Draw] = {}
    for job in known:
        traffic = state.inputs.profiles[job.profile].traffic
        if not traffic.tier:
            continue
        share = _runs_s(job) / span
        every_s = traffic.checkpoint_every_ms / SECOND
        saves = traffic.checkpoint_bytes / every_s if every_s else 0.0
        reads = bool(traffic.read_bytes_per_s_per_gpu)
        old = draws.get(traffic.tier, Draw(load=load, evidence=STATED))
        draws[traffic.tier] = Draw(
            read_bytes_per_s=old.read_bytes_per_s
            + traffic.read_bytes_per_s_per_gpu * gpus_of(job) * share,
            write_bytes_per_s=old.write_bytes_per_s + saves * share,
            readers=old.readers + (gpus_of(job) * share if reads else 0.0),
            load=load,
            evidence=STATED,
        )
    return draws


def _runs_s(job: Job) -> float:
    return (job.duration_ms or 0) / SECOND


def _read(axis: Axis, tier: Tier, draw: Draw) -> Law:
    running = busier(axis, draw.load)

    def wanted(factor: float) -> float:
        return draw.read_bytes_per_s * running(factor) * grown_by(axis, "data", factor)

    def seen(factor: float) -> str:
        there = rate_bytes(float(tier.read_bandwidth))
        return f"jobs want {rate_bytes(wanted(factor))} of tier {tier.id}, which reads {there}"

    name = Named("storage-read", f"tier {tier.id}", READ)
    evidence = weakest(draw.evidence, _axis_evidence(tier, "read_gb_per_s"))
    return name.law(wanted, float(tier.read_bandwidth), evidence, seen)


def _streams(axis: Axis, tier: Tier, draw: Draw) -> Law:
    """One stream a GPU is an assumption, so this law is one too."""
    running = busier(axis, draw.load)

    def wanted(factor: float) -> float:
        return draw.readers * USUAL_STREAMS_PER_GPU * running(factor)

    def seen(factor: float) -> str:
        return f"{wanted(factor):,.0f} streams read tier {tier.id}, which takes {tier.streams:,}"

    name = Named("storage-streams", f"tier {tier.id}", STREAMS)
    return name.law(wanted, float(tier.streams), ASSUMED, seen)


def _write(axis: Axis, tier: Tier, draw: Draw) -> Law:
    """Saves of all jobs together: beyond the tier's rate they run into each other."""
    running = busier(axis, draw.load)

    def wanted(factor: float) -> float:
        return draw.write_bytes_per_s * running(factor) * grown_by(axis, "data", factor)

    def seen(factor: float) -> str:
        there = rate_bytes(float(tier.write_bandwidth))
        return f"saves want {rate_bytes(wanted(factor))} of tier {tier.id}, which writes {there}"

    name = Named("checkpoint-burst", f"tier {tier.id}", WRITE)
    evidence = weakest(draw.evidence, _axis_evidence(tier, "write_gb_per_s"))
    return name.law(wanted, float(tier.write_bandwidth), evidence, seen)


def _saves(state: State, axis: Axis) -> list[Law]:
    """Return the law of one job over all GPUs: time that saves and failures take from it."""
    design = state.asked.design
    if design is None or not (moves(axis, "data") or moves(axis, "job-size")):
        return []
    tiers = [tier for tier in state.spec.tiers if tier.site == design.site]
    tier = max(tiers, key=lambda one: one.write_bandwidth, default=None)
    if tier is None:
        return []
    most = state.grow.limits.lost_share_most
    blocking = STANDING_SHARE if ASYNC_SAVES in state.reliefs else 1.0

    def lost(factor: float) -> float:
        gpus = design.gpus_today * grown_by(axis, "job-size", factor)
        return _lost_share(design, tier, gpus, grown_by(axis, "data", factor), blocking)

    def seen(factor: float) -> str:
        return (
            f"saves to tier {tier.id} and failures take {lost(factor):.0%} of the time, "
            f"of {most:.0%}"
        )

    named = Named("checkpoint-saves", f"tier {tier.id}", WRITE)
    known = ASSUMED if design.question.failures is None else SUPPOSED
    evidence = weakest(known, _axis_evidence(tier, "write_gb_per_s"))
    return [named.law(lost, most, evidence, seen)]


def _lost_share(design: Design, tier: Tier, gpus: float, larger: float, blocking: float) -> float:
    """Return the share of time lost at Daly's interval, which is near enough to the best."""
    assert design.ask is not None, "a checkpoint is of a model"
    ground, many = design.ground, np.asarray([gpus])
    save_s = checkpoint_s(
        larger * checkpoint_bytes(np.asarray([float(design.ask.shape.params)])),
        np.asarray([float(tier.write_bandwidth)]),
        many,
        np.asarray([ground.nic_bytes_per_s]),
    )
    interval_s = daly_interval_s(save_s * blocking, mttf_s(many, ground.reliability))
    kept = goodput(many, ground.reliability, save_s, interval_s, blocking_share=blocking).ettr
    return float(1.0 - kept[0])


def _axis_evidence(tier: Tier, axis: str) -> Evidence:
    return SUPPOSED if axis in tier.defaulted else STATED
