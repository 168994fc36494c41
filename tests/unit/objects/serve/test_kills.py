"""A server that is killed in the middle of writes has everything that it acknowledged."""

from pathlib import Path

import pytest

from benchmarks.chaos.objects.expected import ABSENT, Expected
from benchmarks.chaos.objects.kills import Ask, Soak, lines

KILLS = 4


def test_every_acknowledged_object_reads_back_after_kills(tmp_path: Path):
    found = Soak(tmp_path, Ask(kills=KILLS, seed=2)).run()
    told = "\n".join(lines(found))
    assert sum(found.kills.values()) == KILLS, told
    assert found.sure > 0, told
    assert found.wrong == [], told
    assert found.refused == [], told
    assert found.problems == [], told
    assert found.lost_shards == [], told
    assert found.rebuilt_wrong == [], told


def test_what_the_soak_must_find_it_finds():
    expected = Expected()
    expected.begin("k", "one")
    expected.done("k", "one")
    assert expected.is_sure("k")
    assert expected.judge("k", "one") == "right"
    assert expected.judge("k", ABSENT) == "lost"
    assert expected.judge("k", "two") == "wrong"
    expected.begin("k", ABSENT)
    expected.done("k", ABSENT)
    assert expected.judge("k", "one") == "back"


@pytest.mark.parametrize(("was_sent", "found"), [(True, "right"), (False, "wrong")])
def test_a_request_without_an_answer_may_have_been_carried_out_if_it_was_sent(
    was_sent: bool, found: str
):
    expected = Expected()
    expected.begin("k", "one")
    expected.done("k", "one")
    expected.begin("k", "two")
    expected.fail(was_sent=was_sent)
    assert expected.judge("k", "one") == "right"
    assert expected.judge("k", "two") == found
    assert expected.unanswered == was_sent
