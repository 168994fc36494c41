from tenfold.gateway.route.breaker import OPEN_S, OPEN_S_MAX, Breaker


def test_five_failures_in_a_row_open_it_and_four_do_not():
    breaker = Breaker()
    assert [breaker.fail(0) for _ in range(5)] == [False] * 4 + [True]
    assert breaker.state == "open"


def test_a_refused_connection_opens_it_at_once():
    breaker = Breaker()
    assert breaker.fail(0, is_unreachable=True)
    assert breaker.is_unreachable


def test_it_remembers_failures_between_successes():
    breaker, opened = Breaker(), False
    for _ in range(20):
        opened = opened or breaker.fail(0) or breaker.fail(0) or breaker.fail(0)
        breaker.succeed(0)
    assert opened


def test_rare_failures_do_not_open_it():
    breaker = Breaker()
    for _ in range(200):
        assert not breaker.fail(0)
        for _ in range(9):
            breaker.succeed(0)


def test_one_probe_closes_it_or_opens_it_for_twice_as_long():
    breaker, now = Breaker(), 100.0
    breaker.fail(now, is_unreachable=True)
    waits: list[float] = []
    for _ in range(8):
        assert not breaker.poll(breaker.due_s - 0.01)
        assert breaker.poll(breaker.due_s)
        now = breaker.due_s
        assert breaker.fail(now)
        waits.append(breaker.due_s - now)
    assert waits == [2, 4, 8, 16, OPEN_S_MAX, OPEN_S_MAX, OPEN_S_MAX, OPEN_S_MAX]
    breaker.poll(breaker.due_s)
    assert breaker.succeed(breaker.due_s)
    assert breaker.state == "closed"


def test_an_answer_from_before_it_opened_does_not_close_it():
    breaker = Breaker()
    breaker.fail(0, is_unreachable=True)
    assert not breaker.succeed(0.5)
    assert breaker.state == "open"


def test_after_a_quiet_time_it_starts_again_with_the_shortest_wait():
    breaker = Breaker()
    for now in (0.0, 1.0):
        breaker.poll(now + 60)
        breaker.fail(now, is_unreachable=True)
    breaker.poll(breaker.due_s)
    breaker.succeed(10)
    breaker.fail(100, is_unreachable=True)
    assert breaker.due_s == 100 + OPEN_S
