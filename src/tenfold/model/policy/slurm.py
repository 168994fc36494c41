"""How a Slurm controller schedules: the scheduling part of `slurm.conf`.

Defaults are those of Slurm 22.05. A limit of None means no limit.
"""

from typing import Literal

from msgspec import Struct

from tenfold.model.units import DAY, MINUTE, SECOND, Millis


class PriorityWeights(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What each factor, between 0 and 1, adds to the priority of a job."""

    age: int = 0
    fairshare: int = 0
    job_size: int = 0
    partition: int = 0
    qos: int = 0
    association: int = 0
    tres: dict[str, int] = {}
    """Weights of single resources by their names in lower case, such as `gres/gpu`."""


class Backfill(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of the backfill scheduler; a count of 0 means no limit."""

    interval_ms: Millis = Millis(30 * SECOND)
    resolution_ms: Millis = Millis(60 * SECOND)
    window_ms: Millis = Millis(1_440 * MINUTE)
    time_max_ms: Millis | None = None
    """Longest pass; `interval_ms` if not set."""
    jobs_tested_max: int = 500
    jobs_started_max: int = 0
    jobs_per_user_max: int = 0
    jobs_per_partition_max: int = 0
    array_reservations_max: int = 20
    age_reserve_min_ms: Millis = Millis(0)
    priority_reserve_min: int = 0
    goes_on: bool = False
    """Continues its pass after releasing locks (`bf_continue`)."""
    prefers_busy_nodes: bool = False


class SlurmPartition(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A partition: nodes, limits and rank."""

    name: str
    nodes: str = ""
    """A host list as written; `ALL` means every node."""
    is_default: bool = False
    priority_tier: int = 1
    priority_job_factor: int = 1
    time_max_ms: Millis | None = None
    time_default_ms: Millis | None = None
    """Limit of a job without one; `time_max_ms` if this is None."""
    grace_ms: Millis = Millis(0)
    preempt_mode: str = ""
    qos: str = ""


class SlurmPolicy(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Everything in a `slurm.conf` that orders and starts jobs."""

    priority: Literal["basic", "multifactor"] = "basic"
    weights: PriorityWeights = PriorityWeights()
    age_max_ms: Millis = Millis(7 * DAY)
    decay_half_life_ms: Millis = Millis(7 * DAY)
    """Half-life of past usage; 0 means no decay."""
    calc_period_ms: Millis = Millis(5 * MINUTE)
    favors_small: bool = False
    priority_flags: tuple[str, ...] = ()
    scheduler: Literal["backfill", "builtin"] = "backfill"
    backfill: Backfill = Backfill()
    queue_depth: int = 100
    """Jobs considered on an event; the periodic pass considers all."""
    partition_depth: int = 0
    interval_ms: Millis = Millis(60 * SECOND)
    interval_min_us: int = 2
    jobs_started_max: int = 0
    defers: bool = False
    """Does not try to start a job at once when it is submitted."""
    parameters: dict[str, str] = {}
    """All of `SchedulerParameters` as written, including what is not modelled here."""
    preempt_type: str = "none"
    preempt_modes: tuple[str, ...] = ("off",)
    select_type: str = "linear"
    select_parameters: tuple[str, ...] = ()
    partitions: tuple[SlurmPartition, ...] = ()
