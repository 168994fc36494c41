"""Let members of an array share what they have in common in memory, as when they were submitted.

Decoding makes a copy of every list and text for each member; equal ones are replaced by those of
the first member.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from tenfold.model.events import Event, JobSubmitted
from tenfold.model.job.job import Job
from tenfold.model.job.run_spec import RunSpec


class MemberSharing:
    """Replaces parts of members by equal ones of the first member of their array."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._run_specs: dict[str, RunSpec] = {}

    def job(self, job: Job) -> Job:
        """Return a job that shares what it can with the first member of its array."""
        terms = job.terms
        if terms is None or not terms.array:
            return job
        first = self._jobs.setdefault(terms.array, job)
        if first is job:
            return job
        return replace(
            job,
            shape=first.shape if job.shape == first.shape else job.shape,
            terms=first.terms if terms == first.terms else terms,
            team=first.team if job.team == first.team else job.team,
            user=first.user if job.user == first.user else job.user,
        )

    def event(self, event: JobSubmitted) -> JobSubmitted:
        """Return a submission that shares what it can with that of the first member."""
        terms, run_spec = event.job.terms, event.run_spec
        if terms is None or not terms.array or run_spec is None:
            return event
        first = self._run_specs.setdefault(terms.array, run_spec)
        if first is not run_spec:
            run_spec = _shared(run_spec, first)
        return replace(event, job=self.job(event.job), run_spec=run_spec)


def share(events: Sequence[Event]) -> Sequence[Event]:
    """Return events; members of an array share what they have in common."""
    members = MemberSharing()
    return [members.event(one) if type(one) is JobSubmitted else one for one in events]


def _shared(run_spec: RunSpec, first: RunSpec) -> RunSpec:
    env = run_spec.env
    if len(env) == len(first.env):
        pairs = zip(env, first.env, strict=True)
        env = tuple([old if new == old else new for new, old in pairs])
    return replace(
        run_spec,
        name=first.name if run_spec.name == first.name else run_spec.name,
        command=first.command if run_spec.command == first.command else run_spec.command,
        env=env,
        folder=first.folder if run_spec.folder == first.folder else run_spec.folder,
        image=first.image if run_spec.image == first.image else run_spec.image,
        checkpoint=(
            first.checkpoint if run_spec.checkpoint == first.checkpoint else run_spec.checkpoint
        ),
        trace=first.trace if run_spec.trace == first.trace else run_spec.trace,
    )
