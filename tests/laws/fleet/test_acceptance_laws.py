"""What holds of the verdict on a node whatever its pool looks like."""

from hypothesis import given
from hypothesis import strategies as st

from tenfold.decide.detect.acceptance import AcceptanceRule, judge_node
from tenfold.model.acceptance import Figure, NodeTest, NodeVerdict, Peer
from tenfold.model.ids import NodeId
from tenfold.report.reasons.render import render

NAMES = ("core-float", "memory-copy", "disk-write")
RATES = st.floats(min_value=1e-3, max_value=1e9)
NODES = st.tuples(RATES, RATES, RATES)
POOLS = st.lists(NODES, min_size=1, max_size=12)
BANDS = st.floats(min_value=0.01, max_value=0.99)


def figures(values: tuple[float, ...]) -> tuple[Figure, ...]:
    return tuple(Figure(name, value, "/s") for name, value in zip(NAMES, values, strict=True))


def judged(node: tuple[float, ...], pool: list[tuple[float, ...]], band: float) -> NodeVerdict:
    peers = [Peer(NodeId(f"n{place}"), figures(one)) for place, one in enumerate(pool)]
    rule = AcceptanceRule(band=band, disk_band=band)
    return judge_node(NodeId("new"), NodeTest(figures=figures(node)), peers, rule)


@given(node=NODES, pool=POOLS, band=BANDS, faster=st.floats(min_value=1.0, max_value=10.0))
def test_a_faster_node_is_never_refused_where_a_slower_one_was_taken(
    node: tuple[float, ...], pool: list[tuple[float, ...]], band: float, faster: float
):
    better = tuple(value * faster for value in node)
    assert judged(better, pool, band).is_accepted >= judged(node, pool, band).is_accepted


@given(node=NODES, pool=POOLS, band=BANDS)
def test_the_order_of_the_pool_does_not_matter(
    node: tuple[float, ...], pool: list[tuple[float, ...]], band: float
):
    one, other = judged(node, pool, band), judged(node, pool[::-1], band)
    assert one == other


@given(pool=POOLS, band=BANDS)
def test_a_node_at_the_median_of_every_figure_is_taken(pool: list[tuple[float, ...]], band: float):
    middle = tuple(one.median for one in judged(pool[0], pool, band).compared)
    assert judged(middle, pool, band).is_accepted


@given(pool=POOLS, band=st.floats(min_value=0.01, max_value=0.9), place=st.integers(0, 2))
def test_a_node_far_below_the_pool_in_one_figure_is_refused_and_told_which(
    pool: list[tuple[float, ...]], band: float, place: int
):
    middle = [one.median for one in judged(pool[0], pool, band).compared]
    middle[place] *= 0.05
    verdict = judged(tuple(middle), pool, band)
    assert [one.name for one in verdict.compared if one.judged == "slow"] == [NAMES[place]]
    assert NAMES[place] in render(verdict.reason)
