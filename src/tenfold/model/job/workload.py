"""A workload mix: what people submit, how much of it at once, and for how long.

Work arrives in submissions: one job, or a batch of jobs alike. `part` is always a share of
jobs, so that a figure read off a trace can be written down as it is.
"""

import msgspec
from msgspec import Struct

from tenfold.model.errors import InputError
from tenfold.model.facts.fact import Fact

HOURS, DAYS = 24, 7
EVEN_DAY = (1.0,) * HOURS
EVEN_WEEK = (1.0,) * DAYS


class Lognormal(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One lognormal part of a mixture of durations."""

    median_s: float
    sigma: float
    """Standard deviation of the natural logarithm."""
    part: float = 1.0


class SizeClass(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Jobs of one size: how many of all jobs, how long, and how many at once."""

    gpus: float
    part: float
    durations: tuple[Lognormal, ...]
    alone: float = 1.0
    """Share of the submissions of this size that are a single job."""
    batch_median: float = 2.0
    batch_mean: float = 2.0
    """Size of the other submissions: lognormal, at least two jobs."""


class WorkloadMix(Fact, frozen=True, kw_only=True):
    """What a fleet is asked for; the amount is set by the load it shall make.

    Time 0 is midnight before a Monday. Jobs of a batch have the same team and size, and
    durations that resemble each other by `alike` (0: as any two jobs, 1: the same).
    """

    sizes: tuple[SizeClass, ...]
    hours: tuple[float, ...] = EVEN_DAY
    """Relative rate of submissions in each hour of the day."""
    days: tuple[float, ...] = EVEN_WEEK
    """Relative rate on each day of the week, from Monday."""
    day_cv: float = 0.0
    """Spread of a day's rate about that rhythm, over its mean: some days are busy."""
    batch_gap_s: float = 0.0
    """Mean time between two jobs of a batch."""
    batch_most: int = 1_000
    alike: float = 0.0
    duration_s_max: float = 30 * 86_400.0
    teams: dict[str, float] = msgspec.field(default_factory=dict[str, float])
    """Share of submissions by team, where the fleet names none."""
    users_per_team: int = 1
    qos: str = ""
    priority: int = 0
    failed: float = 0.0
    """Share of jobs that end by failing; they held their GPUs all the same."""
    cancelled: float = 0.0


def check_mix(mix: WorkloadMix) -> WorkloadMix:
    """Return a mix that work can be drawn from, or say which of its figures make none."""
    wrong = _wrong(mix) or next((said for size in mix.sizes if (said := _wrong_size(size))), "")
    if wrong:
        raise InputError(
            "impossible-workload",
            f"workload `{mix.name}` {wrong}",
            f"`tenfold facts show {mix.name}` shows it; change it in your own facts",
        )
    return mix


def _wrong(mix: WorkloadMix) -> str:
    if len(mix.hours) != HOURS or len(mix.days) != DAYS:
        return f"needs {HOURS} `hours` and {DAYS} `days`"
    if not _shares(mix.hours) or not _shares(mix.days):
        return "has a rhythm in which nothing is ever submitted, or less than nothing"
    if not mix.sizes or not _shares([size.part for size in mix.sizes]):
        return "has no size that is ever asked for"
    if len({size.gpus for size in mix.sizes}) < len(mix.sizes):
        return "states a size twice"
    if mix.teams and not _shares(list(mix.teams.values())):
        return "has no team that ever asks"
    if not 0 <= mix.alike <= 1:
        return f"has jobs alike by {mix.alike:g}, which is not between 0 and 1"
    if mix.failed < 0 or mix.cancelled < 0 or mix.failed + mix.cancelled > 1:
        return "has shares of failed and cancelled jobs that are not shares"
    if not (mix.day_cv >= 0 and mix.batch_gap_s >= 0 and mix.duration_s_max >= 1):
        return "has a negative `day_cv` or `batch_gap_s`, or no time to run"
    if mix.users_per_team < 1 or mix.batch_most < 1:
        return "has teams without a user, or batches without a job"
    return ""


def _wrong_size(size: SizeClass) -> str:
    said = f"has jobs of {size.gpus:g} gpus "
    if size.gpus <= 0 or (size.gpus > 1 and size.gpus % 1):
        return said + "(a share is of one gpu, several are whole)"
    if not size.durations or not _shares([one.part for one in size.durations]):
        return said + "without a duration"
    if any(one.median_s <= 0 or one.sigma < 0 for one in size.durations):
        return said + "with a median or a sigma that is not above zero"
    if not 0 <= size.alone <= 1 or not 1 < size.batch_median <= size.batch_mean:
        return said + "with batches that are none: `alone` is a share, `batch_median` above 1"
    return ""


def _shares(parts: tuple[float, ...] | list[float]) -> bool:
    return all(part >= 0 for part in parts) and sum(parts) > 0
