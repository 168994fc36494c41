"""All layouts worth timing for a number of GPUs, as arrays.

The full grid is built and masked, so there is no loop over plans. Deliberately left out:
tensor parallelism beyond the scale-up domain (unless requested), stages without layers,
and interleaving that does not divide the layers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.model.facts.shape import ModelShape
from tenfold.physics.arrays import Floats
from tenfold.physics.training.arrays import (
    PRECISION_CODES,
    RECOMPUTE_CODES,
    SHARD_CODES,
    Plans,
)

MICRO_BATCHES_MAX = 64
VIRTUAL_STAGES_MAX = 12
PIPELINE_MAX = 256
CONTEXT_SEQ = 8192
"""Sequences shorter than this are not worth splitting over GPUs."""


class _Grid(NamedTuple):
    """One column per axis of the search."""

    tp: Floats
    pp: Floats
    cp: Floats
    ep: Floats
    micro: Floats
    virtual: Floats
    recompute: Floats
    shard: Floats


def candidates(request: TrainRequest, target: PlanningTarget, gpus: int) -> Plans:
    """Return every layout of `request` on `gpus` GPUs that is whole in all its parts."""
    axes = [
        _tensor(request, target, gpus),
        _pipeline(request, gpus),
        _context(request, gpus),
        _expert(request, gpus),
        _micro(request),
        _virtual(request.shape),
        _recompute(request, target),
        [SHARD_CODES[request.job.shard]] if request.job.shard else [0, 1, 2, 3],
    ]
    grid = np.meshgrid(*(np.asarray(axis, dtype=np.float64) for axis in axes), indexing="ij")
    made = _Grid(*(one.ravel() for one in grid))
    dp = gpus / (made.tp * made.pp * made.cp)
    whole = _whole(request, made, dp)
    pick = np.flatnonzero(whole)
    made = _Grid(*(column[pick] for column in made))
    return Plans(
        seq=float(request.seq),
        micro_batch=made.micro,
        global_batch=float(request.global_batch),
        gpus=np.full(len(pick), float(gpus)),
        tp=made.tp,
        pp=made.pp,
        dp=dp[pick],
        cp=made.cp,
        ep=made.ep,
        virtual_stages=made.virtual,
        shard=made.shard,
        recompute=made.recompute,
        sequence_parallel=(made.tp > 1).astype(np.float64),
        precision=float(PRECISION_CODES[request.job.precision]),
        scaleup_ranks=float(min(target.scaleup_gpus, gpus)),
        nic_bytes_s=target.nic_bytes_per_s,
        oversubscription=target.oversubscription(gpus),
        network_delay_s=target.delay_s(gpus),
    )


def data_parallel_degrees(request: TrainRequest, target: PlanningTarget, gpus: int) -> list[int]:
    """Return the data-parallel degrees that fit `gpus` with the other degrees, for any batch."""
    products = {
        tp * pp * cp
        for tp in _tensor(request, target, gpus)
        for pp in _pipeline(request, gpus)
        for cp in _context(request, gpus)
    }
    return sorted(gpus // product for product in products if gpus % product == 0)


def _whole(request: TrainRequest, grid: _Grid, dp: Floats) -> NDArray[np.bool_]:
    """Return which combinations divide evenly everywhere they must."""
    tp, pp, cp, virtual = grid.tp, grid.pp, grid.cp, grid.virtual
    layers = float(request.shape.layers)
    per_rank = request.global_batch / (dp * grid.micro)
    good = (dp >= 1) & (dp == np.floor(dp)) & (per_rank >= 1) & (per_rank == np.floor(per_rank))
    chunks = pp * virtual
    # Embedding and head may each count as a layer at the two ends.
    even = (layers % chunks == 0) | ((layers + 2) % chunks == 0)
    good &= np.where(virtual > 1, even & (pp > 1) & (per_rank % pp == 0), True)
    # Stages may differ by a layer: what does not divide is spread over the first ones.
    good &= pp <= layers
    # Ranks of a sequence take equal parts of it; causal ones two parts each, for balance.
    good &= request.seq % (tp * np.where(cp > 1, 2 * cp, 1.0)) == 0
    good &= (dp * cp * tp) % grid.ep == 0
    # Few frameworks shard gradients or weights over ranks that also hold a pipeline stage, so
    # such layouts are only timed where they are requested.
    if request.job.shard is None:
        good &= ~((grid.shard >= SHARD_CODES["zero2"]) & (pp > 1))
    return good & ~((grid.shard > 0) & (dp * cp == 1))


def _recompute(request: TrainRequest, target: PlanningTarget) -> list[int]:
    if request.job.recompute:
        return [RECOMPUTE_CODES[request.job.recompute]]
    # Fused attention keeps no scores. What else is cheap to redo, trainers redo for experts only;
    # recompute in some of the layers takes its place.
    fused = float(target.profile.flash) >= 1.0
    return [RECOMPUTE_CODES[kind] for kind in ("none", "full") if fused] or [0, 1, 2]


def _tensor(request: TrainRequest, target: PlanningTarget, gpus: int) -> list[int]:
    if request.job.tp is not None:
        return [request.job.tp] if request.shape.heads % request.job.tp == 0 else []
    most = min(target.scaleup_gpus, gpus, request.shape.heads)
    return [degree for degree in _powers(most) if request.shape.heads % degree == 0]


def _pipeline(request: TrainRequest, gpus: int) -> list[int]:
    if request.job.pp is not None:
        return [request.job.pp]
    layers = request.shape.layers
    most = min(layers, gpus, PIPELINE_MAX)
    divisors = [degree for degree in range(1, most + 1) if layers % degree == 0]
    return sorted(dict.fromkeys([*divisors, *_powers(most)]))


def _context(request: TrainRequest, gpus: int) -> list[int]:
    if request.job.cp is not None:
        return [request.job.cp]
    return (
        _powers(min(gpus, max(1, request.seq // CONTEXT_SEQ) * 2))
        if request.seq > CONTEXT_SEQ
        else [1]
    )


def _expert(request: TrainRequest, gpus: int) -> list[int]:
    experts = request.shape.experts
    if request.job.ep is not None:
        return [request.job.ep] if max(experts, 1) % request.job.ep == 0 else []
    if experts < 2:
        return [1]
    return [degree for degree in _powers(min(experts, gpus)) if experts % degree == 0]


def _micro(request: TrainRequest) -> list[int]:
    if request.job.micro_batch is not None:
        return [request.job.micro_batch]
    return _powers(min(MICRO_BATCHES_MAX, request.global_batch))


def _virtual(shape: ModelShape) -> list[int]:
    return [degree for degree in range(1, min(VIRTUAL_STAGES_MAX, shape.layers) + 1)]


def _powers(most: int) -> list[int]:
    return [1 << bit for bit in range(max(1, most).bit_length()) if 1 << bit <= most]
