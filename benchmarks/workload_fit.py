"""Fit workload mixes to traces and to published summaries, and say how good the fit is.

    .venv/bin/python -m benchmarks.workload_fit

prints the rows of `facts/data/workloads.toml` and, for mixes fitted to whole traces, the
quantiles of generated jobs beside those of the trace. Durations of each size are a mixture
of lognormals (expectation maximisation in the logarithm); batches are runs of jobs of one
team and size with less than a minute between them. From a summary (mean, median, GPU time)
come a power law of sizes and a power law of durations over sizes.
"""

from collections.abc import Callable, Iterator
from math import erf, exp, log, sqrt
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from benchmarks.packing import DATA
from benchmarks.verdict import Verdict
from benchmarks.workload_goodness import goodness, muri, philly
from tenfold.model.job.workload import Lognormal, SizeClass

Floats = NDArray[np.float64]
ENDS = ("duration_s_max", "failed", "cancelled")
GAP_S = 60.0
SINGLES_LEAST = 0.51
"""All summaries have a median of one GPU."""
SUMMARY = DATA / "series" / "acme_philly_helios_pai_summary.csv"
EARTH = DATA / "series" / "helios_earth_vc_gpu_demand_10min.parquet"
QUIETEST_HOUR = 5
"""Philly's clock is not stated; its quietest hours are taken for early morning."""


class Fitted(NamedTuple):
    """The figures of a mix, as they stand in the facts."""

    name: str
    sizes: tuple[SizeClass, ...]
    hours: tuple[float, ...]
    days: tuple[float, ...]
    duration_s_max: float
    day_cv: float = 0.0
    batch_gap_s: float = 0.0
    batch_most: int = 1_000
    alike: float = 0.0
    teams: dict[str, float] | None = None
    failed: float = 0.0
    cancelled: float = 0.0


def run(thresholds: dict[str, float]) -> list[Verdict]:
    """Print fits and their goodness; the shipped mixes are held to the thresholds."""
    for one in (*from_traces(), *from_summaries()):
        print("\n".join(toml(one)))
    return goodness(thresholds)


def from_traces() -> Iterator[Fitted]:
    """Yield the mixes fitted job by job."""
    whole = pl.read_parquet(DATA / "jobs" / "philly_2017.parquet").sort("submit_s")
    hours, days, day_cv = rhythm(philly())
    counts = whole.group_by("team").len().sort("len", descending=True)["len"].to_list()
    for name, trace in (("philly", whole), ("muri-heavy", muri())):
        gap_s, most, alike = batches_of(trace)
        teams = {f"vc-{n + 1}": share(c / len(trace)) for n, c in enumerate(counts) if c >= 100}
        yield Fitted(
            name=name,
            sizes=sizes_of(trace),
            hours=turned(hours, QUIETEST_HOUR),
            days=days,
            day_cv=day_cv,
            batch_gap_s=gap_s,
            batch_most=most,
            alike=alike,
            duration_s_max=float(trace["duration_s"].to_numpy().max()),
            teams=teams if name == "philly" else None,
            # Of the whole Philly trace, as published beside that of Acme.
            failed=0.305 if name == "philly" else 0.0,
            cancelled=0.09 if name == "philly" else 0.0,
        )


def from_summaries() -> Iterator[Fitted]:
    """Yield the mixes of which only means, medians and sums are published."""
    earth = (
        pl.read_parquet(EARTH)
        .with_columns(vc=pl.col("vc").cast(pl.String))
        .sort("vc", "time")
        .with_columns(
            came=(pl.col("running_jobs") + pl.col("pending_jobs")).diff().over("vc").clip(0)
        )
    )
    hours, days = (
        relative(earth.group_by(key.alias("key")).agg(pl.col("came").mean()).sort("key")["came"])
        for key in (pl.col("time").dt.hour(), pl.col("time").dt.weekday())
    )
    for row in pl.read_csv(SUMMARY).iter_rows(named=True):
        name = {"Helios": "helios", "Seren": "acme", "Kalos": "acme-kalos"}.get(row["id"])
        if name is None:
            continue
        gpu_s = sum(row[f"{how}_gpu_time"] for how in ("complete", "cancel", "fail"))
        sizes = from_means(
            gpus_mean=row["avg_gpu_num"],
            gpus_max=row["max_gpu"],
            median_s=row["med_run_time_gpu"],
            mean_s=row["avg_run_time_gpu"],
            gpu_s_mean=gpu_s / row["gpu_job_num"],
            most_s=row["max_run_time_gpu"],
        )
        yield Fitted(
            name=name,
            sizes=sizes,
            hours=hours,
            days=days,
            duration_s_max=row["max_run_time_gpu"],
            failed=row["fail_rate_gpu"],
            cancelled=row["cancel_rate_gpu"],
        )


