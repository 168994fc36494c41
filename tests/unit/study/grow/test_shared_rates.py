"""All-reduce over a shared link: the closed forms, and the cut behind measured times."""

import math

import pytest

from benchmarks.grow.rigs.shared_rates import (
    Cut,
    crossings_alternating,
    crossings_in_blocks,
    edge_bytes_per_s,
    fit_cut,
    ring_s,
    step_efficiency,
    tree_s,
)

MB = 1e6


def test_alternating_ranks_send_all_bytes_over_the_cut_once_a_rank_but_one():
    for ranks in (2, 4, 8):
        took = ring_s(4 * MB, ranks, crossings_alternating(ranks), 20 * MB)
        assert took == pytest.approx((ranks - 1) * 4 / 20)


def test_ranks_in_blocks_cross_it_once_however_many_there_are():
    took = ring_s(4 * MB, 8, crossings_in_blocks(8), 20 * MB)
    assert took == pytest.approx(2 * 7 / 8 * 4 / 20)


def test_two_ranks_are_blocks_and_alternate_alike():
    assert crossings_in_blocks(2) == crossings_alternating(2)


def test_every_turn_takes_its_own_time_too():
    assert ring_s(0.0, 4, 2, 20 * MB, alpha_s=0.01) == pytest.approx(6 * 0.01)


def test_one_rank_alone_reduces_nothing():
    assert ring_s(4 * MB, 1, 0, 20 * MB) == tree_s(4 * MB, 1, 0, 20 * MB) == 0.0


def test_a_tree_sends_all_bytes_up_and_down_every_crossing():
    assert tree_s(4 * MB, 8, 1, 20 * MB, 0.01) == pytest.approx(2 * (0.03 + 0.2))


def test_an_edge_gets_its_part_of_the_link_and_no_more_than_its_own_rate():
    assert edge_bytes_per_s(4, 20 * MB) == pytest.approx(5 * MB)
    assert edge_bytes_per_s(4, 20 * MB, 3 * MB) == 3 * MB
    assert edge_bytes_per_s(0, 20 * MB) == math.inf


def test_two_sizes_part_the_turn_from_the_link():
    cut = Cut(alpha_s=0.002, link_bytes_per_s=25 * MB)
    timed = [(size, ring_s(size, 2, 1, cut.link_bytes_per_s, cut.alpha_s)) for size in (MB, 4 * MB)]
    assert fit_cut(timed, 2, 1) == pytest.approx(cut)


def test_times_that_do_not_grow_with_bytes_are_of_no_link():
    assert fit_cut([(MB, 0.2), (4 * MB, 0.2)], 2, 1) == (pytest.approx(0.1), math.inf)


def test_a_step_that_waits_as_long_as_it_computes_is_half_efficient():
    assert step_efficiency(0.3, 0.3) == 0.5
