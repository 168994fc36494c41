"""What rented work costs: hours billed and hours on the calendar, failures and reclaims included.

A reclaim of spot capacity takes a whole gang at once: in public traces the nodes of a zone come
and go together, so its rate does not grow with the nodes, while that of failures does.
"""

from dataclasses import dataclass

import numpy as np

from tenfold.physics.arrays import Floats
from tenfold.physics.operations.goodput import Reliability, best_interval_s, goodput

_HOUR_S = 3600.0
_DAY_H = 24.0


@dataclass(frozen=True, slots=True)
class Rental:
    """Capacity for one job, one entry per offer."""

    usd_per_hour: Floats
    """Of all instances of the job."""
    work_per_hour: Floats
    """At full speed."""
    nodes: Floats
    failures_per_1000_node_days: Floats
    reclaims_per_hour: Floats
    """0 for capacity that is not reclaimed."""
    reclaimed_s: Floats
    """Until lost capacity comes back."""
    startup_s: Floats
    save_s: Floats
    """Time to save a checkpoint; 0 for work that keeps no state."""
    availability: Floats
    """Share of the time at which capacity is available at all."""
    staging_s: Floats
    usd_once: Floats
    """Paid once per job: moving data in and out."""


@dataclass(frozen=True, slots=True)
class RentalCost:
    """What the work takes on each offer."""

    effective_share: Floats
    """Share of the billed time that is useful work (goodput)."""
    billed_h: Floats
    calendar_h: Floats
    usd: Floats
    usd_per_unit: Floats


def rental_cost(rental: Rental, work: Floats, *, detection_s: float, has_state: bool) -> RentalCost:
    """Return the cost of `work` on each offer."""
    billed_share, calendar_share = (
        _with_state(rental, detection_s) if has_state else _stateless(rental)
    )
    work_h = work / rental.work_per_hour
    billed_h = work_h / billed_share + rental.startup_s / _HOUR_S
    usd = billed_h * rental.usd_per_hour + rental.usd_once
    calendar_h = work_h / calendar_share + (rental.startup_s + rental.staging_s) / _HOUR_S
    return RentalCost(
        effective_share=billed_share,
        billed_h=billed_h,
        calendar_h=calendar_h / rental.availability,
        usd=usd,
        usd_per_unit=usd / work,
    )


def _with_state(rental: Rental, detection_s: float) -> tuple[Floats, Floats]:
    """Return the shares of work that restarts from checkpoints, billed and on the calendar."""
    reclaims_per_day = rental.reclaims_per_hour * _DAY_H
    failures_per_day = rental.nodes * rental.failures_per_1000_node_days / 1000.0
    rate = np.maximum(failures_per_day + reclaims_per_day, 1e-12)
    reliability = Reliability(
        failures_per_node_day=rate / rental.nodes,
        gpus_per_node=np.ones_like(rate),
        detection_s=np.full_like(rate, detection_s),
        restart_s=rental.startup_s,
        # A failed node is replaced; reclaimed capacity has to come back first.
        queue_s=rental.reclaimed_s * reclaims_per_day / rate,
    )
    interval_s = best_interval_s(rental.nodes, reliability, rental.save_s)
    found = goodput(rental.nodes, reliability, rental.save_s, interval_s)
    return found.ettr / (1.0 - found.queue_share), found.ettr


def _stateless(rental: Rental) -> tuple[Floats, Floats]:
    """Return the shares of a replica that starts again after each loss."""
    lost_per_hour = rental.reclaims_per_hour + (
        rental.failures_per_1000_node_days / 1000.0 / _DAY_H
    )
    restart_h = rental.startup_s / _HOUR_S
    waited_h = rental.reclaims_per_hour * rental.reclaimed_s / _HOUR_S
    return 1.0 / (1.0 + lost_per_hour * restart_h), 1.0 / (
        1.0 + lost_per_hour * restart_h + waited_h
    )
