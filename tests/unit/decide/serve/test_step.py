"""What the controller of a service orders next, given its record and what was seen."""

import pytest
from msgspec.structs import replace

from service_builders import SPEC, TEAM, ServiceWorld, deployment
from tenfold.decide.serve.routing import routing_of
from tenfold.fleet.services import after_event
from tenfold.model.events import (
    JobCancelRequested,
    ReplicaDrainStarted,
    ReplicaReady,
    ReplicaUnready,
    RolloutAdvanced,
    ServicePromoted,
    ServiceRolledBack,
    ServiceScaled,
)
from tenfold.model.service.spec import Canary
from tenfold.model.service.traffic import RolledBack
from tenfold.model.units import Millis


def world(target: int = 2, **spec: object) -> ServiceWorld:
    made = ServiceWorld(replace(SPEC, **spec))
    made.target = target
    return made


def serving(target: int = 2, **spec: object) -> ServiceWorld:
    made = world(target, **spec)
    made.work(5)
    assert made.state is not None
    assert made.state.ready("r1") == target
    return made


def kinds(made: ServiceWorld) -> list[type]:
    return [type(event) for _, step, _ in made.steps for event in step.events]


def test_a_new_service_orders_the_replicas_that_it_needs_each_on_its_own_port():
    made = world()
    made.step()
    assert made.state is not None
    assert [one.port for one in made.state.replicas] == [20_000, 20_001]
    assert kinds(made) == [ServiceScaled]


def test_a_replica_gets_requests_once_it_answers_its_probe():
    made = world()
    made.step()
    first, _ = made.replicas
    made.started_ms[first.id] = Millis(0)
    assert made.step().is_empty
    made.answering.add(first.id)
    [event] = made.step().events
    assert isinstance(event, ReplicaReady)
    assert made.state is not None
    [revision] = routing_of(made.state).revisions
    assert [one.url for one in revision.replicas] == ["http://127.0.0.1:20000"]


def test_a_replica_that_stops_answering_is_replaced_after_a_while():
    made = serving()
    lost = made.replicas[0].id
    made.answering.discard(lost)
    [event] = made.step().events
    assert isinstance(event, ReplicaUnready)
    made.now_ms += 19_000
    assert made.step().is_empty
    made.now_ms += 1_000
    step = made.step()
    [event] = step.events
    assert isinstance(event, ReplicaDrainStarted)
    assert event.has_failed
    assert step.starts == (), "the first failure has a back-off"
    made.now_ms += 1_000
    assert len(made.step().starts) == 1


def test_a_replica_that_ended_is_replaced_after_its_back_off_which_doubles():
    made = world(1)
    made.step()
    waited: list[int] = []
    for _ in range(4):
        made.end(made.replicas[0].id)
        ended_ms = made.now_ms
        while not made.replicas:
            made.now_ms += 100
            made.step()
        waited.append(made.now_ms - ended_ms)
    assert waited == [1_000, 2_000, 4_000, 8_000]


def test_a_replica_whose_node_is_lost_is_not_replaced_but_starts_again():
    made = serving()
    made.requeue(made.replicas[0].id)
    assert made.state is not None
    assert made.state.ready("r1") == 1
    assert made.step().starts == ()


def test_a_draining_replica_stops_when_it_has_no_requests_left():
    made = serving()
    made.target = 1
    made.now_ms += 1_000
    step = made.step()
    assert (step.starts, step.stops) == ((), ())
    last = made.replicas[-1]
    assert last.drain_ms is not None
    made.idle.add(last.id)
    assert made.step().stops == (last.id,)
    assert made.step().is_empty


def test_a_draining_replica_stops_at_the_end_of_its_grace():
    made = serving()
    made.target = 1
    made.step()
    made.now_ms += 9_999
    assert made.step().stops == ()
    made.now_ms += 1
    assert len(made.step().stops) == 1


def test_a_starting_replica_is_stopped_at_once_and_before_a_ready_one():
    made = serving(1)
    made.target = 2
    made.step()
    starting = made.replicas[-1].id
    made.target = 1
    assert made.step().stops == (starting,)


