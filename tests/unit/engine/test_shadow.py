"""A shadow sees everything, is written down, and changes nothing."""

from collections.abc import Sequence

import pytest

from replay_builders import ROUGH, job, request
from tenfold.compose.policies import placing_decider
from tenfold.compose.simulation import SimRequest, simulate
from tenfold.engine.recording import Recording
from tenfold.engine.shadow import Shadowed
from tenfold.fleet.fleet import FleetView
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.policy.policy import POLICIES, Policy, PolicyName
from tenfold.model.units import Millis


def run_with(asked: SimRequest, shadow: PolicyName) -> tuple[Recording, Shadowed]:
    recording, made = Recording(), []

    def around(live):
        made.append(Shadowed(live, placing_decider(Policy(name=shadow), 60_000)))
        return made[0]

    simulate(asked, journal=recording, witnesses=[recording], around=around)
    return recording, made[0]


@pytest.mark.parametrize("shadow", POLICIES)
def test_a_run_with_a_shadow_is_the_run_without_it(shadow: PolicyName):
    alone = Recording()
    simulate(request("las", settings=ROUGH), journal=alone, witnesses=[alone])
    beside, shadowed = run_with(request("las", settings=ROUGH), shadow)
    assert beside.lines == alone.lines
    assert shadowed.failure == ""
    assert shadowed.cycles > 0


@pytest.mark.parametrize("policy", POLICIES)
def test_a_shadow_of_the_same_policy_never_differs(policy: PolicyName):
    _, shadowed = run_with(request(policy, settings=ROUGH), policy)
    assert shadowed.cycles_differing == 0
    assert shadowed.differences == []


def test_a_shadow_says_what_it_would_have_started():
    jobs = [job("most", 24), job("blocked", 32, at_s=1, seq=1), job("small", 8, at_s=2, seq=2)]
    _, shadowed = run_with(request("fifo", jobs=jobs, faults=[]), "edf")
    assert list(shadowed.would_start) == ["small"]
    first = shadowed.differences[0]
    assert (first.at_ms, first.started, first.held_back) == (2_000, ("small",), ())
    assert len(shadowed.differences) <= shadowed.cycles_differing


def test_a_shadow_says_what_it_would_have_stopped():
    jobs = [job("long", 32, lasts_s=36_000), job("short", 32, at_s=7_200, lasts_s=60, seq=1)]
    _, shadowed = run_with(request("fifo", jobs=jobs, faults=[]), "las")
    assert shadowed.differences[0].stopped == ("long",)
    assert list(shadowed.would_stop) == ["long"]


class _Broken:
    name = "broken"

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        raise KeyError("planted")


def test_a_shadow_that_breaks_does_not_stop_the_run():
    made = []

    def around(live):
        made.append(Shadowed(live, _Broken()))
        return made[0]

    result = simulate(request("fifo"), around=around)
    assert result.summary.finished > 0
    assert "planted" in made[0].failure
