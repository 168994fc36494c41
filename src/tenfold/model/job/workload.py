"""A workload mix: the sizes, durations and arrival pattern of submitted jobs.

Jobs arrive in submissions: one job, or a batch of similar jobs. `part` is always a fraction of
jobs, so figures measured from a trace can be used directly.
"""

import msgspec
from msgspec import Struct

from tenfold.model.errors import InputError
from tenfold.model.facts.fact import Fact

HOURS, DAYS = 24, 7
EVEN_DAY = (1.0,) * HOURS
EVEN_WEEK = (1.0,) * DAYS


class Lognormal(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One lognormal component of a mixture of durations."""

    median_s: float
    sigma: float
    """Standard deviation of the natural logarithm."""
    part: float = 1.0


class SizeClass(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Jobs of one size: their fraction of all jobs, durations and batch sizes."""

    gpus: float
    part: float
    durations: tuple[Lognormal, ...]
    alone: float = 1.0
    """Fraction of the submissions of this size that are a single job."""
    batch_median: float = 2.0
    batch_mean: float = 2.0
    """Batch size of the other submissions: lognormal, at least two jobs."""


class WorkloadMix(Fact, frozen=True, kw_only=True):
    """The demand on a fleet; its volume is set by the target load.

    Time 0 is midnight at the start of a Monday. Jobs of a batch have the same team and size, and
    durations correlated by `alike` (0: independent, 1: identical).
    """

    sizes: tuple[SizeClass, ...]
    hours: tuple[float, ...] = EVEN_DAY
    """Relative submission rate by hour of the day."""
    days: tuple[float, ...] = EVEN_WEEK
    """Relative submission rate by day of the week, from Monday."""
    day_cv: float = 0.0
    """Coefficient of variation of the daily rate around that pattern."""
    batch_gap_s: float = 0.0
    """Mean time between jobs of a batch."""
    batch_most: int = 1_000
    alike: float = 0.0
    duration_s_max: float = 30 * 86_400.0
    teams: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """Fraction of submissions by team, for fleets without teams."""
    users_per_team: int = 1
    qos: str = ""
    priority: int = 0
    failed: float = 0.0
    """Fraction of jobs that fail; they hold their GPUs like any other."""
    cancelled: float = 0.0


def check_mix(mix: WorkloadMix) -> WorkloadMix:
    """Return a mix that jobs can be generated from, or raise with what is wrong with it."""
    wrong = _wrong(mix) or next((found for size in mix.sizes if (found := _wrong_size(size))), "")
    if wrong:
        raise InputError(
            "impossible-workload",
            f"workload `{mix.name}` {wrong}",
            f"run `tenfold facts show {mix.name}`, and override it in your own facts",
        )
    return mix


def _wrong(mix: WorkloadMix) -> str:
    if len(mix.hours) != HOURS or len(mix.days) != DAYS:
        return f"needs {HOURS} `hours` and {DAYS} `days`"
    if not _shares(mix.hours) or not _shares(mix.days):
        return "has `hours` or `days` that are negative or all zero"
    if not mix.sizes or not _shares([size.part for size in mix.sizes]):
        return "has no `sizes` with a `part` above 0"
    if len({size.gpus for size in mix.sizes}) < len(mix.sizes):
        return "lists the same `gpus` twice in `sizes`"
    if mix.teams and not _shares(list(mix.teams.values())):
        return "has no `teams` with a fraction above 0"
    if not 0 <= mix.alike <= 1:
        return f"has `alike` {mix.alike:g}, which is not between 0 and 1"
    if mix.failed < 0 or mix.cancelled < 0 or mix.failed + mix.cancelled > 1:
        return "has `failed` and `cancelled` that are negative or add up to more than 1"
    if not (mix.day_cv >= 0 and mix.batch_gap_s >= 0 and mix.duration_s_max >= 1):
        return "has a negative `day_cv` or `batch_gap_s`, or a `duration_s_max` below 1"
    if mix.users_per_team < 1 or mix.batch_most < 1:
        return "has `users_per_team` or `batch_most` below 1"
    return ""


def _wrong_size(size: SizeClass) -> str:
    prefix = f"has jobs of {size.gpus:g} GPUs "
    if size.gpus <= 0 or (size.gpus > 1 and size.gpus % 1):
        return prefix + "(only a single GPU can be fractional)"
    if not size.durations or not _shares([one.part for one in size.durations]):
        return prefix + "without `durations`"
    if any(one.median_s <= 0 or one.sigma < 0 for one in size.durations):
        return prefix + "with `median_s` or `sigma` not above 0"
    if not 0 <= size.alone <= 1 or not 1 < size.batch_median <= size.batch_mean:
        return prefix + "with `alone` outside 0 to 1, or `batch_median` outside 1 to `batch_mean`"
    return ""


def _shares(parts: tuple[float, ...] | list[float]) -> bool:
    return all(part >= 0 for part in parts) and sum(parts) > 0
