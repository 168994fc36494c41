"""A gateway that was stopped does not take its clients for slow."""

from tenfold.gateway.serve.process import STOPPED_S, SWEEP_S, StallDetector


def test_only_the_turn_after_a_stall_judges_nobody():
    stall, now_s = StallDetector(100.0), 100.0
    for _ in range(3):
        now_s += SWEEP_S
        assert not stall.was_stopped(now_s)
    now_s += SWEEP_S + STOPPED_S + 10
    assert stall.was_stopped(now_s)
    now_s += SWEEP_S
    assert not stall.was_stopped(now_s)
