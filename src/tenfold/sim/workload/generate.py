"""Draw jobs from a workload mix until they fill a fleet to a given load.

Submissions are drawn first, until their GPU time is the load wanted of what the fleet has
in the span; only then are they spread over the span by the rhythm of the mix. So the load
is met to within one job whatever the tails, and more load means more jobs, not longer ones.
"""

from bisect import bisect_right
from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from math import exp, log, sqrt

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.errors import InputError
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, Shape, shape_of
from tenfold.model.job.workload import Lognormal, SizeClass, WorkloadMix, check_mix
from tenfold.model.units import DAY, HOUR, SECOND, Millis
from tenfold.sim.seeded import seeded_fraction

_JOBS_MAX = 5_000_000
_LOAD_TOLERANCE = 0.995
_REJECTIONS_MAX = 1_000


class TeamPart(Struct, frozen=True, kw_only=True):
    """A team that submits, its share of submissions, and the types it may request."""

    name: str
    part: float = 1.0
    accelerators: tuple[str, ...] = ()


class Demand(Struct, frozen=True, kw_only=True):
    """How much work to draw, for how long, and for whom."""

    span_ms: Millis
    load: float
    """GPU time of the jobs over GPU time of the fleet in the span."""
    teams: tuple[TeamPart, ...] = ()
    """Who submits; the teams of the mix where this is empty."""
    max_gpus: float | None = None
    """Leave larger jobs out; without it, those of more than half of what a team may use."""


class _Submission(Struct, frozen=True, gc=False):
    team: TeamPart
    user: str
    gpus: float
    durations_s: tuple[int, ...]
    offsets_s: tuple[int, ...]


def generate_jobs(
    mix: WorkloadMix, nodes: Sequence[Node], demand: Demand, seed: int = 0
) -> list[Job]:
    """Return jobs in order of submission that request `load` of the nodes' GPU time."""
    sampler = _WorkloadSampler(check_mix(mix), nodes, demand, _generator(seed, mix.name))
    submissions = sampler.submissions()
    starts = sampler.submit_times(len(submissions))
    rows = [
        (start + offset, place, number)
        for place, (start, one) in enumerate(zip(starts, submissions, strict=True))
        for number, offset in enumerate(one.offsets_s)
    ]
    shapes: dict[tuple[float, tuple[str, ...]], Shape] = {}
    jobs: list[Job] = []
    for seq, (at_s, place, number) in enumerate(sorted(rows)):
        one = submissions[place]
        key = (one.gpus, one.team.accelerators)
        shape = shapes.get(key)
        if shape is None:
            shape = shapes[key] = shape_of(one.gpus, accelerators=one.team.accelerators)
        jobs.append(
            Job(
                id=JobId(f"{mix.name}-{seq + 1}"),
                shape=shape,
                submitted_ms=Millis(at_s * SECOND),
                seq=seq,
                team=TeamId(one.team.name),
                user=one.user,
                qos=mix.qos,
                priority=mix.priority,
                duration_ms=Millis(one.durations_s[number] * SECOND),
            )
        )
    return jobs


def merged(groups: Sequence[Sequence[Job]]) -> list[Job]:
    """Return the jobs of several mixes as one list in order of submission."""
    merged_jobs = sorted(
        (job for group in groups for job in group), key=lambda job: job.submitted_ms
    )
    return [replace(job, seq=seq) for seq, job in enumerate(merged_jobs)]


def ends_of(mix: WorkloadMix, jobs: Sequence[Job], seed: int = 0) -> dict[JobId, str]:
    """Return how each job ends, as a trace would say it."""
    failed, cancelled = mix.failed, mix.failed + mix.cancelled
    ends: dict[JobId, str] = {}
    for job in jobs:
        chance = seeded_fraction(seed, "ends", mix.name, job.id)
        ends[job.id] = (
            "failed" if chance < failed else "cancelled" if chance < cancelled else "completed"
        )
    return ends


