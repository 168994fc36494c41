"""KAI's scenarios as they are rebuilt and run, and the commands that print them."""

import json

import pytest

from tenfold.cli.main import main
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import FleetView
from tenfold.model.decision import Decision
from tenfold.model.units import Millis
from tenfold.study.bench.kai import KAI, kai_gang, kai_reclaim, kai_unschedulable
from tenfold.study.bench.kai_loads import fillers, flat_nodes, placed_nodes
from tenfold.study.bench.timed import LivelockGuard


class Undecided:
    """A decider that wants to be asked again at once, always."""

    name = "undecided"

    def decide(self, view: FleetView, now_ms: Millis, news: object) -> Decision:
        return Decision([], now_ms)


def undecided(decider: Decider) -> Decider:
    return Undecided()


def test_the_nodes_of_the_gang_stand_in_three_levels():
    nodes = placed_nodes()
    assert len(nodes) == 512
    assert len({node.rack for node in nodes}) == 256
    assert len({node.leaf for node in nodes}) == 32
    assert len({node.pod for node in nodes}) == 4


def test_the_large_gang_starts():
    assert kai_gang().ours("jobs started") == 1


def test_the_job_that_cannot_be_helped_is_told_why():
    bench = kai_unschedulable()
    assert any(note.startswith("reason: ") for note in bench.notes)
    parts = bench.ours("  decision") + bench.ours("  reason")
    assert bench.ours("time to unschedulable, with reason") == pytest.approx(parts)


def test_gangs_take_back_no_more_than_they_need():
    bench = kai_reclaim(nodes=20, gangs=2)
    assert bench.ours("gangs started") == 2
    assert bench.ours("jobs preempted") == bench.ours("minimum preemptions") == 100
    assert bench.ours("jobs finished") == 163


def test_a_run_ends_whose_decider_is_never_at_rest():
    request = SimRequest(nodes=flat_nodes(1), jobs=fillers(1))
    with pytest.raises(AssertionError, match="without settling"):
        simulate(request, witnesses=[LivelockGuard(cycles_most=10)], around=undecided)


def test_the_command_says_what_each_column_includes(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "kai-gang"]) == 0
    said = capsys.readouterr().out
    assert "48.7 s" in said
    assert "\ntenfold: " in said
    assert "\npublished: " in said


def test_the_command_gives_the_same_to_programs(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "kai-fill", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    figures = {each["name"]: each for each in answer["figures"]}
    assert figures["time to decide all"]["theirs"] == [398_000]
    assert figures["jobs started"]["ours"] == 4_000


def test_every_scenario_has_a_command(capsys: pytest.CaptureFixture[str]):
    assert main(["bench", "--help"]) == 0
    said = capsys.readouterr().out
    assert all(name in said for name in KAI)