def test_nothing_is_scaled_in_before_the_load_is_known_for_long_enough():
    made = serving()
    made.target = 0
    assert made.step(covers_ms=Millis(1_000)).is_empty
    assert not made.step().is_empty


def test_nothing_is_scaled_while_no_gateway_answers():
    made = serving()
    made.target = 5
    assert made.step(load=None).is_empty


def test_a_service_that_scaled_to_zero_starts_again():
    made = serving(1, replicas_min=0)
    made.target = 0
    made.work(20)
    assert made.replicas == ()
    made.target = 1
    made.work(5)
    assert made.state is not None
    assert made.state.ready("r1") == 1


def test_a_canary_gets_its_share_step_by_step_and_then_everything():
    made = serving()
    made.happens(deployment(made.now_ms, "r2", command="other"))
    made.work(40)
    events = [one for one in kinds(made) if one in (RolloutAdvanced, ServicePromoted)]
    assert events == [RolloutAdvanced, RolloutAdvanced, ServicePromoted]
    assert made.state is not None
    assert (made.state.current, made.state.canary, made.state.previous) == ("r2", "", "r1")
    assert {one.revision for one in made.state.replicas} == {"r2"}


def test_a_rollout_without_steps_waits_for_as_many_ready_replicas_as_are_needed():
    made = serving(3, canary=None)
    made.happens(deployment(made.now_ms, "r2", replace(SPEC, canary=None), command="other"))
    made.step()
    assert made.state is not None
    assert len(made.state.of("r2")) == 3
    for one in made.state.of("r2")[:2]:
        made.started_ms[one.id] = Millis(made.now_ms)
        made.answering.add(one.id)
    made.step()
    assert made.state.current == "r1"
    shares = {one.name: one.weight for one in routing_of(made.state).revisions}
    assert shares == pytest.approx({"r1": 60.0, "r2": 40.0})
    assert made.state.ready("r1") == 3


@pytest.mark.parametrize(
    ("cause", "code"), [("errors", "canary-errors"), ("objective", "canary-late")]
)
def test_a_canary_that_a_gateway_took_out_is_rolled_back(cause: str, code: str):
    made = serving()
    made.happens(deployment(made.now_ms, "r2", command="other"))
    made.work(3)
    lost = RolledBack(
        service="chat",
        revision="r2",
        at_ms=made.now_ms,
        cause=cause,  # pyright: ignore[reportArgumentType]
        requests=40,
        percent=50.0,
        percent_others=1.0,
    )
    step = made.step(rolled_back=(lost,))
    event = step.events[0]
    assert isinstance(event, ServiceRolledBack)
    assert (event.revision, event.to, event.reason.code) == ("r2", "r1", code)
    assert made.state is not None
    assert made.state.rolled_back == event.reason
    assert all(one.drain_ms is not None for one in made.replicas if one.revision == "r2")
    assert made.step(rolled_back=(lost,)).is_empty


def test_a_revision_whose_replicas_keep_failing_is_rolled_back():
    made = serving()
    made.happens(deployment(made.now_ms, "r2", command="broken"))
    for _ in range(3):
        made.now_ms += 10_000
        made.step()
        for one in [one for one in made.replicas if one.revision == "r2"]:
            made.end(one.id)
    made.step()
    assert made.state is not None
    assert made.state.rolled_back is not None
    assert made.state.rolled_back.code == "canary-not-ready"
    assert made.state.ready("r1") == 2


def test_a_weight_that_a_user_set_stays():
    made = serving()
    made.happens(deployment(made.now_ms, "r2", command="other"))
    made.happens(RolloutAdvanced(Millis(made.now_ms), "chat", TEAM, "r2", 30.0, "ann"))
    made.work(60)
    assert made.state is not None
    assert (made.state.canary, made.state.weight, made.state.is_held) == ("r2", 30.0, True)


