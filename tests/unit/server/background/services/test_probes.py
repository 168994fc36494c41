"""What the answers of replicas mean, counted."""

from collections.abc import Callable, Generator

import pytest

from patience import until
from tenfold.model.ids import JobId
from tenfold.model.service.spec import Readiness
from tenfold.model.units import Millis
from tenfold.server.background.services.http_get import NoAnswer
from tenfold.server.background.services.probes import Prober, Target

ONE = JobId("chat-1")
TARGET = Target(Millis(0), "http://127.0.0.1:1", Readiness(path="/up", failures=3, interval_s=1))


class Answers:
    """Answers probes as a test says."""

    def __init__(self) -> None:
        self.trouble = ""
        self.asked: list[str] = []

    def fetch(self, url: str, timeout_s: float) -> bytes:
        self.asked.append(url)
        if self.trouble:
            raise NoAnswer(self.trouble)
        return b""


@pytest.fixture
def answers() -> Answers:
    return Answers()


@pytest.fixture
def prober(answers: Answers) -> Generator[Prober]:
    made = Prober(answers.fetch)
    yield made
    made.close()


def probed(prober: Prober, answers: Answers, target: Target = TARGET) -> Callable[[int], None]:
    def at(now_ms: int) -> None:
        """Probe once, and take the result."""
        count = len(answers.asked)
        prober.probe({ONE: target}, Millis(now_ms))
        until(lambda: len(answers.asked) > count)
        known = prober._known[ONE]
        until(lambda: known.running is None or known.running.done())
        prober.probe({ONE: target}, Millis(now_ms))

    return at


def test_one_answer_makes_a_replica_ready(prober: Prober, answers: Answers):
    assert prober.found(ONE) is None
    probed(prober, answers)(0)
    found = prober.found(ONE)
    assert found is not None
    assert (found.is_ready, found.url) == (True, "http://127.0.0.1:1")
    assert answers.asked == ["http://127.0.0.1:1/up"]


def test_a_replica_is_not_ready_after_as_many_failures_as_it_says(prober: Prober, answers: Answers):
    at = probed(prober, answers)
    answers.trouble = "connection refused"
    at(0)
    at(1_000)
    assert prober.found(ONE) is None
    at(2_000)
    found = prober.found(ONE)
    assert found is not None
    assert found.reason is not None
    assert (found.is_ready, dict(found.reason.fields)) == (False, {"detail": "connection refused"})
    answers.trouble = ""
    at(3_000)
    found = prober.found(ONE)
    assert found is not None
    assert found.is_ready


def test_a_replica_is_probed_at_its_interval(prober: Prober, answers: Answers):
    probed(prober, answers)(0)
    prober.probe({ONE: TARGET}, Millis(999))
    assert len(answers.asked) == 1


def test_what_was_known_of_a_replica_is_forgotten_when_it_starts_again(
    prober: Prober, answers: Answers
):
    probed(prober, answers)(0)
    answers.trouble = "status 503"
    later = Target(Millis(500), TARGET.url, TARGET.readiness)
    probed(prober, answers, later)(600)
    assert prober.found(ONE) is None
    prober.probe({}, Millis(700))
    assert prober.found(ONE) is None
