"""What the default order learns, and what it does before it has learned anything."""

from tenfold.decide.place.ranked.learned import BOUNDS, LEVELS, Learned, epoch, level_of
from tenfold.decide.place.ranked.ranking import Group
from tenfold.fleet.fleet import Fleet
from tenfold.model.actions import StartJob
from tenfold.model.events import ActionOrdered, JobEnded, JobStarted, JobSubmitted
from tenfold.model.ids import NodeId
from tenfold.model.job.job import Job, Slot
from tenfold.model.units import HOUR, MINUTE, SECOND, Millis
from tenfold.testing.builders import fleet, job, nodes


def ended(made: Fleet, one: Job, ran_ms: int) -> None:
    at = one.submitted_ms
    made.apply(JobSubmitted(at, one))
    made.apply(ActionOrdered(at, StartJob(one.id, (Slot(NodeId("n0"), one.shape.gpus),))))
    made.apply(JobStarted(at, one.id))
    made.apply(JobEnded(Millis(at + ran_ms), one.id))


def rank(order: Learned, one: Job, level: int = 0) -> float:
    return order.rank(Group(one.shape, order.family(one), level))


def test_levels_double_from_five_minutes():
    assert [level_of(minutes * MINUTE) for minutes in (0, 4, 5, 9, 10, 19, 20)] == [
        0,
        0,
        1,
        1,
        2,
        2,
        3,
    ]
    assert level_of(10**15) == LEVELS - 1
    assert all(level_of(bound) == level for level, bound in enumerate(BOUNDS))


def test_hazards_are_taken_at_fixed_counts():
    assert [epoch(count) for count in (0, 1, 15, 16, 17, 100, 1_000, 5_000)] == [
        0,
        1,
        15,
        16,
        16,
        96,
        960,
        4_608,
    ]


def test_without_history_the_longer_served_goes_later():
    order = Learned()
    order.begin(Fleet())
    # The first two levels are equally wide, so they are nearly alike.
    ranks = [rank(order, job(0, 1), level) for level in range(1, 8)]
    assert ranks == sorted(ranks)


def test_a_larger_job_goes_later():
    order = Learned()
    order.begin(Fleet())
    assert rank(order, job(0, 8)) == 8 * rank(order, job(0, 1))


def test_a_size_whose_jobs_end_soon_goes_first():
    made = fleet(nodes(1))
    for number in range(40):
        ended(made, job(number, 1, at_s=number * 7200, team="a"), 60 * SECOND)
        ended(made, job(number + 100, 2, at_s=number * 7200 + 300, team="a"), 20 * HOUR // 20)
    order = Learned()
    order.begin(made)
    later = job(900, 1, at_s=10**6, team="a")
    other = job(901, 2, at_s=10**6, team="a")
    assert rank(order, later) * 4 < rank(order, other)


def test_one_of_a_batch_speaks_for_the_others():
    made = fleet(nodes(1))
    ended(made, job(0, 1, at_s=0, team="a"), 30 * SECOND)
    order = Learned()
    order.begin(made)
    sibling, stranger = job(1, 1, at_s=60, team="a"), job(40, 1, at_s=9 * 3600, team="a")
    assert rank(order, sibling) < rank(order, stranger)


def test_survivors_make_a_batch_look_long():
    order = Learned()
    order.begin(Fleet())
    first, sibling = job(0, 1, team="a"), job(1, 1, team="a")
    before = rank(order, sibling)
    order.level_changed(first, order.family(first), 0, 6)
    assert rank(order, sibling) > before


def test_true_durations_are_never_read():
    short, long = job(0, 1, runs_s=1), job(1, 1, runs_s=10**6)
    order = Learned()
    order.begin(Fleet())
    assert rank(order, short) == rank(order, long)
