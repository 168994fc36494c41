"""What holds for every service, whatever happens to its replicas and whatever users do to it."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from service_builders import SPEC, TEAM, ServiceWorld, deployment, random_turn
from tenfold.decide.serve.rollout import replicas_of, weights
from tenfold.fleet.services import ALL
from tenfold.model.events import (
    ReplicaDrainStarted,
    ReplicaUnready,
    RolloutAdvanced,
    ServiceLimitsSet,
    ServicePromoted,
    ServiceRemoved,
    ServiceRolledBack,
)
from tenfold.model.reason import Reason
from tenfold.model.service.state import ServiceState
from tenfold.model.service.step import ServiceStep
from tenfold.model.service.traffic import RolledBack
from tenfold.model.units import Millis

TURNS = 60


def user_acts(world: ServiceWorld, random: Random) -> None:
    state, now_ms = world.state, Millis(world.now_ms)
    if state is None or state.removed_ms is not None:
        return
    luck = random.random()
    if luck < 0.06:
        name = f"r{state.number + 1}"
        spec = replace(state.spec, canary=random.choice((None, SPEC.canary)))
        world.happens(deployment(now_ms, name, spec, command=name))
    elif luck < 0.1 and state.canary:
        weight = random.choice((0.0, 20.0, ALL))
        world.happens(RolloutAdvanced(now_ms, "chat", TEAM, state.canary, weight, "ann"))
    elif luck < 0.14 and (state.canary or state.previous):
        lost, to = (
            (state.canary, state.current) if state.canary else (state.current, state.previous)
        )
        if state.revision(to) is not None:
            reason = Reason("rolled-back-by")
            world.happens(ServiceRolledBack(now_ms, "chat", TEAM, lost, to, reason, "ann"))
    elif luck < 0.18:
        least = random.randrange(3)
        most = max(1, least + random.randrange(4))
        world.happens(ServiceLimitsSet(now_ms, "chat", TEAM, least, most, UNSET))
    elif luck < 0.185:
        world.happens(ServiceRemoved(now_ms, "chat", TEAM, UNSET))
    elif luck < 0.4:
        world.target = random.randrange(7)


def lived(seed: int) -> ServiceWorld:
    random, world = Random(seed), ServiceWorld()
    for _ in range(TURNS):
        random_turn(world, random)
        user_acts(world, random)
        state, seen = world.state, {}
        if state is not None and state.canary and random.random() < 0.05:
            lost = RolledBack(
                service="chat",
                revision=state.canary,
                at_ms=world.now_ms,
                cause="errors",
                requests=20,
                percent=50.0,
                percent_others=0.0,
            )
            seen = {"rolled_back": (lost,)}
        world.step(**seen)
    return world


def check_sizes(before: ServiceState, made: ServiceStep, after: ServiceState) -> None:
    for revision in {one.revision for one in after.replicas}:
        staying = after.of(revision)
        assert len(staying) <= after.spec.most
        assert len(staying) <= max(replicas_of(after, revision), len(before.of(revision)))
    ports = [one.port for one in after.replicas]
    assert len(ports) == len(set(ports))
    assert 0 <= after.target <= after.spec.most


def check_serving(before: ServiceState, made: ServiceStep, after: ServiceState) -> None:
    """What the controller orders leaves as many ready replicas as are needed, if there were."""
    if after.removed_ms is not None:
        return
    unready = {event.job_id for event in made.events if isinstance(event, ReplicaUnready)}
    was = [one for one in before.of(before.current) if one.serves and one.id not in unready]
    assert after.ready(after.current) >= min(len(was), after.target)
    for event in made.events:
        if isinstance(event, ServicePromoted):
            assert after.ready(event.revision) >= min(after.target, len(was))


def check_order_of_stops(before: ServiceState, made: ServiceStep, after: ServiceState) -> None:
    drained = {
        event.job_id
        for event in made.events
        if isinstance(event, ReplicaDrainStarted) and not event.has_failed
    }
    unready = {event.job_id for event in made.events if isinstance(event, ReplicaUnready)}
    served = {one.id for one in before.replicas if one.serves and one.id not in unready}
    for revision in (after.current, after.canary):
        fewer = [one for one in before.of(revision) if one.id in drained and one.id in served]
        if fewer and after.removed_ms is None:
            assert all(one.is_ready for one in after.of(revision)), "starting replicas go first"


def check_orders(world: ServiceWorld) -> None:
    stopped = [job_id for _, made, _ in world.steps for job_id in made.stops]
    assert len(stopped) == len(set(stopped)) or _requeued_between(world)
    drained = [
        event.job_id
        for _, made, _ in world.steps
        for event in made.events
        if isinstance(event, ReplicaDrainStarted)
    ]
    assert len(drained) == len(set(drained))


def _requeued_between(world: ServiceWorld) -> bool:
    """A replica whose node was lost while it was stopping is stopped again."""
    return any(
        one.drain_ms is not None and not one.is_stopping and one.ready_ms is None
        for before, _, _ in world.steps
        for one in before.replicas
    )


@given(st.integers(0, 1 << 32))
@settings(max_examples=150, deadline=None)
def test_no_revision_has_more_replicas_than_it_may_and_no_two_share_a_port(seed: int):
    for each in lived(seed).steps:
        check_sizes(*each)


@given(st.integers(0, 1 << 32))
@settings(max_examples=150, deadline=None)
def test_no_order_takes_ready_replicas_that_are_needed(seed: int):
    for each in lived(seed).steps:
        check_serving(*each)


@given(st.integers(0, 1 << 32))
@settings(max_examples=100, deadline=None)
def test_starting_replicas_stop_before_ready_ones_and_each_gets_one_order(seed: int):
    world = lived(seed)
    for each in world.steps:
        check_order_of_stops(*each)
    check_orders(world)


@given(st.integers(0, 1 << 32))
@settings(max_examples=100, deadline=None)
def test_shares_add_up_and_go_only_where_replicas_are_ready(seed: int):
    for _, _, state in lived(seed).steps:
        shares = weights(state)
        assert abs(sum(shares.values()) - ALL) < 1e-6
        has_ready = any(state.ready(name) for name in shares)
        for name, share in shares.items():
            assert not (share and has_ready) or state.ready(name)
        if state.canary and state.ready(state.current):
            assert shares[state.canary] <= state.weight + 1e-9


@given(st.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None)
def test_a_service_that_is_left_alone_gets_what_it_needs(seed: int):
    world = lived(seed)
    world.work(400)
    if world.state is None:
        return
    state = world.state
    assert state.removed_ms is None, "a removed service is gone with its last replica"
    assert not state.canary or state.is_held or not state.weight
    assert (
        state.ready(state.current)
        == state.target
        == min(max(world.target, state.spec.replicas_min), state.spec.most)
    )
    assert len(state.replicas) == state.target + (
        replicas_of(state, state.canary) if state.canary else 0
    )
    assert world.step().is_empty
