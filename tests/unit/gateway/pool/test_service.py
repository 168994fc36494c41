from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tenfold.gateway.admit.identity import Caller
from tenfold.gateway.admit.refusals import RequestRefused
from tenfold.gateway.pool.grant import Grant
from tenfold.gateway.pool.pool import ServicePool
from tenfold.gateway.pool.revision import STALLED_S
from tenfold.gateway.pool.service import ServiceState
from tenfold.gateway.pool.ticket import Ticket
from tenfold.gateway.pool.traffic import traffic_of
from tenfold.model.service.routing import Hold, Replica, Revision, RoutingState, Service
from tests.rigs.gateway import chat_service, state_of

URLS = ["http://127.0.0.1:1", "http://127.0.0.1:2", "http://127.0.0.1:3"]


def pool_of(service: Service) -> tuple[ServicePool, ServiceState]:
    pool = ServicePool(seed=1)
    pool.apply(state_of(service), 0.0)
    return pool, pool.services["chat"]


def ticket(team: str = "red", tokens: int = 100) -> Ticket:
    return Ticket(team, 0.0, (tokens // 2, tokens - tokens // 2))


def granted(service: ServiceState, now_s: float = 0.0) -> Grant:
    made = service.grant_now(ticket(), now_s)
    assert made is not None
    return made


@given(
    st.lists(
        st.tuples(st.sampled_from(["begin", "answer", "end", "fail", "leave"]), st.integers(0, 50)),
        max_size=60,
    )
)
def test_what_begins_ends_and_nothing_is_left_over(steps: list[tuple[str, int]]):
    pool, service = pool_of(chat_service(URLS, slots_per_replica=2))
    held: list[Grant] = []
    for now, (step, which) in enumerate(steps):
        service.sweep(float(now))
        if step == "begin":
            made = service.grant_now(ticket(tokens=which + 1), float(now))
            held += [made] if made is not None else []
            continue
        if not held:
            continue
        one = held[which % len(held)]
        if step == "answer":
            one.answered(float(now))
            one.progressed(float(now), which)
            continue
        held.remove(one)
        if step == "end":
            one.end(float(now), None, which)
        elif step == "fail":
            one.fail(float(now), is_unreachable=which % 2 == 0)
        else:
            one.abandon(float(now))
    replicas = [one for each in service.revisions.values() for one in each.replicas]
    assert sum(one.requests for one in replicas) == len(held) == service.in_service
    assert all(one.tokens >= 0 and one.requests <= 2 for one in replicas)
    for one in held:
        one.abandon(1_000.0)
    assert all((one.requests, one.tokens, len(one.unanswered)) == (0, 0, 0) for one in replicas)
    counted = traffic_of(pool, "id", 0, 0, 1_000.0).services[0]
    assert (counted.outstanding_requests, counted.outstanding_tokens) == (0, 0)


def test_slots_are_never_exceeded_and_a_larger_replica_has_more():
    big = Replica(id="big", url=URLS[0], weight=3)
    small = Replica(id="small", url=URLS[1])
    state = RoutingState(
        services=(
            Service(
                name="chat",
                slots_per_replica=2,
                revisions=(Revision(name="v1", replicas=(big, small)),),
            ),
        )
    )
    pool = ServicePool(seed=1)
    pool.apply(state, 0.0)
    chat = pool.services["chat"]
    names = Counter(granted(chat).target.name for _ in range(8))
    assert names == {"big": 6, "small": 2}
    assert chat.grant_now(ticket(), 0.0) is None


def test_a_replica_that_answers_nothing_gets_nothing_more_until_it_is_probed():
    _, service = pool_of(chat_service(URLS[:2], affinity="none"))
    stuck = granted(service)
    other = next(
        one for one in service.revisions["v1"].replicas if one.spec.id != stuck.target.name
    )
    service.sweep(STALLED_S - 1)
    assert {one.breaker.state for one in service.revisions["v1"].replicas} == {"closed"}
    service.sweep(STALLED_S + 1)
    for _ in range(20):
        one = granted(service, STALLED_S + 1)
        assert one.target.name == other.spec.id
        one.answered(STALLED_S + 1)
    service.sweep(STALLED_S + 3)
    probe = granted(service, STALLED_S + 3)
    assert probe.target.name == stuck.target.name
    assert granted(service, STALLED_S + 3).target.name == other.spec.id
    probe.answered(STALLED_S + 3)
    probe.end(STALLED_S + 3, None, 1)
    assert {one.breaker.state for one in service.revisions["v1"].replicas} == {"closed"}


def test_a_state_with_other_replicas_keeps_what_is_under_way():
    pool, service = pool_of(chat_service(URLS[:1], slots_per_replica=1))
    first = granted(service)
    pool.apply(state_of(chat_service(URLS[:2], slots_per_replica=1), version=2), 1.0)
    assert service.revisions["v1"].replicas[0].requests == 1
    assert granted(service, 1.0).target.url == URLS[1]
    pool.apply(state_of(chat_service([], slots_per_replica=1), version=3), 2.0)
    assert service.grant_now(ticket(), 2.0) is None
    first.end(3.0, 10, 10)
    assert service.in_service == 1


def test_a_draining_replica_gets_nothing_new():
    draining = Replica(id="v1-0", url=URLS[0], state="draining")
    ready = Replica(id="v1-1", url=URLS[1])
    _, service = pool_of(
        Service(name="chat", revisions=(Revision(name="v1", replicas=(draining, ready)),))
    )
    assert {granted(service).target.name for _ in range(20)} == {"v1-1"}


def test_a_full_queue_refuses_or_displaces():
    pool, service = pool_of(chat_service([], hold=Hold(requests_max=2)))
    for _ in range(2):
        service.enqueue(ticket("red"))
    with pytest.raises(RequestRefused) as refused:
        service.enqueue(ticket("red"))
    assert refused.value.code == "queue_full"
    service.enqueue(ticket("blue", tokens=1))
    assert len(service.queue) == 2
    assert service.shed == 2
    assert pool.models(Caller("red")) == ["stub"]


def test_load_follows_tokens_and_not_requests():
    _, service = pool_of(chat_service(URLS[:2], affinity="none"))
    huge = service.grant_now(ticket(tokens=100_000), 0.0)
    assert huge is not None
    others = {granted(service).target.name for _ in range(50)}
    assert others == {one.spec.id for one in service.revisions["v1"].replicas} - {huge.target.name}


def test_a_request_is_late_once_by_any_objective():
    _, service = pool_of(
        chat_service(URLS, ttft_objective_s=1, tpot_objective_s=0.1, latency_objective_s=10)
    )

    def ended(first_s: float, end_s: float, tokens: int, blocked_s: float = 0.0) -> int:
        before = service.late
        one = granted(service)
        one.answered(first_s)
        one.end(end_s, None, tokens, blocked_s=blocked_s)
        return service.late - before

    assert ended(0.5, 1.4, 10) == 0
    assert ended(1.5, 1.6, 10) == 1, "first byte"
    assert ended(0.5, 2.5, 11) == 1, "0.2 s a token"
    assert ended(0.5, 9.9, 120) == 0
    assert ended(0.5, 10.1, 200) == 1, "in all"
    assert ended(2.0, 30.0, 2) == 1, "all three, once"
    assert ended(0.5, 2.5, 11, blocked_s=1.5) == 0, "the client was slow"
    assert ended(0.5, 5.0, 1) == 0, "one token says nothing of the time for each"
    assert sum(one.misses for one in service.revisions.values()) == service.late


def test_who_leaves_after_the_objective_has_missed_it_and_who_leaves_before_has_not():
    _, service = pool_of(chat_service(URLS, latency_objective_s=10))
    for left_s, late in ((5.0, 0), (12.0, 1)):
        one = granted(service)
        one.answered(1.0)
        one.abandon(left_s)
        assert service.late == late


def test_a_copy_for_a_shadow_is_not_counted_as_late_or_as_a_request():
    url = {"s": "http://127.0.0.1:9"}
    shadow = Revision(
        name="v2",
        weight=0,
        shadow_percent=100,
        replicas=tuple(Replica(id=name, url=one) for name, one in url.items()),
    )
    spec = chat_service(URLS, latency_objective_s=1, ttft_objective_s=1)
    _, service = pool_of(replace(spec, revisions=(*spec.revisions, shadow)))
    one = granted(service)
    copy = service.shadow(ticket(), one, 0.0)
    assert copy is not None
    copy.answered(30.0)
    copy.end(60.0, None, 10)
    assert (service.late, service.ended, service.in_service) == (0, 0, 1)
    assert service.revisions["v2"].misses == 1
