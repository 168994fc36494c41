"""Acceptance tests: the measured performance of a node, compared with its pool.

Every figure is a rate, so higher is better and one rule judges them all. The verdict is computed
once and stored with the figures, so it stays as decided even if the pool changes.
"""

from typing import Literal

from msgspec import Struct

from tenfold.model.ids import NodeId
from tenfold.model.reason import Reason
from tenfold.model.units import Millis

REFUSED = "acceptance-refused"
"""Reason code of a node that was measured and is too slow."""
FAILED = "acceptance-failed"
"""Reason code of a node whose test produced no figures."""
UNDER_TEST = "under-test"
"""Reason code of a node that is cordoned while it is tested."""

FigureVerdict = Literal["alike", "slow", "fast", "missing"]
Basis = Literal["first", "pool", "itself", "none"]


class Figure(Struct, frozen=True, forbid_unknown_fields=True):
    """One measured rate."""

    name: str
    value: float
    unit: str


class NodeTest(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The figures of one node test, and what could not be measured, with reasons."""

    figures: tuple[Figure, ...] = ()
    unmeasured: tuple[Reason, ...] = ()


class FigureComparison(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One figure compared with the pool."""

    name: str
    unit: str
    value: float
    median: float
    """Median of the pool; 0 if the pool lacks this figure."""
    deviation: float
    """Relative deviation from the median; negative is slower."""
    allowed: float
    """Allowed relative deviation below the median."""
    judged: FigureVerdict


class NodeVerdict(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whether a node performs like its pool, figure by figure."""

    is_accepted: bool
    basis: Basis
    """Compared with its pool, with its own earlier test, or with nothing if it is the first."""
    nodes: int
    """Number of nodes it was compared with."""
    compared: tuple[FigureComparison, ...] = ()
    reason: Reason
    notes: tuple[Reason | str, ...] = ()
    """Notes on the verdict; text in records from before reasons had fields."""


class Peer(Struct, frozen=True):
    """A node of the same pool with accepted figures."""

    node_id: NodeId
    figures: tuple[Figure, ...]


class Acceptance(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """The last acceptance test of a node, and its outcome."""

    at_ms: Millis
    test: NodeTest
    verdict: NodeVerdict
    accepted_by: str = ""
    """The user who accepted it despite the verdict."""
    good: tuple[Figure, ...] = ()
    """Figures of a passed test: the baseline for other nodes and for later tests."""

    @property
    def is_refused(self) -> bool:
        """Whether it is unschedulable because of its test."""
        return not self.verdict.is_accepted and not self.accepted_by


def best_results(before: NodeTest, now: NodeTest) -> NodeTest:
    """Return two tests of a node merged: the best of each figure, and what neither measured."""
    best: dict[str, Figure] = {}
    for figure in (*before.figures, *now.figures):
        known = best.get(figure.name)
        if known is None or figure.value > known.value:
            best[figure.name] = figure
    return NodeTest(figures=tuple(best.values()), unmeasured=now.unmeasured)


def after_test(
    before: Acceptance | None, at_ms: Millis, test: NodeTest, verdict: NodeVerdict
) -> Acceptance:
    """Return the acceptance state after another test.

    A node compared with itself keeps its baseline; otherwise a node that gets slightly slower with
    every test would always pass.
    """
    good = () if before is None else before.good
    if verdict.is_accepted and not (verdict.basis == "itself" and good):
        good = test.figures
    return Acceptance(at_ms=at_ms, test=test, verdict=verdict, good=good)
