"""The `slurm` policy, one pass at a time: the main pass, backfill and the choice of nodes."""

from msgspec.structs import replace

from slurm_builders import begin, decided, fleet, job, policy, starts, submit
from tenfold.decide.place.slurm.slurm import SlurmPlacer
from tenfold.model.actions import RefuseJob
from tenfold.model.policy.slurm import SlurmPartition
from tenfold.model.units import MINUTE, SECOND, Millis


def blocked_fleet():
    """One node of two runs 6 of 8 GPUs for 10 minutes; a gang of both nodes waits first."""
    made = fleet(2)
    begin(made, job("long", 6, limit_minutes=10), "n1")
    submit(made, job("head", 16, limit_minutes=5, seq=1))
    return made


def test_jobs_start_in_order_of_priority_and_then_of_arrival():
    made = fleet(1)
    submit(
        made,
        job("first", 4, seq=0),
        job("second", 4, seq=1),
        job("favoured", 4, seq=2, priority=10),
    )
    assert list(starts(made, policy())) == ["favoured", "first"]


def test_without_backfill_nobody_passes_the_first_job_that_cannot_start():
    made = blocked_fleet()
    submit(made, job("short", 1, limit_minutes=1, seq=2))
    assert starts(made, policy(backfills=False)) == {}


def test_a_short_job_fills_the_hole_before_the_head():
    made = blocked_fleet()
    submit(made, job("short", 1, limit_minutes=9, seq=2))
    assert starts(made, policy()) == {"short": ["n1"]}


def test_a_job_that_would_delay_the_head_waits():
    made = blocked_fleet()
    submit(made, job("too-long", 1, limit_minutes=11, seq=2))
    assert starts(made, policy()) == {}


def test_a_long_job_may_use_a_node_that_the_head_does_not_need():
    made = fleet(3)
    begin(made, job("a", 8, limit_minutes=10), "n1")
    begin(made, job("b", 8, limit_minutes=10, seq=1), "n2")
    submit(made, job("head", 16, limit_minutes=5, seq=2))
    submit(made, job("long", 8, limit_minutes=600, seq=3))
    # After 10 minutes all three are free, and the head is planned for the first two.
    assert starts(made, policy()) == {"long": ["n3"]}


def test_a_node_that_is_kept_for_the_head_is_kept_whole():
    made = fleet(3)
    begin(made, job("a", 8, limit_minutes=10), "n1")
    begin(made, job("b", 8, limit_minutes=20, seq=1), "n2")
    submit(made, job("head", 9, per_node=8, limit_minutes=5, seq=2))
    submit(made, job("long", 1, limit_minutes=600, seq=3))
    # The head needs one GPU of n3 in 10 minutes; that keeps all of its eight.
    assert starts(made, policy()) == {}


def test_backfill_looks_only_at_so_many_jobs():
    made = blocked_fleet()
    submit(made, job("short", 1, limit_minutes=1, seq=2))
    assert starts(made, policy(jobs_tested_max=1)) == {}
    assert starts(made, policy(jobs_tested_max=2)) == {"short": ["n1"]}


def test_backfill_starts_only_so_many_jobs_and_looks_at_only_so_many_of_a_user():
    made = blocked_fleet()
    submit(made, *(job(f"short-{n}", 1, limit_minutes=1, seq=2 + n, team="a") for n in range(2)))
    plain = policy()
    assert len(starts(made, plain)) == 2
    one_start = replace(plain, backfill=replace(plain.backfill, jobs_started_max=1))
    assert list(starts(made, one_start)) == ["short-0"]
    one_each = replace(plain, backfill=replace(plain.backfill, jobs_per_user_max=1))
    assert list(starts(made, one_each)) == ["short-0"]


def test_the_main_pass_looks_only_at_so_many_jobs_between_its_full_turns():
    made = fleet(1)
    submit(made, job("a", 1, seq=0), job("b", 1, seq=1))
    by = policy(queue_depth=1, backfills=False)
    assert list(starts(made, by, 1)) == ["a"]
    assert list(starts(made, by, 60)) == ["a", "b"]


def test_a_limit_that_is_missing_is_that_of_the_partition():
    made = blocked_fleet()
    submit(made, job("unlimited", 1, limit_minutes=None, seq=2))
    short = SlurmPartition(name="p", time_default_ms=Millis(5 * MINUTE), is_default=True)
    assert starts(made, policy()) == {}
    assert starts(made, policy(partitions=(short,))) == {"unlimited": ["n1"]}


def test_a_partition_keeps_its_jobs_to_its_nodes_and_blocks_only_those():
    left = SlurmPartition(name="left", nodes="n[1-2]", is_default=True)
    right = SlurmPartition(name="right", nodes="n3")
    by = policy(partitions=(left, right), backfills=False)
    made = fleet(3)
    begin(made, job("busy", 8), "n1")
    submit(made, job("head", 16, seq=1))
    submit(made, job("behind", 1, seq=2), job("beside", 1, seq=3, qos="right"))
    assert starts(made, by) == {"beside": ["n3"]}


def test_a_gang_larger_than_its_partition_is_refused():
    small = SlurmPartition(name="small", nodes="n1", is_default=True)
    made = fleet(2)
    submit(made, job("big", 16))
    [action] = decided(made, policy(partitions=(small,))).actions
    assert isinstance(action, RefuseJob)
    assert action.reasons[0].code == "larger-than-the-partition"


def test_nodes_are_taken_in_order_whatever_runs_on_them():
    made = fleet(3)
    begin(made, job("a", 1), "n2")
    submit(made, job("b", 1, seq=1))
    assert starts(made, policy()) == {"b": ["n1"]}


def test_the_shortest_run_of_neighbours_that_suffices_is_taken():
    made = fleet(6)
    begin(made, job("a", 8), "n4")
    submit(made, job("pair", 16, seq=1))
    # n1 to n3 are three in a row, n5 and n6 are two.
    assert starts(made, policy()) == {"pair": ["n5", "n6"]}


def test_where_no_run_suffices_the_longest_comes_first():
    made = fleet(5)
    begin(made, job("a", 8), "n2")
    submit(made, job("four", 32, seq=1))
    assert starts(made, policy()) == {"four": ["n3", "n4", "n5", "n1"]}


def test_nothing_is_decided_between_beats_but_the_next_one_is_asked_for():
    made = fleet(1)
    submit(made, job("a", 1))
    between = SlurmPlacer(policy()).decide(made, Millis(1_500), None)
    assert between.actions == []
    assert between.wake_at_ms == 2 * SECOND


def test_a_full_fleet_asks_for_no_pass_until_something_happens():
    made = fleet(1)
    begin(made, job("a", 8), "n1")
    submit(made, job("b", 1, seq=1))
    assert decided(made, policy(), 5).wake_at_ms is None