def sizes_of(trace: pl.DataFrame) -> tuple[SizeClass, ...]:
    """Return the share, durations and batches of each size."""
    made: list[SizeClass] = []
    for gpus in sorted(trace["gpus"].unique()):
        jobs = trace.filter(pl.col("gpus") == gpus)
        batches = np.concatenate(
            [runs(one["submit_s"].to_numpy()) for _, one in jobs.group_by("team")]
        )
        several = batches[batches > 1]
        median = exp(float(np.log(several).mean())) if len(several) else 2.0
        made.append(
            SizeClass(
                gpus=gpus,
                part=float(f"{len(jobs) / len(trace):.3g}"),
                durations=mixture(np.log(np.maximum(1.0, jobs["duration_s"].to_numpy()))),
                alone=share(float((batches == 1).mean())),
                batch_median=round(median, 2),
                batch_mean=round(max(median, float(several.mean()) if len(several) else 2.0), 2),
            )
        )
    return tuple(made)


def runs(times_s: Floats) -> NDArray[np.int64]:
    """Return the sizes of runs of submissions with less than a minute between them."""
    ends = np.flatnonzero(np.diff(times_s) > GAP_S)
    return np.diff(np.concatenate(([-1], ends, [len(times_s) - 1])))


def batches_of(trace: pl.DataFrame) -> tuple[float, int, float]:
    """Return mean gap inside batches, the largest batch, and how alike its durations are."""
    gaps: list[Floats] = []
    pairs: list[Floats] = []
    most = 1
    for _, jobs in trace.group_by("team", "gpus", maintain_order=True):
        times, logs = jobs["submit_s"].to_numpy(), np.log(jobs["duration_s"].to_numpy())
        near = np.diff(times) <= GAP_S
        gaps.append(np.diff(times)[near])
        pairs.append(np.stack([logs[:-1][near], logs[1:][near]]))
        most = max(most, int(runs(times).max()))
    return (
        round(float(np.concatenate(gaps).mean()), 1),
        most,
        round(float(np.corrcoef(np.concatenate(pairs, 1))[0, 1]), 2),
    )


def mixture(logs: Floats) -> tuple[Lognormal, ...]:
    """Return lognormals fitted by expectation maximisation, shortest first."""
    count = 4 if len(logs) >= 10_000 else 3 if len(logs) >= 400 else 2 if len(logs) >= 30 else 1
    middle = np.quantile(logs, (np.arange(count) + 0.5) / count) + np.arange(count) * 1e-3
    sigma = np.full(count, max(0.3, float(logs.std()) / count))
    part = np.full(count, 1 / count)
    for _ in range(400):
        odds = part * np.exp(-0.5 * ((logs[:, None] - middle) / sigma) ** 2) / sigma
        odds /= np.maximum(odds.sum(1, keepdims=True), 1e-300)
        weight = np.maximum(odds.sum(0), 1e-9)
        part, middle = weight / len(logs), (odds * logs[:, None]).sum(0) / weight
        spread = (odds * (logs[:, None] - middle) ** 2).sum(0) / weight
        sigma = np.sqrt(np.maximum(spread, 0.05**2))
    return tuple(
        Lognormal(
            median_s=float(f"{exp(middle[one]):.3g}"),
            sigma=round(float(sigma[one]), 2),
            part=round(float(part[one]), 3),
        )
        for one in np.argsort(middle)
    )


