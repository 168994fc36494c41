"""Calibration of a half: what the record says beside the simulation of the unchanged policy."""

from msgspec.structs import replace

from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.study.assess.halves import Half, HalfRun, calibration_of, run_half
from tenfold.testing.builders import job, nodes


def half(waits_s: int) -> tuple[Half, HalfRun]:
    """Four jobs on idle nodes, which the record started so much later than they came."""
    jobs = tuple(
        replace(job(number, 1, at_s=number * 100, runs_s=10), seq=number) for number in range(4)
    )
    found = Half(
        name="first half",
        jobs=jobs,
        measured=frozenset(one.id for one in jobs),
        starts_ms={one.id: Millis(one.submitted_ms + waits_s * 1_000) for one in jobs},
        from_ms=0,
        until_ms=1_000_000,
        share=1.0,
    )
    return found, run_half(found, nodes(1), Policy(name="fifo"), {})


def test_two_short_mean_waits_are_shown_as_seconds_and_not_as_a_share():
    found = calibration_of(*half(50))
    assert found.calibrated
    assert "mean wait 50 s recorded, 0 s simulated (4 jobs" in found.sentence
    assert "off by" not in found.sentence


def test_waits_that_the_simulation_does_not_have_are_not_calibrated():
    found = calibration_of(*half(500))
    assert found.sentence == (
        "not calibrated: waits off by 100% over 4 jobs of the first half (limit 15%)"
    )
