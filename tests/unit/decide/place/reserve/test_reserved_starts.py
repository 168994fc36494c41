"""Reserved starts are kept: for equivalent gangs that swap, and for members of an array."""

from msgspec.structs import replace

from tenfold.decide.place.governed import GovernedPlacer
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import ReserveStart, StartJob
from tenfold.model.events import ActionOrdered, JobEnded, JobStarted, JobSubmitted
from tenfold.model.ids import JobId
from tenfold.model.job.job import Job, Slot
from tenfold.model.job.terms import Terms
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import HOUR, MINUTE, Millis
from tenfold.testing.builders import fleet, job, nodes

GOVERN = GovernanceRules(reservations=4, reserve_after_ms=Millis(0), preempts=False)


def limited(number: int, terms: Terms | None = None) -> Job:
    """A job of a whole node for an hour."""
    return replace(job(number, 8), limit_ms=Millis(HOUR), terms=terms)


def busy(count: int, *pending: Job) -> Fleet:
    """Nodes that are all busy for an hour, and pending jobs."""
    members, runs = nodes(count), [limited(number) for number in range(count)]
    made = fleet(members, *runs, *pending)
    for node, one in zip(members, runs, strict=True):
        made.apply(ActionOrdered(Millis(0), StartJob(one.id, (Slot(node.id, 8),))))
        made.apply(JobStarted(Millis(0), one.id))
    return made


def decide(made: Fleet, now_ms: int) -> list[ReserveStart | StartJob]:
    """Decide, and apply the orders."""
    now = Millis(now_ms)
    actions = GovernedPlacer(GOVERN).decide(made, now, None).actions
    made.apply_all([ActionOrdered(now, action) for action in actions])
    return [action for action in actions if isinstance(action, ReserveStart | StartJob)]


def test_gangs_that_are_due_at_once_all_start_though_they_swap_reservations():
    made = busy(3, limited(4), limited(5))
    assert [one.job_id for one in decide(made, 1)] == ["job-4"]
    assert [one.job_id for one in decide(made, 2)] == ["job-5"]
    # The last to get a reservation is the first in line; another limit makes another queue.
    made.apply(JobSubmitted(Millis(3), replace(limited(3), limit_ms=Millis(2 * HOUR))))
    assert [one.job_id for one in decide(made, 3)] == ["job-3"]
    assert len(made.reservations) == 3
    made.apply_all([JobEnded(Millis(HOUR), JobId(f"job-{number}")) for number in range(3)])
    starts = [one.job_id for one in decide(made, HOUR) if isinstance(one, StartJob)]
    assert sorted(starts) == ["job-3", "job-4", "job-5"]


def test_an_earlier_member_of_an_array_does_not_take_the_place_of_a_reserved_one():
    waits = limited(2, Terms(array="a", array_most=1, after=(JobId("job-0"),)))
    other = replace(limited(3, Terms(array="a", array_most=1)), shape=job(3, 16).shape)
    made = busy(2, waits, other)
    assert [one.job_id for one in decide(made, 1)] == ["job-3"]
    made.apply(JobEnded(Millis(MINUTE), JobId("job-0")))
    assert decide(made, MINUTE) == []
    assert list(made.reservations) == ["job-3"]