def gpu_hours(jobs: Sequence[Job]) -> float:
    """Return the GPU time that jobs request."""
    return sum(_gpus(job.shape) * (job.duration_ms or 0) for job in jobs) / HOUR


def _gpus(shape: Shape) -> float:
    return shape.gpus + shape.milli / 1_000


def _generator(seed: int, *names: str) -> np.random.Generator:
    text = "\x1f".join((str(seed), "workload", *names))
    return np.random.Generator(
        np.random.PCG64(int.from_bytes(blake2b(text.encode(), digest_size=16).digest()))
    )


class _WeightedChoice:
    """Draws places by weight, from one uniform number each."""

    def __init__(self, parts: Sequence[float]) -> None:
        self._cumulative = list(accumulate(parts))

    def draw(self, generator: np.random.Generator) -> int:
        """Return a place with the probability of its part."""
        draw_at = generator.random() * self._cumulative[-1]
        return min(bisect_right(self._cumulative, draw_at), len(self._cumulative) - 1)


class _WorkloadSampler:
    """One pass of drawing: who submits what, for how long, and when."""

    def __init__(
        self,
        mix: WorkloadMix,
        nodes: Sequence[Node],
        demand: Demand,
        generator: np.random.Generator,
    ) -> None:
        self.mix = mix
        self.demand = demand
        self.generator = generator
        self.gpus = sum(node.gpus for node in nodes)
        parts = demand.teams or tuple(
            TeamPart(name=name, part=part) for name, part in mix.teams.items()
        )
        self.teams = parts or (TeamPart(name=""),)
        self.team_choice = _WeightedChoice([team.part for team in self.teams])
        self.sizes = [_sizes_that_fit(mix, team, nodes, demand.max_gpus) for team in self.teams]
        # A part is a share of jobs, but what is picked here is a submission of several.
        self.size_choices = [
            _WeightedChoice([size.part / _batch_mean(size) for size in sizes])
            for sizes in self.sizes
        ]
        self.law_choices = {
            size.gpus: _WeightedChoice([law.part for law in size.durations]) for size in mix.sizes
        }
        self.span_s = demand.span_ms // SECOND
        self.duration_s_max = max(1, min(int(mix.duration_s_max), self.span_s))

    def submissions(self) -> list[_Submission]:
        """Draw until the load is met; a job that exceeds it is skipped."""
        wanted = self.demand.load * self.gpus * self.span_s
        made: list[_Submission] = []
        requested, jobs, rejected = 0.0, 0, 0
        while requested < _LOAD_TOLERANCE * wanted and rejected < _REJECTIONS_MAX:
            one = self._submission()
            kept = 0
            for duration_s in one.durations_s:
                more = duration_s * one.gpus
                if requested + more > wanted / _LOAD_TOLERANCE:
                    break
                requested += more
                kept += 1
            rejected = 0 if kept else rejected + 1
            if kept:
                made.append(_truncate(one, kept))
                jobs += kept
            if jobs > _JOBS_MAX:
                raise InputError(
                    "too-many-jobs",
                    f"load {self.demand.load:g} on {self.gpus:,} GPUs needs more than "
                    f"{_JOBS_MAX:,} jobs of workload `{self.mix.name}`",
                    "reduce `--days` or `--load`, or use a workload with longer jobs",
                )
        return made

    def _submission(self) -> _Submission:
        generator, mix = self.generator, self.mix
        place = self.team_choice.draw(generator)
        team = self.teams[place]
        size = self.sizes[place][self.size_choices[place].draw(generator)]
        user = int(generator.random() * mix.users_per_team) + 1
        count = self._batch(size)
        law = size.durations[self.law_choices[size.gpus].draw(generator)]
        return _Submission(
            team=team,
            user=f"{team.name}-{user}" if team.name else f"user-{user}",
            gpus=size.gpus,
            durations_s=self._durations_s(law, count),
            offsets_s=self._offsets_s(count),
        )

    def _durations_s(self, law: Lognormal, count: int) -> tuple[int, ...]:
        """Draw logarithms that share a part: each alone is still lognormal."""
        generator, correlation = self.generator, self.mix.alike
        if count == 1:
            zs = [generator.standard_normal()]
        else:
            independent = sqrt(1.0 - correlation) * generator.standard_normal(count)
            zs = (sqrt(correlation) * generator.standard_normal() + independent).tolist()
        most = self.duration_s_max
        drawn = (law.median_s * exp(min(700.0, law.sigma * z)) for z in zs)
        return tuple(max(1, round(min(one, most))) for one in drawn)

    def _offsets_s(self, count: int) -> tuple[int, ...]:
        gap_s = self.mix.batch_gap_s
        if count == 1 or not gap_s:
            return (0,) * count
        gaps = self.generator.exponential(gap_s, count - 1).tolist()
        return tuple(int(one) for one in accumulate((0.0, *gaps)))

    def _batch(self, size: SizeClass) -> int:
        if self.generator.random() < size.alone:
            return 1
        sigma = sqrt(2 * log(size.batch_mean / size.batch_median))
        drawn = size.batch_median * exp(sigma * float(self.generator.standard_normal()))
        return int(min(max(2, round(drawn)), max(2, self.mix.batch_most)))

    def submit_times(self, count: int) -> list[int]:
        """Return when submissions are made, in seconds: the rhythm, and days unlike others."""
        mix, generator = self.mix, self.generator
        hours = max(1, -(-int(self.demand.span_ms) // HOUR))
        number = np.arange(hours)
        weight = np.asarray(mix.hours)[number % 24] * np.asarray(mix.days)[number // 24 % 7]
        if mix.day_cv:
            shape = 1 / mix.day_cv**2
            days = -(-int(self.demand.span_ms) // DAY)
            weight = weight * generator.gamma(shape, 1 / shape, max(1, days))[number // 24]
        length_s = np.full(hours, HOUR / SECOND)
        length_s[-1] = self.span_s - (hours - 1) * HOUR / SECOND
        parts: list[float] = (weight * length_s).tolist()
        if sum(parts) <= 0:
            # The span ends before the first hour with submissions.
            parts = length_s.tolist()
        cumulative = list(accumulate(parts))
        draws: list[float] = (generator.random(count) * cumulative[-1]).tolist()
        places = [min(bisect_right(cumulative, draw_at), hours - 1) for draw_at in draws]
        offset_in_hour = generator.random(count) * length_s[places]
        return [int(one) for one in np.asarray(places) * (HOUR / SECOND) + offset_in_hour]


def _truncate(one: _Submission, kept: int) -> _Submission:
    return _Submission(one.team, one.user, one.gpus, one.durations_s[:kept], one.offsets_s[:kept])


def _batch_mean(size: SizeClass) -> float:
    return size.alone + (1 - size.alone) * max(2.0, size.batch_mean)


def _sizes_that_fit(
    mix: WorkloadMix, team: TeamPart, nodes: Sequence[Node], max_gpus: float | None
) -> list[SizeClass]:
    """Return the job sizes for a team; by default up to half of what it may use."""
    usable = [
        node.gpus
        for node in nodes
        if not team.accelerators or node.accelerator in team.accelerators
    ]
    whole = sum(usable)
    most = min(whole, max_gpus if max_gpus is not None else max(whole / 2, max(usable, default=0)))
    sizes = [size for size in mix.sizes if size.part > 0 and size.gpus <= most]
    if not sizes:
        scope = f"team `{team.name}` may use" if team.name else "the fleet allows"
        smallest = min(size.gpus for size in mix.sizes)
        raise InputError(
            "no-size-fits",
            f"the smallest jobs of workload `{mix.name}` need {smallest:g} GPUs, "
            f"but {scope} only {most:g}",
            "use a workload with smaller jobs, or raise `--max-gpus`",
        )
    return sizes