def test_a_replica_that_a_user_cancels_is_no_failure():
    made = serving()
    one = made.replicas[0]
    assert made.state is not None
    cancelled = JobCancelRequested(Millis(made.now_ms), one.id)
    made.state = after_event(made.state, cancelled)
    assert len(made.step().starts) == 1
    made.end(one.id)
    revision = made.state.revision("r1")
    assert revision is not None
    assert revision.failures == 0


def test_cold_starts_are_measured_from_order_to_ready():
    made = world(1)
    made.step()
    made.now_ms += 7_000
    made.work(1)
    assert made.state is not None
    assert made.state.cold_starts_ms == (8_000,)


def shares_of(made: ServiceWorld) -> dict[str, tuple[float, float]]:
    """Return the weight and the shadow of each revision as gateways get them."""
    assert made.state is not None
    return {one.name: (one.weight, one.shadow_percent) for one in routing_of(made.state).revisions}


def test_a_shadow_gets_copies_first_and_then_its_steps():
    spec = replace(SPEC, canary=Canary(steps=(10,), step_s=5, shadow_percent=50, shadow_s=20))
    made = serving(4, canary=spec.canary)
    made.happens(deployment(made.now_ms, "r2", spec, command="other"))
    made.work(10)
    assert shares_of(made) == {"r1": (100.0, 0.0), "r2": (0.0, 50.0)}
    assert made.state is not None
    assert made.state.ready("r2") == 2, "as many as the copies need"
    made.work(14)
    assert shares_of(made)["r2"] == (10.0, 0.0)
    made.work(20)
    assert made.state.current == "r2"


def test_a_blue_green_rollout_moves_all_requests_at_once_and_keeps_the_others_for_a_while():
    spec = replace(SPEC, canary=Canary(step_s=30, is_blue_green=True))
    made = serving(3, canary=spec.canary)
    made.happens(deployment(made.now_ms, "r2", spec, command="other"))
    made.step()
    assert made.state is not None
    assert len(made.state.of("r2")) == 3
    for one in made.state.of("r2")[:2]:
        made.started_ms[one.id] = Millis(made.now_ms)
        made.answering.add(one.id)
    made.step()
    assert shares_of(made)["r2"][0] == 0.0, "two of three are not enough"
    made.work(2)
    assert shares_of(made) == {"r1": (0.0, 0.0), "r2": (100.0, 0.0)}
    made.work(25)
    assert made.state.ready("r1") == 3, "going back takes no start"
    made.work(20)
    assert made.state.current == "r2"
    assert {one.revision for one in made.state.replicas} == {"r2"}


def test_a_blue_green_rollout_that_waits_for_a_user_ends_when_one_promotes_it():
    spec = replace(SPEC, canary=Canary(step_s=5, is_blue_green=True, is_promoted=False))
    made = serving(2, canary=spec.canary)
    made.happens(deployment(made.now_ms, "r2", spec, command="other"))
    made.work(60)
    assert made.state is not None
    assert (made.state.canary, made.state.weight) == ("r2", 100.0)
    made.happens(RolloutAdvanced(Millis(made.now_ms), "chat", TEAM, "r2", 100.0, "ann"))
    made.work(2)
    assert made.state.current == "r2"


def test_gateways_get_the_objectives_and_no_more_slots_than_leave_the_time_per_token():
    made = world(
        1,
        slots=9,
        decode_tokens_per_s=20,
        decode_tokens_per_s_alone=100,
        tpot_objective_s=0.03,
        latency_objective_s=20,
    )
    made.step()
    assert made.state is not None
    routed = routing_of(made.state)
    # 10 ms alone, 50 ms for nine: 5 ms more for each further request.
    assert routed.slots_per_replica == 5
    assert (routed.tpot_objective_s, routed.latency_objective_s) == (0.03, 20)
    policy = made.state.spec.policy
    assert policy is not None
    assert policy.rates.slots == 5
    assert policy.rates.decode_tokens_per_s == pytest.approx(1 / 0.03)
    assert (policy.ttft_objective_s, policy.latency_objective_s) == (20, 20)
