"""A service under each autoscaler, from one request to its figures."""

import numpy as np
import pytest

from tenfold.model.service.simulated import RequestTrace, SimulatedService
from tenfold.model.units import SECOND
from tenfold.sim.service.run import figures
from tenfold.study.autoscale.policies import NAMES
from tenfold.study.autoscale.run import AutoscaleRequest, run_autoscaler, warm_replicas
from tenfold.study.autoscale.timeline import timeline

SERVICE = SimulatedService(
    slots=4,
    prefill_tokens_per_s=4_000,
    decode_tokens_per_s=50,
    cold_start_s=60,
    ttft_objective_s=1,
    replicas_max=20,
    attainment=0.95,
)


def steady(per_s: float, hours: float = 1) -> AutoscaleRequest:
    draws = np.random.default_rng(3)
    arrived = np.cumsum(draws.exponential(1 / per_s, int(per_s * hours * 3_600)))
    made = np.rint(draws.exponential(100, len(arrived))).astype(int)
    trace = RequestTrace(
        np.rint(arrived * 1_000).astype(int).tolist(), [400] * len(arrived), made.tolist()
    )
    return AutoscaleRequest(trace=trace, service=SERVICE, cold_starts_ms=[60_000])


@pytest.mark.parametrize("name", NAMES)
def test_every_policy_serves_a_steady_load(name: str):
    result = run_autoscaler(steady(2), name)  # type: ignore[arg-type]
    assert result.figures.requests == 7_200
    assert result.figures.attainment > 0.75
    assert 1 <= result.figures.replica_hours < 20


def test_static_is_the_smallest_number_that_meets_the_objective():
    request = steady(3)
    result = run_autoscaler(request, "static")
    assert result.replicas_static is not None
    assert result.figures.attainment >= 0.95
    hours = request.trace.arrived_ms[-1] / 3_600_000
    assert result.figures.replica_hours == pytest.approx(result.replicas_static * hours)
    fewer = AutoscaleRequest(
        trace=request.trace,
        service=SimulatedService(
            slots=4,
            prefill_tokens_per_s=4_000,
            decode_tokens_per_s=50,
            cold_start_s=60,
            ttft_objective_s=1,
            replicas_max=result.replicas_static - 1,
            attainment=0.95,
        ),
        cold_starts_ms=[60_000],
    )
    assert run_autoscaler(fewer, "static").figures.attainment < 0.95


def test_the_start_is_as_warm_as_the_first_minutes_need():
    # 2 requests/s of about 2.1 s: 4.2 slots and twice their root.
    assert warm_replicas(steady(2)) in (2, 3)


def test_a_single_request_starts_with_one_replica():
    trace = RequestTrace([0], [400], [100])
    request = AutoscaleRequest(trace=trace, service=SERVICE, cold_starts_ms=[60_000])
    assert warm_replicas(request) == 1
    assert run_autoscaler(request, "static").replicas_static == 1


def test_the_timeline_adds_up_to_the_replica_hours():
    request = steady(2)
    result = run_autoscaler(request, "kpa")
    line = timeline(result.run, request.trace, SERVICE)
    hours = request.trace.arrived_ms[-1] / 3_600_000
    assert np.mean(line.replicas) * hours == pytest.approx(figures(result.run).replica_hours)
    assert np.mean(line.busy) * 4 == pytest.approx(4.2, rel=0.1)


def test_after_a_step_in_the_load_no_replica_is_drained_that_the_load_fills():
    """A setting that was cheapest before the step would drain them, and start them again."""
    service = SimulatedService(
        slots=4,
        prefill_tokens_per_s=2_000,
        decode_tokens_per_s=4,
        cold_start_s=60,
        replicas_min=2,
        replicas_max=12,
        ttft_objective_s=4,
        attainment=0.95,
    )
    calm_ms, busy_ms = 720 * SECOND, 480 * SECOND
    arrived = [*range(20_000, calm_ms, 2_500), *range(calm_ms, calm_ms + busy_ms, 625)]
    trace = RequestTrace(arrived, [100] * len(arrived), [40] * len(arrived))
    request = AutoscaleRequest(trace=trace, service=service, cold_starts_ms=[60_000])
    result = run_autoscaler(request, "tenfold")
    # 1.6 requests a second of ten seconds each fill four replicas, a minute after the step.
    targets = [
        step.decision.target for step in result.run.steps if step.at_ms >= calm_ms + 60 * SECOND
    ]
    assert min(targets) >= 4
    assert result.figures.attainment > 0.7


def test_a_service_that_starts_faster_than_load_is_counted_is_not_stopped_after_its_first_answer():
    # Two short bursts, far apart: what was started for the second one serves all of it.
    at_ms = [*range(0, 60_000, 500), *(4_000_000 + 900 * one for one in range(12))]
    trace = RequestTrace(at_ms, [10] * len(at_ms), [10] * len(at_ms))
    service = SimulatedService(
        slots=4,
        prefill_tokens_per_s=1_000,
        decode_tokens_per_s=100,
        cold_start_s=1,
        replicas_min=0,
        replicas_max=4,
        ttft_objective_s=5,
        zero_after_s=20,
    )
    run = run_autoscaler(
        AutoscaleRequest(trace=trace, service=service, cold_starts_ms=[1_000]), "tenfold"
    ).run
    assert not [one for one in run.steps if one.at_ms >= 4_000_000 and one.decision.drain]
    idle = next(one for one in run.steps if one.decision.target == 0)
    assert 80_000 <= idle.at_ms <= 84_000
