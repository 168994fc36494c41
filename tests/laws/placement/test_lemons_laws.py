"""What must hold of blaming nodes, whatever happened on them."""

from hypothesis import given
from hypothesis import strategies as st

from tenfold.compose.node_rules import cordon_rule_of
from tenfold.decide.recover.lemons import CordonThresholds, cordons_left, nodes_to_cordon
from tenfold.engine.digest import fleet_digest
from tenfold.fleet.fleet import Fleet
from tenfold.fleet.image import fleet_from, image_of
from tenfold.live.blame import FailureCordons
from tenfold.model.events import NodeCordoned
from tenfold.model.ids import NodeId
from tenfold.model.units import Millis
from troubled import Story

NODES = 12
KINDS = ("exited", "silent", "lost", "out-of-memory", "start-failed")
steps = st.tuples(
    st.integers(1, NODES), st.sampled_from(("ann", "bob", "eve")), st.sampled_from((*KINDS, ""))
)
stories = st.lists(steps, max_size=40)
rules = st.builds(
    CordonThresholds,
    causes_least=st.integers(1, 3),
    times_pool=st.integers(0, 4),
    share_milli_most=st.integers(0, 1_000),
)


def told(steps: list[tuple[int, str, str]], array: str = "") -> Story:
    """Let a job run per step; one without a kind of failure runs to its end."""
    story = Story(NODES)
    for number, owner, kind in steps:
        job = story.runs(NodeId(f"n{number}"), owner, array)
        if not kind:
            story.completes(job)
        elif number % 2:
            story.fails(job, kind)  # pyright: ignore[reportArgumentType]
        else:
            story.crashes(job, kind)  # pyright: ignore[reportArgumentType]
    return story


@given(stories, rules)
def test_no_more_nodes_are_out_than_the_rule_allows(
    steps: list[tuple[int, str, str]], rule: CordonThresholds
):
    story = told(steps)
    fleet, now_ms = story.fleet, Millis(story.now_ms)
    for _ in range(3):
        for node, reason in nodes_to_cordon(fleet, fleet.failure_log, now_ms, rule):
            assert fleet.states[node] == "up"
            fleet.apply(NodeCordoned(now_ms, node, reason))
        assert cordons_left(fleet, fleet.failure_log, rule) >= 0
        assert len(fleet.failure_log.blamed) <= max(1, NODES * rule.share_milli_most // 1_000)


@given(stories, rules)
def test_a_fleet_from_events_or_from_an_image_is_judged_alike(
    steps: list[tuple[int, str, str]], rule: CordonThresholds
):
    story = told(steps)
    again, now_ms = Fleet(), Millis(story.now_ms)
    again.apply_all(story.events)
    before = fleet_digest(story.fleet)
    found = nodes_to_cordon(story.fleet, story.fleet.failure_log, now_ms, rule)
    for other in (again, fleet_from(image_of(story.fleet)), story.fleet.fork()):
        assert nodes_to_cordon(other, other.failure_log, now_ms, rule) == found
        assert fleet_digest(other) == before, "judging changes nothing"


@given(stories)
def test_one_array_alone_takes_no_node_out(steps: list[tuple[int, str, str]]):
    story = told([(number, "ann", kind) for number, _, kind in steps], array="sweep")
    assert story.blamed() == []


@given(stories.filter(bool), rules)
def test_facts_on_their_way_are_judged_as_if_they_had_come(
    steps: list[tuple[int, str, str]], rule: CordonThresholds
):
    story = told(steps)
    *before, last = story.events
    fleet = Fleet()
    fleet.apply_all(before)
    now_ms = Millis(story.now_ms)
    cordons = FailureCordons(cordon_rule_of(rule), fleet).cordons([last], now_ms)
    found = nodes_to_cordon(story.fleet, story.fleet.failure_log, now_ms, rule)
    assert cordons == [NodeCordoned(now_ms, node, reason) for node, reason in found]
