"""What a training plan requires: GPUs, network, storage, hosts and operations; and its launch."""

from math import ceil

import numpy as np
from msgspec import Struct

from tenfold.decide.layout.outcome import Outcome
from tenfold.decide.layout.request import PlanningTarget
from tenfold.model.job.launch import LaunchJob
from tenfold.model.reason import Misfit
from tenfold.physics.operations.goodput import checkpoint_bytes, checkpoint_s
from tenfold.study.plan.train import TrainPlanResult

BYTES_PER_TOKEN = 4.0
"""A token id as data loaders store it; an assumption."""
SAVE_SHARE = 0.01
"""Saving should take at most this share of the time between checkpoints; an assumption."""
KEPT_CHECKPOINTS = 3
"""Checkpoints kept at once; an assumption."""
HOST_MEMORY_RATIO = 2.0
"""Host memory over the weights of a node's GPUs: one copy to load, one to save."""
COMMUNICATION = ("tp_s", "moe_s", "p2p_s", "dp_s")


class Requirements(Struct, frozen=True, kw_only=True):
    """The requirements of a plan, by area. Rates are in bytes per second."""

    gpus: int
    nodes: int
    gpu_memory_gib: float
    network_gbps_per_gpu: float
    """NIC bandwidth per GPU that the step time assumes; 0 for a plan inside one node."""
    communication_share: float
    """Share of a step spent in communication that compute does not hide."""
    data_read_bytes_per_s: float
    checkpoint_bytes: float
    checkpoint_interval_s: float
    checkpoint_write_bytes_per_s: float
    """Rate at which saving takes 1% of the time between checkpoints."""
    checkpoint_write_bytes_per_s_available: float
    checkpoint_save_s: float
    """Time to save at the available rate."""
    storage_bytes: float
    """Capacity for three checkpoints, without the data set."""
    host_memory_gib_per_node: float
    power_kw: float
    failures_per_day: float
    days: float | None


def requirements(one: Outcome, target: PlanningTarget) -> Requirements:
    """Return what a plan requires besides the layout itself."""
    plan = one.plan
    params = float(plan.shape.params)
    size = float(checkpoint_bytes(np.asarray(params)))
    available = min(target.checkpoint_bytes_per_s, plan.gpus * target.nic_bytes_per_s)
    save_s = checkpoint_s(
        np.asarray(size),
        np.asarray(target.checkpoint_bytes_per_s),
        np.asarray(float(plan.gpus)),
        np.asarray(target.nic_bytes_per_s),
    )
    power = target.power
    return Requirements(
        gpus=plan.gpus,
        nodes=plan.nodes,
        gpu_memory_gib=one.memory_gib,
        network_gbps_per_gpu=plan.nic_gbps_per_gpu if plan.nodes > 1 else 0.0,
        communication_share=sum(one.breakdown_s[part] for part in COMMUNICATION) / one.step_s,
        data_read_bytes_per_s=one.tokens_per_s_per_gpu * plan.gpus * BYTES_PER_TOKEN,
        checkpoint_bytes=size,
        checkpoint_interval_s=one.checkpoint_interval_s,
        checkpoint_write_bytes_per_s=size / (SAVE_SHARE * one.checkpoint_interval_s),
        checkpoint_write_bytes_per_s_available=available,
        checkpoint_save_s=float(save_s),
        storage_bytes=KEPT_CHECKPOINTS * size,
        host_memory_gib_per_node=HOST_MEMORY_RATIO * params * 2 / plan.nodes / (1 << 30),
        power_kw=plan.gpus * power.tdp_w * power.server_overhead * power.pue / 1000,
        failures_per_day=one.failures_per_day,
        days=one.run.days if one.run else None,
    )


def launch_job(planned: TrainPlanResult, image: str = "", *, overlap: bool = True) -> LaunchJob:
    """Return how to launch the best plan: its steps, checkpoints and time limit.

    The time limit is the run at the slow end of the interval, failures included.
    """
    assert not isinstance(planned.answer, Misfit), "only a plan can be launched"
    best = planned.answer.plans[0]
    if best.run is None:
        return LaunchJob(image=image, overlap=overlap)
    step_tokens = best.plan.global_batch * best.plan.seq
    slow = planned.estimates[0].interval_s[1] / best.step_s
    return LaunchJob(
        image=image,
        overlap=overlap,
        steps=ceil(best.run.tokens / step_tokens),
        save_steps=max(1, round(best.checkpoint_interval_s / best.step_s)),
        time_limit_s=ceil(best.run.days * 86_400 * slow),
    )
