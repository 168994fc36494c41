"""The time that failures and checkpoints cost a training run, and the best checkpoint interval.

The expected-value form is exact for failures that arrive at a constant rate and hit saving and
restarting as well as working: a segment of length `s` that starts over at each failure takes
(exp(rate * s) - 1) / rate on average. Young and Daly are its first and second order.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.arrays import Floats

_DAY_S = 86_400.0
_GOLDEN = (5**0.5 - 1) / 2
_SEARCH_TURNS = 70


@dataclass(frozen=True, slots=True)
class Reliability:
    """Failure rate and the time each failure costs before work goes on."""

    failures_per_node_day: Floats
    gpus_per_node: Floats
    detection_s: Floats
    restart_s: Floats
    """From the decision to restart to the first useful step: placement, image, re-init,
    checkpoint read.
    """
    queue_s: Floats
    """Wait for a replacement, off the clock of the job's allocation but on that of its calendar."""


@dataclass(frozen=True, slots=True)
class Goodput:
    """The time of a run by use; shares add up to 1."""

    ettr: Floats
    interval_s: Floats
    checkpoint_share: Floats
    lost_work_share: Floats
    restart_share: Floats
    queue_share: Floats
    failures_per_day: Floats


def failures_per_s(gpus: Floats, reliability: Reliability) -> Floats:
    """Return how often a job of `gpus` is stopped; a job smaller than a node shares its node's
    rate.
    """
    nodes = np.maximum(gpus / reliability.gpus_per_node, 1.0)
    return nodes * reliability.failures_per_node_day / _DAY_S


def mttf_s(gpus: Floats, reliability: Reliability) -> Floats:
    """Return the mean time to failure of a job of `gpus`."""
    return 1.0 / failures_per_s(gpus, reliability)


def checkpoint_bytes(parameters: Floats, bytes_per_parameter: Floats | float = 14.0) -> Floats:
    """Return the size of a full checkpoint: 2 for weights, 12 for fp32 master weights and Adam
    states.
    """
    return parameters * bytes_per_parameter


def checkpoint_s(
    size_bytes: Floats,
    tier_write_bytes_per_s: Floats,
    gpus: Floats,
    gpu_write_bytes_per_s: Floats,
    *,
    stop_s: float = 2.0,
) -> Floats:
    """Return the time to save: a barrier, then the slower of the tier and of all writers."""
    return stop_s + size_bytes / np.minimum(tier_write_bytes_per_s, gpus * gpu_write_bytes_per_s)


def daly_interval_s(save_s: Floats, mttf: Floats) -> Floats:
    """Return Daly's higher-order interval; a save longer than twice the mean life cannot be
    helped.
    """
    ratio = save_s / (2.0 * mttf)
    refined = np.sqrt(2.0 * save_s * mttf) * (1.0 + np.sqrt(ratio) / 3.0 + ratio / 9.0) - save_s
    return np.where(save_s < 2.0 * mttf, refined, mttf)


def goodput(
    gpus: Floats,
    reliability: Reliability,
    save_s: Floats,
    interval_s: Floats,
    *,
    blocking_share: Floats | float = 1.0,
) -> Goodput:
    """Return the effective training time ratio at an interval of work `interval_s`.

    `blocking_share` is the part of a save that blocks training; the rest runs in parallel
    and only delays the point that a restart resumes from.
    """
    rate = failures_per_s(gpus, reliability)
    stall_s = save_s * blocking_share
    behind_s = save_s * (1.0 - blocking_share)
    segment_s = interval_s + stall_s
    stops = np.expm1(np.minimum(rate * segment_s, 600.0))
    down_s = reliability.detection_s + reliability.restart_s
    # Restarting may itself be cut short, so each stop costs more than one restart.
    again_s = np.expm1(np.minimum(rate * down_s, 600.0)) / rate
    wasted_s = stops / rate - segment_s + stops * behind_s
    restart_s, queue_s = (
        stops * again_s,
        stops * np.exp(np.minimum(rate * down_s, 600.0)) * reliability.queue_s,
    )
    total_s = segment_s + wasted_s + restart_s + queue_s
    return Goodput(
        ettr=interval_s / total_s,
        interval_s=interval_s,
        checkpoint_share=stall_s / total_s,
        lost_work_share=wasted_s / total_s,
        restart_share=restart_s / total_s,
        queue_share=queue_s / total_s,
        failures_per_day=rate * _DAY_S,
    )


def best_interval_s(
    gpus: Floats, reliability: Reliability, save_s: Floats, *, blocking_share: Floats | float = 1.0
) -> Floats:
    """Return the interval of highest expected ratio: Daly's answer, refined by golden section on
    the exact form.
    """
    start = daly_interval_s(save_s, mttf_s(gpus, reliability))
    low, high = np.log(start * 0.2), np.log(start * 5.0)

    def ratio(log_interval: Floats) -> Floats:
        return goodput(
            gpus, reliability, save_s, np.exp(log_interval), blocking_share=blocking_share
        ).ettr

    for _ in range(_SEARCH_TURNS):
        left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
        better_left = ratio(left) > ratio(right)
        low, high = np.where(better_left, low, left), np.where(better_left, right, high)
    return np.exp((low + high) / 2.0)
