"""What a node can do as a short test measured it, and how that compares with its pool.

Every figure is a rate, so that more is better and one rule judges them all. The verdict is
computed once and stands in the journal with the figures: whoever reads it later reads what was
decided then, whatever the pool has become since.
"""

from typing import Literal

from msgspec import Struct

from tenfold.model.ids import NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

REFUSED = "acceptance-refused"
"""The code of a node that was measured and is too slow."""
FAILED = "acceptance-failed"
"""The code of a node whose test came to no figures."""
UNDER_TEST = "under-test"
"""The code of a node that takes no work because it is being tested again."""

Judged = Literal["alike", "slow", "fast", "missing"]
Basis = Literal["first", "pool", "itself", "none"]


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
    """One rate that was measured."""

    name: str
    value: float
    unit: str


class NodeTest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """What one test of a node gave, and what it could not measure, with the reasons."""

    figures: tuple[Figure, ...] = ()
    unmeasured: tuple[Reason, ...] = ()


class Compared(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One figure beside that of the pool."""

    name: str
    unit: str
    value: float
    median: float
    """The pool's middle; 0 where the pool does not have this figure."""
    deviation: float
    """How far from the median, as a share of it; below 0 is slower."""
    allowed: float
    """How far below the median is still taken for alike."""
    judged: Judged


class NodeVerdict(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a node behaves like those it joins, figure by figure."""

    is_accepted: bool
    basis: Basis
    """Held against its pool, against itself before, or against nothing: it is the first."""
    nodes: int
    """How many it was held against."""
    compared: tuple[Compared, ...] = ()
    reason: Reason
    notes: tuple[Reason | str, ...] = ()
    """Beside the verdict; a text in records from before reasons had fields."""


class Peer(Struct, frozen=True):
    """A node of the same pool whose figures are taken for good."""

    node_id: NodeId
    figures: tuple[Figure, ...]


class Acceptance(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """How a node stands with its tests: the last one, and what came of it."""

    at_ms: Millis
    test: NodeTest
    verdict: NodeVerdict
    accepted_by: str = ""
    """Who took it in spite of the verdict."""
    good: tuple[Figure, ...] = ()
    """Figures of a test that it passed: what others, or itself later, are held against."""

    @property
    def is_refused(self) -> bool:
        """Whether it may take no work for what its test gave."""
        return not self.verdict.is_accepted and not self.accepted_by


def best_of(before: NodeTest, now: NodeTest) -> NodeTest:
    """Return two tests of a node as one: the best of each figure, and what neither measured."""
    best: dict[str, Figure] = {}
    for figure in (*before.figures, *now.figures):
        known = best.get(figure.name)
        if known is None or figure.value > known.value:
            best[figure.name] = figure
    return NodeTest(figures=tuple(best.values()), unmeasured=now.unmeasured)


def after_test(
    before: Acceptance | None, at_ms: Millis, test: NodeTest, verdict: NodeVerdict
) -> Acceptance:
    """Return how a node stands after another test.

    One that was held against itself keeps the figures it was held against: else a node that
    becomes a little slower with every test would pass them all.
    """
    good = () if before is None else before.good
    if verdict.is_accepted and not (verdict.basis == "itself" and good):
        good = test.figures
    return Acceptance(at_ms=at_ms, test=test, verdict=verdict, good=good)
