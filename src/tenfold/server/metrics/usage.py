"""What GPUs, jobs and teams use, read when somebody scrapes.

Labels are bounded: devices by those of this machine, teams by the largest and one for the rest.
No job is a label, for jobs come and go by the thousand.
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
    """Gauges of use."""

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

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the journal."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read what is so now."""
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
        help_text = "GPUs that running jobs of a team hold."
        yield by_team("tenfold_team_held_gpus", help_text, held)
        yield self._gpu_time.counted(held, self._now_s())
        help_text = "GPUs that a team is promised by the policy."
        yield by_team("tenfold_team_quota_gpus", help_text, self._quotas)
        help_text = "GPUs that jobs of a team hold and do not use."
        yield by_team("tenfold_idle_gpus", help_text, idle)
        yield by_team("tenfold_idle_jobs", "Running jobs of a team that idle.", jobs)
        measured = GaugeMetricFamily(
            "tenfold_measured_jobs", "Running jobs whose use was measured.", labels=("measure",)
        )
        for measure, count in self._usage.by_measure().items():
            measured.add_metric((measure,), count)
        yield measured

    def _devices(self) -> Iterable[Metric]:
        labels = ("node", "gpu")
        use = GaugeMetricFamily(
            "tenfold_gpu_utilisation_ratio",
            "Share of the time since the look before in which something ran on a GPU.",
            labels=labels,
        )
        used = GaugeMetricFamily(
            "tenfold_gpu_memory_used_bytes", "Memory of a GPU that is in use.", labels=labels
        )
        whole = GaugeMetricFamily(
            "tenfold_gpu_memory_size_bytes", "Memory that a GPU has.", labels=labels
        )
        for gpu in self._usage.gpus:
            named = (self._usage.node, str(gpu.number))
            use.add_metric(named, gpu.use_milli / 1_000)
            used.add_metric(named, gpu.memory_used_bytes)
            whole.add_metric(named, gpu.memory_bytes)
        yield from (use, used, whole)


class TeamGpuTime:
    """GPU time by team, added up from scrape to scrape: it only grows, as a counter must.

    The first teams to come keep their names; what later ones use is told as one.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._before: tuple[float, dict[str, float]] | None = None
        self._seconds: dict[str, float] = {}

    def counted(self, held: Mapping[str, float], now_s: float) -> CounterMetricFamily:
        """Add what was held since the last scrape, and return the sums."""
        help_text = "GPU time that running jobs of a team held, added up at each scrape."
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
    """Return a gauge by team: the largest by name, and what is left as one."""
    family = GaugeMetricFamily(name, help_text, labels=("team",))
    ranked = sorted(amounts.items(), key=lambda one: (-one[1], one[0]))
    for team, amount in ranked[:TEAMS_MAX]:
        family.add_metric((team,), amount)
    if len(ranked) > TEAMS_MAX:
        family.add_metric((OTHERS,), sum(amount for _, amount in ranked[TEAMS_MAX:]))
    return family


def quotas_of(govern: GovernanceRules) -> dict[str, float]:
    """Return the GPUs that each team is promised: of any type, or all its types together."""
    found: dict[str, float] = {}
    for team in govern.teams:
        typed = sum(many for name, many in team.quota.items() if name not in (ANY, USD))
        found[str(team.id)] = team.quota.get(ANY, typed) / WHOLE
    return found