def rhythm(trace: pl.DataFrame) -> tuple[tuple[float, ...], tuple[float, ...], float]:
    """Return hours, days and the spread of days, of submissions: a batch counts once."""
    starts = np.concatenate(
        [
            jobs["submit_s"].to_numpy()[np.diff(jobs["submit_s"], prepend=-1e9) > GAP_S]
            for _, jobs in trace.group_by("team", "gpus", maintain_order=True)
        ]
    )
    hours = np.bincount((starts // 3_600).astype(int) % 24, minlength=24)
    daily = np.bincount((starts // 86_400).astype(int))
    days = np.asarray([daily[one::7].mean() for one in range(7)])
    about = daily / days[np.arange(len(daily)) % 7]
    beyond_chance = max(0.0, float(about.var()) - float((1 / np.maximum(1, daily)).mean()))
    return relative(hours), relative(days), round(sqrt(beyond_chance), 2)


def turned(hours: tuple[float, ...], quietest: int) -> tuple[float, ...]:
    """Turn the clock so that the three quietest hours in a row lie around this one."""
    least = min(range(24), key=lambda at: sum(hours[(at + step) % 24] for step in (-1, 0, 1)))
    return tuple(hours[(least + at - quietest) % 24] for at in range(24))


def from_means(
    *,
    gpus_mean: float,
    gpus_max: float,
    median_s: float,
    mean_s: float,
    gpu_s_mean: float,
    most_s: float,
) -> tuple[SizeClass, ...]:
    """Return sizes by a power law, and durations whose median and mean rise with size."""
    sizes = 2.0 ** np.arange(int(log(gpus_max, 2)) + 1)

    def parts(falls: float) -> Floats:
        weight = sizes**-falls
        weight /= weight.sum()
        if weight[0] < SINGLES_LEAST:
            weight[1:] *= (1 - SINGLES_LEAST) / (1 - weight[0])
            weight[0] = SINGLES_LEAST
        return weight

    part = parts(_solve(lambda falls: gpus_mean - float(parts(falls) @ sizes), 0.1, 4.0))

    def means(rises: float, sigma: float) -> Floats:
        middle = _scaled(part, sizes, rises, sigma, median_s)
        return np.asarray([clipped_mean(one, sigma, most_s) for one in middle])

    def sigma_of(rises: float) -> float:
        return _solve(lambda sigma: float(part @ means(rises, sigma)) - mean_s, 0.3, 5.0)

    def work(rises: float) -> float:
        return float((part * sizes) @ means(rises, sigma_of(rises)))

    rises = _solve(lambda one: work(one) - gpu_s_mean, 0.0, 3.0)
    sigma = sigma_of(rises)
    middle = _scaled(part, sizes, rises, sigma, median_s)
    return tuple(
        SizeClass(
            gpus=float(gpus),
            part=float(f"{share_of:.3g}"),
            durations=(Lognormal(median_s=float(f"{one:.3g}"), sigma=round(sigma, 2)),),
        )
        for gpus, share_of, one in zip(sizes, part, middle, strict=True)
    )


def _scaled(part: Floats, sizes: Floats, rises: float, sigma: float, median_s: float) -> Floats:
    """Return the median of each size such that the median of all jobs is as published."""

    def below(scale: float) -> float:
        z = (log(median_s) - np.log(scale * sizes**rises)) / sigma
        return float(part @ np.asarray([0.5 * (1 + erf(one / sqrt(2))) for one in z])) - 0.5

    return _solve(below, median_s * 1e-4, median_s * 1e4, logarithmic=True) * sizes**rises


def clipped_mean(median: float, sigma: float, most: float) -> float:
    """Return the mean of a lognormal of which nothing is above `most`."""
    at = log(most / median) / sigma
    under = 0.5 * (1 + erf((at - sigma) / sqrt(2)))
    over = 0.5 * (1 - erf(at / sqrt(2)))
    return median * exp(sigma**2 / 2) * under + most * over


def _solve(
    gap: Callable[[float], float], low: float, high: float, *, logarithmic: bool = False
) -> float:
    """Return where a monotone function is zero, by halving; an end where it never is."""
    if logarithmic:
        low, high = log(low), log(high)
        return exp(_solve(lambda one: gap(exp(one)), low, high))
    rising = gap(high) > gap(low)
    for _ in range(60):
        middle = (low + high) / 2
        if (gap(middle) > 0) == rising:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def relative(values: object) -> tuple[float, ...]:
    one = np.asarray(values, dtype=np.float64)
    return tuple(round(float(value), 2) for value in one / one.mean())


def share(value: float) -> float:
    return round(value, 4)


def toml(one: Fitted) -> Iterator[str]:
    """Yield a fit as it stands in the facts, provenance left to the writer."""
    yield f'\n[[workload]]\nname = "{one.name}"'
    for key in ("hours", "days"):
        yield f"{key} = {list(getattr(one, key))}"
    for key in ("day_cv", "batch_gap_s", "batch_most", "alike", *ENDS):
        yield f"{key} = {getattr(one, key)}"
    if one.teams:
        yield f"teams = {{ {', '.join(f'{team} = {part}' for team, part in one.teams.items())} }}"
    yield "sizes = ["
    for size in one.sizes:
        laws = ", ".join(
            f"{{ part = {law.part}, median_s = {law.median_s:g}, sigma = {law.sigma} }}"
            for law in size.durations
        )
        batches = ""
        if size.alone < 1:
            batches = f", alone = {size.alone}, batch_median = {size.batch_median}"
            batches += f", batch_mean = {size.batch_mean}"
        yield f"    {{ gpus = {size.gpus:g}, part = {size.part}{batches}, durations = [{laws}] }},"
    yield "]"


if __name__ == "__main__":
    for verdict in run({}):
        print(verdict.line())
