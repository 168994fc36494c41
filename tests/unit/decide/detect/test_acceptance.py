"""A node behaves like its pool, or it is refused with the figures that say so."""

import pytest

from tenfold.decide.detect.acceptance import AcceptanceRule, acceptance_rule, judge_node
from tenfold.model.acceptance import Figure, NodeTest, NodeVerdict, Peer, after_test, best_results
from tenfold.model.errors import InputError
from tenfold.model.ids import NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from tenfold.report.reasons.render import render

ME = NodeId("new")
RULE = AcceptanceRule()


def figures(core: float, disk: float = 500.0) -> tuple[Figure, ...]:
    return (Figure("core-float", core, "GFLOP/s"), Figure("disk-write", disk, "MB/s"))


def pool(*cores: float) -> list[Peer]:
    return [Peer(NodeId(f"n{place}"), figures(core)) for place, core in enumerate(cores)]


def judged(core: float, *cores: float, disk: float = 500.0) -> NodeVerdict:
    return judge_node(ME, NodeTest(figures=figures(core, disk)), pool(*cores), RULE)


def test_the_first_node_of_a_pool_makes_its_baseline():
    verdict = judged(100.0)
    assert (verdict.is_accepted, verdict.basis, verdict.nodes) == (True, "first", 0)
    assert "first node in its pool" in render(verdict.reason)


def test_a_node_like_its_pool_is_taken():
    verdict = judged(96.0, 100.0, 101.0, 99.0)
    assert (verdict.is_accepted, verdict.basis, verdict.nodes) == (True, "pool", 3)
    assert [one.judged for one in verdict.compared] == ["alike", "alike"]


def test_a_slow_node_is_refused_with_value_median_deviation_and_band():
    verdict = judged(70.0, 100.0, 101.0, 99.0)
    assert not verdict.is_accepted
    (slow, _) = verdict.compared
    assert (slow.judged, slow.value, slow.median) == ("slow", 70.0, 100.0)
    assert (slow.deviation, slow.allowed) == (-0.3, 0.2)
    assert verdict.reason.code == "acceptance-refused"
    assert render(verdict.reason) == (
        "slower than its pool (3 nodes): core-float 70 GFLOP/s, median 100 (30% below, 20% allowed)"
    )


def test_one_odd_node_in_the_pool_does_not_move_the_median():
    assert judged(96.0, 100.0, 101.0, 99.0, 5.0, 100.0).is_accepted
    assert not judged(70.0, 100.0, 101.0, 99.0, 5.0, 100.0).is_accepted


def test_a_disk_may_be_further_off_than_a_core():
    assert judged(100.0, 100.0, disk=300.0).is_accepted
    assert not judged(100.0, 100.0, disk=200.0).is_accepted


def test_a_node_that_is_far_faster_is_taken_and_noted():
    verdict = judged(200.0, 100.0, 101.0)
    assert verdict.is_accepted
    assert [one.judged for one in verdict.compared] == ["fast", "alike"]
    (note,) = verdict.notes
    assert isinstance(note, Reason)
    assert "far above the median" in render(note)


def test_a_pool_that_scatters_widens_its_band_but_never_to_all():
    scattered = [100.0, 60.0, 140.0, 80.0, 120.0]
    assert judged(45.0, *scattered).is_accepted
    wild = judged(1.0, *[1.0, 100.0, 200.0, 400.0, 900.0])
    assert not wild.is_accepted
    assert wild.compared[0].allowed == 0.9


def test_a_figure_that_the_pool_has_and_the_node_has_not_is_a_refusal():
    test = NodeTest(figures=figures(100.0)[:1])
    verdict = judge_node(ME, test, pool(100.0), RULE)
    assert not verdict.is_accepted
    assert render(verdict.reason).endswith("disk-write not measured; median 500 MB/s")


def test_a_figure_that_only_the_node_has_is_no_reason_to_refuse_it():
    more = NodeTest(figures=(*figures(100.0), Figure("gpu", 9.0, "TFLOP/s")))
    verdict = judge_node(ME, more, pool(100.0), RULE)
    assert verdict.is_accepted
    assert verdict.compared[-1].judged == "alike"


def test_a_test_without_figures_refuses_with_what_went_wrong():
    why = Reason("not-measured", sentence="signal 14")
    verdict = judge_node(ME, NodeTest(unmeasured=(why,)), pool(100.0), RULE)
    assert (verdict.is_accepted, verdict.reason.code) == (False, "acceptance-failed")
    assert "signal 14" in render(verdict.reason)


def test_a_node_alone_in_its_pool_is_held_against_itself():
    verdict = judge_node(ME, NodeTest(figures=figures(60.0)), [Peer(ME, figures(100.0))], RULE)
    assert (verdict.is_accepted, verdict.basis) == (False, "itself")
    assert render(verdict.reason).startswith("slower than its own earlier results: ")


def test_a_node_that_becomes_slower_bit_by_bit_is_held_against_its_first_figures():
    standing = None
    for at, core in enumerate((100.0, 90.0, 85.0, 75.0)):
        before = [] if standing is None else [Peer(ME, standing.good)]
        test = NodeTest(figures=figures(core))
        standing = after_test(standing, Millis(at), test, judge_node(ME, test, before, RULE))
        assert standing.good == figures(100.0)
    assert standing is not None
    assert standing.is_refused


def test_the_best_of_several_tests_counts_figure_by_figure():
    why = Reason("gpus-not-measured", sentence="none")
    first = NodeTest(figures=figures(80.0, 500.0), unmeasured=(why,))
    best = best_results(first, NodeTest(figures=figures(90.0, 300.0), unmeasured=(why,)))
    assert best == NodeTest(figures=figures(90.0, 500.0), unmeasured=(why,))


def test_a_wider_band_holds_for_disks_too_and_one_beyond_reason_is_refused():
    assert (acceptance_rule(0.1).disk_band, acceptance_rule(0.7).disk_band) == (0.5, 0.7)
    for band in (0.0, 1.0, -0.1, float("nan")):
        with pytest.raises(InputError, match="band"):
            acceptance_rule(band)
