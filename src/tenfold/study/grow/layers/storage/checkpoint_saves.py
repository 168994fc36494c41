"""Checkpoint overhead: time that checkpoints and failures cost one job on all GPUs."""

from collections.abc import Iterable

import numpy as np

from tenfold.model.fleet.spec import Tier
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.physics.growth.breaking import ASSUMED, DEFAULTED, weakest
from tenfold.physics.operations.goodput import (
    checkpoint_bytes,
    checkpoint_s,
    daly_interval_s,
    goodput,
    mttf_s,
)
from tenfold.study.ceiling.design import Design
from tenfold.study.grow.inputs import ASYNC_SAVES
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.storage.shelves import more_shelves
from tenfold.study.grow.layers.storage.tier_load import tier_evidence
from tenfold.study.grow.relief import Relief, with_relief
from tenfold.study.grow.state import State

BLOCKING_SHARE_ASYNC = 0.1
"""Share of an asynchronous checkpoint that still blocks training; an assumption."""


class CheckpointSaves(ComputedLayer):
    """The expected model in one job on all GPUs, saved at the best interval."""

    name = "checkpoint-saves"
    title = "Checkpoint overhead"
    breaks = "checkpoints and failures take more than `lost_share_most` of a job's time"
    cause_rank = 33
    grows_with = ("job-size",)
    grows_by = (
        "GPUs of one job, and how often one of them fails; its checkpoint stays the same size"
    )
    needs = "`model` under `[expects]` in the fleet file, and a storage tier at its site"
    fixed_by = "asynchronous checkpoints, or more storage shelves"
    assumes = "one job of the expected model runs on all GPUs, with a typical failure rate"
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return the constraint on the tier with the highest write bandwidth at the site."""
        design = state.expected.design
        if design is None:
            return
        tiers = [tier for tier in state.spec.tiers if tier.site == design.site]
        tier = max(tiers, key=lambda one: one.write_bandwidth, default=None)
        if tier is not None:
            yield self._tier(state, axis, design, tier)

    def _tier(self, state: State, axis: Axis, design: Design, tier: Tier) -> Constraint:
        most = state.grow.limits.lost_share_most
        blocking = BLOCKING_SHARE_ASYNC if ASYNC_SAVES in state.reliefs else 1.0

        def lost(factor: float) -> float:
            gpus = design.gpus_today * grown_by(axis, "job-size", factor)
            return _lost_share(design, tier, gpus, blocking)

        def symptom(factor: float) -> str:
            return (
                f"failures and checkpoint writes to {tier.id} take {lost(factor):.0%} of the time "
                f"(limit {most:.0%})"
            )

        def relieve(multiple: float) -> list[Relief]:
            return [*_async_saves(state), more_shelves(state, tier, multiple)]

        known = ASSUMED if design.question.failures is None else DEFAULTED
        evidence = weakest(known, tier_evidence(tier, "write_gb_per_s"))
        return self.constraint(f"tier {tier.id}", lost, most, evidence, symptom, relieve)


def _lost_share(design: Design, tier: Tier, gpus: float, blocking: float) -> float:
    """Return the share of time lost at Daly's interval, which is close to the best."""
    assert design.request is not None, "a checkpoint is of a model"
    target, many = design.target, np.asarray([gpus])
    save_s = checkpoint_s(
        checkpoint_bytes(np.asarray([float(design.request.shape.params)])),
        np.asarray([float(tier.write_bandwidth)]),
        many,
        np.asarray([target.nic_bytes_per_s]),
    )
    interval_s = daly_interval_s(save_s * blocking, mttf_s(many, target.reliability))
    kept = goodput(many, target.reliability, save_s, interval_s, blocking_share=blocking).ettr
    return float(1.0 - kept[0])


def _async_saves(state: State) -> Iterable[Relief]:
    """Yield asynchronous checkpoints, which are free, unless they are in place already."""
    if ASYNC_SAVES in state.reliefs:
        return

    def apply(now: State) -> State:
        return with_relief(now, ASYNC_SAVES)

    yield Relief(ASYNC_SAVES, "write checkpoints asynchronously", 0.0, 0.0, apply)
