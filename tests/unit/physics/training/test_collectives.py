"""Collectives by group size, ranks inside the node, and bytes."""

import numpy as np
import pytest

from tenfold.physics.training.collectives import (
    RING_SHARE,
    Fabric,
    all_reduce_s,
    all_to_all_s,
    reduce_scatter_s,
    ring_bytes_s,
    send_s,
)

NODE = Fabric(scaleup_bytes_s=450e9, nic_bytes_s=50e9)
GB = 1e9


def test_a_group_of_one_says_nothing():
    assert all_reduce_s(NODE, GB, 1.0, 1.0) == 0
    assert reduce_scatter_s(NODE, GB, 1.0, 1.0) == 0
    assert all_to_all_s(NODE, GB, 1.0, 1.0) == 0


def test_a_ring_moves_each_byte_twice_whatever_its_length():
    """R18: data a rank moves is 2 (n-1)/n of the gradients, so time flattens with ranks."""
    free = Fabric(450e9, 50e9, start_s=0.0, hop_s=0.0)
    rate = 450e9 * RING_SHARE
    for ranks in (2.0, 4.0, 8.0):
        moved = 2 * GB * (ranks - 1) / ranks
        assert all_reduce_s(free, GB, ranks, ranks) == pytest.approx(moved / rate)


def test_doubling_the_ranks_costs_more_but_never_twice():
    """R18: the cost of data parallelism grows slowly with its ranks."""
    ranks = 8.0 * 2.0 ** np.arange(12)
    times = np.asarray(all_reduce_s(NODE, 14 * GB, ranks, 8.0))
    assert np.all(np.diff(times[1:]) > 0)
    assert np.all(times[2:] < 2 * times[1:-1])
    # Below a thousand ranks seven doublings together cost less than one more copy of the work.
    assert times[7] < 2 * times[1]


def test_an_all_reduce_is_a_scatter_and_a_gather_with_one_start():
    once = reduce_scatter_s(NODE, GB, 64.0, 8.0)
    both = all_reduce_s(NODE, GB, 64.0, 8.0)
    assert both == pytest.approx(2 * once - NODE.start_s)


def test_leaving_the_node_costs_bandwidth():
    assert all_reduce_s(NODE, GB, 16.0, 8.0) > all_reduce_s(NODE, GB, 8.0, 8.0)
    alone, together = ring_bytes_s(NODE, 16.0, 1.0), ring_bytes_s(NODE, 16.0, 4.0)
    assert float(together) == pytest.approx(4 * float(alone))


def test_between_nodes_each_rank_of_the_group_drives_its_own_nic():
    """Galvatron's two-node profile: 8.1 GB/s with one rank a node, 16.2 with two."""
    measured = Fabric(scaleup_bytes_s=300e9, nic_bytes_s=8.1e9)
    assert float(ring_bytes_s(measured, 4.0, 2.0)) == pytest.approx(16.2e9)


def test_the_nics_of_a_node_together_never_beat_its_own_links():
    wide = Fabric(scaleup_bytes_s=100e9, nic_bytes_s=100e9)
    assert float(ring_bytes_s(wide, 16.0, 8.0)) == pytest.approx(100e9 * RING_SHARE)


def test_a_wider_exchange_sends_more_over_the_network():
    inside = all_to_all_s(NODE, GB, 8.0, 8.0)
    across = all_to_all_s(NODE, GB, 64.0, 8.0)
    assert across > 4 * inside


def test_a_send_between_nodes_takes_the_nic():
    assert float(send_s(NODE, GB, True)) > float(send_s(NODE, GB, False))
    assert float(send_s(NODE, 50 * GB, True)) == pytest.approx(1.0, rel=1e-3)
