"""Jobs bound to the nodes that their teams may use, where they were submitted without it.

A run that was recorded, or is live, under another policy knows nothing of the residency that
a governed one requests. Its jobs are bound before that policy sees them.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.compose.governance import with_residency
from tenfold.compose.policies import placing_decider
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis


def jobs_with_residency(jobs: list[Job], policy: Policy) -> list[Job]:
    """Return jobs with the tags that a policy makes their nodes bear."""
    if policy.name != "governed" or policy.govern is None:
        return jobs
    return with_residency(jobs, policy.govern)


def shadow_decider(policy: Policy, restart_cost_ms: int) -> Decider:
    """Return a decider for a policy on trial, which sees jobs as that policy would bind them."""
    decider, govern = placing_decider(policy, restart_cost_ms), policy.govern
    if policy.name == "governed" and govern and any(team.residency for team in govern.teams):
        return ResidencyDecider(decider, govern)
    return decider


class ResidencyDecider:
    """A decider that sees every job bound by the residency of its team."""

    def __init__(self, decider: Decider, govern: GovernanceRules) -> None:
        self.name = decider.name
        self._decider = decider
        self._govern = govern
        self._cache: dict[JobId, tuple[Job, Job]] = {}
        """By name: a job, and as it is bound."""

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Decide on a copy of the fleet in which jobs have their residency tags."""
        assert isinstance(view, Fleet), "only a whole fleet can be copied"
        copy = view.fork()
        copy.pending = {each: self._with_residency(job) for each, job in view.pending.items()}
        copy.orders = {
            each: replace(order, job=self._with_residency(order.job))
            for each, order in view.orders.items()
        }
        copy.running = {
            each: replace(run, job=self._with_residency(run.job))
            for each, run in view.running.items()
        }
        self._cache = {each: self._cache[each] for each in self._cache if _in_fleet(copy, each)}
        return self._decider.decide(copy, now_ms, None)

    def _with_residency(self, job: Job) -> Job:
        cached = self._cache.get(job.id)
        if cached is None or cached[0] is not job:
            cached = self._cache[job.id] = (job, with_residency([job], self._govern)[0])
        return cached[1]


def _in_fleet(fleet: Fleet, job_id: JobId) -> bool:
    return job_id in fleet.pending or job_id in fleet.orders or job_id in fleet.running
