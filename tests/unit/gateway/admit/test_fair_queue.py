from collections import Counter
from dataclasses import dataclass, field
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from tenfold.gateway.admit.fair_queue import FairQueue

_NUMBERS = count()


@dataclass(eq=False)
class One:
    team: str
    tokens: int = 100
    is_gone: bool = False
    number: int = field(default_factory=lambda: next(_NUMBERS))


def served(queue: FairQueue[One], requests: int) -> list[One]:
    """Serve one at a time, as a replica with one slot does."""
    done: list[One] = []
    while len(done) < requests and (one := queue.peek()) is not None:
        queue.pop(one)
        queue.begin(one.team, one.tokens)
        queue.end(one.team, one.tokens, one.tokens)
        done.append(one)
    return done


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5), min_size=2, max_size=4),
    st.lists(st.integers(1, 500), min_size=100, max_size=100),
)
def test_waiting_teams_are_served_by_weight(weights: dict[str, int], sizes: list[int]):
    queue: FairQueue[One] = FairQueue(lambda team: (weights[team], 0))
    for team in weights:
        for size in sizes:
            queue.push(One(team, size))
    # All still wait afterwards, so each got its share.
    tokens: Counter[str] = Counter()
    for one in served(queue, 80):
        tokens[one.team] += one.tokens
    shares = [tokens[team] / weight for team, weight in weights.items()]
    # No team is ahead of another by more than one request of each.
    assert max(shares) - min(shares) <= 2 * 500


def test_ten_times_the_load_is_not_ten_times_the_share():
    queue: FairQueue[One] = FairQueue()
    for _ in range(100):
        for _ in range(10):
            queue.push(One("greedy"))
        queue.push(One("modest"))
    teams = Counter(one.team for one in served(queue, 100))
    assert teams == {"greedy": 50, "modest": 50}


def test_each_team_is_served_in_order_and_retries_go_first():
    queue: FairQueue[One] = FairQueue()
    first, second, third = One("a"), One("a"), One("b")
    for one in (first, second, third):
        queue.push(one)
    again = One("b")
    queue.push_first(again)
    order = served(queue, 9)
    assert order[0] is again
    assert order.index(first) < order.index(second)
    assert len(queue) == 0
    assert queue.tokens == 0


def test_a_higher_priority_goes_first_and_is_refused_last():
    queue: FairQueue[One] = FairQueue(lambda team: (1.0, 1 if team == "urgent" else 0))
    low = [One("batch") for _ in range(3)]
    for one in low:
        queue.push(one)
    assert queue.last_for("urgent", 1) is low[-1]
    assert queue.last_for("batch", 0) is None
    urgent = One("urgent")
    queue.push(urgent)
    assert served(queue, 1) == [urgent]


def test_a_full_queue_refuses_the_team_with_most_for_its_weight():
    queue: FairQueue[One] = FairQueue(lambda team: (4.0 if team == "big" else 1.0, 0))
    waiting = [One("big") for _ in range(6)] + [One("small") for _ in range(3)]
    for one in waiting:
        queue.push(one)
    assert queue.last_for("new", 0) is waiting[-1]
    assert queue.last_for("small", 0) is None


def test_an_idle_team_earns_no_credit():
    queue: FairQueue[One] = FairQueue()
    for _ in range(50):
        queue.push(One("busy"))
    served(queue, 40)
    for _ in range(50):
        queue.push(One("late"))
    teams = Counter(one.team for one in served(queue, 10))
    assert teams["busy"] >= 4


def test_longer_answers_than_expected_are_charged_afterwards():
    queue: FairQueue[One] = FairQueue()
    for _ in range(40):
        queue.push(One("long"))
        queue.push(One("short"))
    done: Counter[str] = Counter()
    for _ in range(33):
        one = queue.peek()
        assert one is not None
        queue.pop(one)
        queue.begin(one.team, one.tokens)
        used = 1_000 if one.team == "long" else 100
        queue.end(one.team, one.tokens, used)
        done[one.team] += used
    assert abs(done["long"] - done["short"]) <= 1_000


def test_those_that_left_are_skipped_and_not_counted():
    queue: FairQueue[One] = FairQueue()
    one, two = One("a"), One("a")
    queue.push(one)
    queue.push(two)
    one.is_gone = True
    queue.forget(one)
    assert len(queue) == 1
    assert list(queue) == [two]
    assert queue.peek() is two
