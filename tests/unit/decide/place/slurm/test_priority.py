"""Multifactor priority, each factor by hand."""

import math

import pytest

from slurm_builders import begin, end, fleet, job, policy, submit
from tenfold.decide.place.slurm.priority import (
    NO_ACCOUNTS,
    Accounts,
    EndedUsage,
    Priorities,
    fair_shares,
)
from tenfold.fleet.capacity import Capacity
from tenfold.fleet.fleet import Fleet
from tenfold.model.events import NodeJoined
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId, PoolId, SiteId
from tenfold.model.job.job import EndedJob, Job, shape_of
from tenfold.model.policy.slurm import PriorityWeights, SlurmPartition, SlurmPolicy
from tenfold.model.units import DAY, HOUR, MINUTE, SECOND, Millis

NORMAL = SlurmPartition(name="normal", priority_job_factor=10)
URGENT = SlurmPartition(name="urgent", priority_job_factor=40)


def priority(
    one: Job,
    by: SlurmPolicy,
    *,
    to: Fleet | None = None,
    at_s: int = 0,
    partition: SlurmPartition | None = None,
    accounts: Accounts = NO_ACCOUNTS,
) -> int:
    made = to or fleet(4)
    now_ms = Millis(at_s * SECOND)
    return Priorities(by, accounts, made, Capacity.of(made), now_ms).of(one, partition)


def test_age_counts_up_to_its_maximum_and_only_when_priorities_are_computed():
    by = policy(weights=PriorityWeights(age=1_000))
    young = job("a", 1)
    assert priority(young, by, at_s=59) == 1
    assert priority(young, by, at_s=60) == 100
    assert priority(young, by, at_s=119) == 100
    assert priority(young, by, at_s=3_600) == 1_000


def test_size_is_the_mean_of_the_shares_of_nodes_and_of_cpus():
    """The figures are those that Slurm 22.05 gave for 4 nodes of 64 CPUs."""
    made = Fleet()
    for number in range(4):
        node = Node(
            id=NodeId(f"n{number}"),
            pool=PoolId("p"),
            site=SiteId("s"),
            gpus=8,
            cpus_milli=64_000,
        )
        made.apply(NodeJoined(Millis(0), node))
    by = policy(weights=PriorityWeights(job_size=200, partition=400), partitions=(NORMAL, URGENT))
    single = Job(id=job("a", 1).id, shape=shape_of(1, cpus=1), submitted_ms=Millis(0))
    pair = Job(
        id=job("b", 1).id, shape=shape_of(8, gpus_per_node=4, cpus=2), submitted_ms=Millis(0)
    )
    assert priority(single, by, to=made, partition=URGENT) == 425
    assert priority(single, by, to=made, partition=NORMAL) == 125
    assert priority(pair, by, to=made, partition=NORMAL) == 150


def test_small_jobs_can_be_favoured_instead():
    weights = PriorityWeights(job_size=1_000)
    by = SlurmPolicy(priority="multifactor", weights=weights, favors_small=True)
    assert priority(job("small", 1), by) > priority(job("large", 32), by)


def test_what_people_set_is_added_and_the_sum_stays_above_zero():
    by = policy(weights=PriorityWeights(partition=400), partitions=(NORMAL, URGENT))
    assert priority(job("a", 1, priority=-50), by, partition=NORMAL) == 50
    assert priority(job("a", 1, priority=-150), by, partition=NORMAL) == 1
    assert priority(job("a", 1, priority=7), by, partition=NORMAL) == 107


def test_a_qos_counts_by_its_share_of_the_highest():
    by = policy(weights=PriorityWeights(qos=1_000))
    accounts = Accounts(qos_priorities={"high": 10, "low": 1})
    assert priority(job("a", 1, qos="high"), by, accounts=accounts) == 1_000
    assert priority(job("a", 1, qos="low"), by, accounts=accounts) == 100
    assert priority(job("a", 1, qos="other"), by, accounts=accounts) == 1


def test_basic_priority_knows_only_arrival_and_what_people_set():
    assert priority(job("a", 32), SlurmPolicy(weights=PriorityWeights(job_size=1_000))) == 0


def test_a_team_that_used_everything_falls_behind_by_its_share():
    made = fleet(1)
    begin(made, job("one", 4, team="a"), "n1", at_s=0)
    submit(made, job("two", 1, seq=1, team="b"))
    shares = fair_shares(SlurmPolicy(), NO_ACCOUNTS, made, HOUR)
    # All use is a's, whose share is a half: 2^(-1 / 0.5).
    assert shares == pytest.approx({"a": 0.25, "b": 1.0})
    doubled = fair_shares(SlurmPolicy(), Accounts(shares={"a": 3}), made, HOUR)
    assert doubled == pytest.approx({"a": 2 ** (-4 / 3), "b": 1.0})


def test_old_use_fades_by_half_in_each_half_life():
    made = fleet(1)
    begin(made, job("old", 8, team="a"), "n1", at_s=0)
    end(made, "old", 60)
    begin(made, job("new", 8, team="b"), "n1", at_s=7 * DAY // SECOND)
    shares = fair_shares(SlurmPolicy(), NO_ACCOUNTS, made, 7 * DAY + MINUTE)
    # As long ago as the half-life, a's minute counts half of b's: a third of all use.
    assert shares == pytest.approx({"a": 2 ** (-2 / 3), "b": 2 ** (-4 / 3)}, rel=1e-3)


def test_usage_kept_from_pass_to_pass_is_what_a_first_pass_finds():
    half_ms, history = 7 * DAY, list[EndedJob]()
    kept = EndedUsage(half_ms)
    for hour in range(0, 40 * 24, 5):
        ran = job(f"j{hour}", 1 + hour % 3, seq=hour, team="abc"[hour % 7 % 3])
        history.append(EndedJob(ran, Millis(hour % 11 * HOUR), Millis(hour * HOUR), "completed"))
        # The oldest are dropped, as the fleet does, and the last has not ended yet.
        del history[:-20]
        at_ms = (hour - 1) * HOUR
        assert kept.of(history, at_ms) == EndedUsage(half_ms).of(history, at_ms)


def test_usage_is_the_integral_of_what_jobs_held_over_its_decay():
    ran = job("one", 4, team="a")
    history = [EndedJob(ran, Millis(3 * HOUR), Millis(1_000 * DAY), "completed")]
    at_ms, half_ms = 1_002 * DAY, 7 * DAY
    found = EndedUsage(half_ms).of(history, at_ms)
    minutes = [1_000 * DAY - MINUTE * (place + 0.5) for place in range(180)]
    held = sum(4 * MINUTE * 2 ** (-(at_ms - minute) / half_ms) for minute in minutes)
    # The integral of 2^(-t / half) is that over the logarithm of 2, which all teams share.
    assert found == pytest.approx({"a": held * math.log(2)})
    assert EndedUsage(0).of(history, at_ms) == {"a": 4 * 3 * HOUR}
