"""Usage metrics of GPUs, jobs and teams, read at each scrape.

Labels are bounded: the GPUs of this machine, the largest teams and one label for the rest. Jobs are
not labels, because there are thousands of them.
"""

from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from time import monotonic

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tenfold.fleet.fleet import Fleet
from tenfold.live.usage import Usage
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import ANY, USD, GovernanceRules
from tenfold.server.usage import gpus_of

TEAMS_MAX = 50
OTHERS = "(others)"


class UsageCollector(Collector):
    """Usage gauges."""

    def __init__(
        self,
        usage: Usage,
        fleet: Callable[[], Fleet],
        govern: GovernanceRules | None = None,
        now_s: Callable[[], float] = monotonic,
    ) -> None:
        self._usage, self._fleet, self._now_s = usage, fleet, now_s
        self._quotas = quotas_of(govern or GovernanceRules())
        self._gpu_time = TeamGpuTime()
        self.is_wanted: Callable[[], bool] = lambda: True
        """False in a standby: the leader exports the same figures, and sums would count twice."""

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the journal."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read the current state."""
        if not self.is_wanted():
            return
        yield from self._devices()
        fleet = self._fleet()
        held: dict[str, float] = {}
        idle: dict[str, float] = {}
        jobs: dict[str, float] = {}
        for run in fleet.running.values():
            team, gpus = str(run.job.team), gpus_of(run)
            held[team] = held.get(team, 0) + gpus
            if run.job.id in fleet.idle:
                idle[team] = idle.get(team, 0) + gpus
                jobs[team] = jobs.get(team, 0) + 1
        help_text = "GPUs held by running jobs, by team."
        yield by_team("tenfold_team_held_gpus", help_text, held)
        yield self._gpu_time.counted(held, self._now_s())
        help_text = "GPU quota of a team in the policy."
        yield by_team("tenfold_team_quota_gpus", help_text, self._quotas)
        help_text = "GPUs held but not used, by team."
        yield by_team("tenfold_idle_gpus", help_text, idle)
        yield by_team("tenfold_idle_jobs", "Idle running jobs, by team.", jobs)
        measured = GaugeMetricFamily(
            "tenfold_measured_jobs", "Running jobs with usage samples.", labels=("measure",)
        )
        for measure, count in self._usage.by_measure().items():
            measured.add_metric((measure,), count)
        yield measured

    def _devices(self) -> Iterable[Metric]:
        labels = ("node", "gpu")
        use = GaugeMetricFamily(
            "tenfold_gpu_utilisation_ratio",
            "Share of time since the last sample in which the GPU was busy.",
            labels=labels,
        )
        used = GaugeMetricFamily(
            "tenfold_gpu_memory_used_bytes", "GPU memory in use.", labels=labels
        )
        whole = GaugeMetricFamily(
            "tenfold_gpu_memory_size_bytes", "GPU memory size.", labels=labels
        )
        for gpu in self._usage.gpus:
            named = (self._usage.node, str(gpu.number))
            use.add_metric(named, gpu.use_milli / 1_000)
            used.add_metric(named, gpu.memory_used_bytes)
            whole.add_metric(named, gpu.memory_bytes)
        yield from (use, used, whole)


class TeamGpuTime:
    """GPU time by team, summed from scrape to scrape; it only grows, as a counter must.

    The first teams keep their names; later ones share one label.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._before: tuple[float, dict[str, float]] | None = None
        self._seconds: dict[str, float] = {}

    def counted(self, held: Mapping[str, float], now_s: float) -> CounterMetricFamily:
        """Add what was held since the last scrape, and return the sums."""
        help_text = "GPU time held by running jobs, by team; summed at each scrape."
        family = CounterMetricFamily("tenfold_team_gpu_seconds", help_text, labels=("team",))
        with self._lock:
            then_s, then = self._before or (now_s, {})
            passed_s = max(0.0, now_s - then_s)
            for team in dict.fromkeys((*then, *held)):
                known = team in self._seconds or len(self._seconds) < TEAMS_MAX
                name = team if known else OTHERS
                mean = (then.get(team, 0.0) + held.get(team, 0.0)) / 2
                self._seconds[name] = self._seconds.get(name, 0.0) + mean * passed_s
            self._before = (now_s, dict(held))
            for team, seconds in self._seconds.items():
                family.add_metric((team,), seconds)
        return family


def by_team(name: str, help_text: str, amounts: Mapping[str, float]) -> GaugeMetricFamily:
    """Return a gauge by team: the largest by name, and the rest as one."""
    family = GaugeMetricFamily(name, help_text, labels=("team",))
    ranked = sorted(amounts.items(), key=lambda one: (-one[1], one[0]))
    for team, amount in ranked[:TEAMS_MAX]:
        family.add_metric((team,), amount)
    if len(ranked) > TEAMS_MAX:
        family.add_metric((OTHERS,), sum(amount for _, amount in ranked[TEAMS_MAX:]))
    return family


def quotas_of(govern: GovernanceRules) -> dict[str, float]:
    """Return the GPU quota of each team: of any type, or the sum of its types."""
    found: dict[str, float] = {}
    for team in govern.teams:
        typed = sum(many for name, many in team.quota.items() if name not in (ANY, USD))
        found[str(team.id)] = team.quota.get(ANY, typed) / WHOLE
    return found
