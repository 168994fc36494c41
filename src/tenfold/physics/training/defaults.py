"""Fill in the missing keys of a row with typical values.

Order matters: shard and interleaving first (they decide memory), then the micro-batch: the fastest
that fits, since published runs are tuned.
"""

from dataclasses import replace

import numpy as np

from tenfold.physics.training.arrays import Accelerator, Flags, Plans, Shape
from tenfold.physics.training.memory import fits, memory_of
from tenfold.physics.training.profile import TrainingProfile
from tenfold.physics.training.step import time_plans

REPLICATED = ("megatron", "megatron-deepspeed", "pytorch-compile")
"""Families that keep whole optimizer states on every data-parallel rank."""
MICRO_BATCHES = (1.0, 2.0, 4.0, 8.0, 16.0)


def default_virtual_stages(
    shape: Shape, plan: Plans, accelerator: Accelerator, profile: TrainingProfile
) -> float:
    """Return virtual stages: pipelines of the flash era interleave down to two layers a chunk.

    Where that does not fit, down to one: the finer the chunks, the fewer layers are in flight.
    """
    pp, layers = float(np.asarray(plan.pp)), float(np.asarray(shape.layers))
    if pp <= 1 or float(np.asarray(profile.flash)) < 1.0:
        return 1.0
    usual, finest = float(max(1, round(layers / pp / 2))), float(np.ceil(layers / pp))
    memory = memory_of(shape, replace(plan, virtual_stages=usual), profile)
    return usual if bool(fits(memory, accelerator)) else finest


def default_shard(family: str, dp: float) -> str:
    """Return the default data-parallel sharding of a family of stacks."""
    if dp <= 1:
        return "none"
    if family in ("llm-foundry", "torchtitan", "maxtext", "metaseq", "pytorch-fsdp"):
        return "zero3"
    return "none" if family in REPLICATED else "zero1"


def default_sequence_parallel(family: str, tp: float) -> bool:
    """Return whether sequence parallelism is on: all stacks since 2022 use it with tp."""
    return tp > 1 and family not in ("megatron", "megatron-deepspeed")


def default_scaleup_ranks(domain: float, gpus_per_node: float | None) -> float:
    """Return ranks that share the fast links: a rack-scale domain outranks the node."""
    if gpus_per_node is None:
        return domain
    return domain if domain > 8 else min(max(domain, 1.0), gpus_per_node)


def default_micro_batch(
    shape: Shape, plans: Plans, accelerator: Accelerator, profile: TrainingProfile, known: Flags
) -> Plans:
    """Return the plans with unknown micro-batches set to the fastest that fits."""
    size = np.size(plans.gpus)
    chosen = np.array(np.broadcast_to(plans.micro_batch, (size,)), float)
    best = np.full(size, np.inf)
    rank_batch = plans.global_batch / plans.dp
    for candidate in MICRO_BATCHES:
        trial = replace(plans, micro_batch=np.full(size, candidate))
        smallest = candidate <= 1.0
        allowed = np.asarray((np.mod(rank_batch, candidate) == 0) | smallest)
        fits_memory = np.asarray(fits(memory_of(shape, trial, profile), accelerator)) | smallest
        step = np.asarray(time_plans(shape, trial, accelerator, profile).step_s)
        # A larger micro-batch must earn its memory: two percent or stay small.
        better = allowed & fits_memory & (step < 0.98 * best) & ~np.asarray(known, bool)
        best = np.where(better, step, best)
        chosen = np.where(better, candidate, chosen)
    return replace(plans, micro_batch=chosen)
