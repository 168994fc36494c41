"""The acceptance test of a node as it is told over HTTP: every figure beside its pool's."""

from datetime import UTC, datetime

from msgspec import Struct

from tenfold.model.acceptance import Acceptance


class FigureTold(Struct, frozen=True, kw_only=True):
    """One rate that was measured, or that the pool has and the node did not give."""

    name: str
    value: float | None
    unit: str
    median: float | None = None
    """The pool's middle; None where it was held against nothing."""
    deviation: float | None = None
    """How far from the median, as a share of it; below 0 is slower."""
    allowed: float | None = None
    """How far below the median is still taken for alike."""
    judged: str = "first"
    """`alike`, `slow`, `fast`, `missing`, or `first` where there was nothing to compare with."""


class NodeTestTold(Struct, frozen=True, kw_only=True):
    """How a node did in its last acceptance test."""

    tested_at: str
    outcome: str
    """`accepted`, `refused`, or `overridden` where somebody took it in spite of the test."""
    accepted_by: str
    basis: str
    """What it was held against: its `pool`, `itself` before, or nothing, as the `first`."""
    nodes: int
    """How many nodes that were."""
    code: str
    sentence: str
    figures: tuple[FigureTold, ...]
    unmeasured: tuple[str, ...]
    notes: tuple[str, ...]


def told_of(acceptance: Acceptance | None) -> NodeTestTold | None:
    """Return a test; None where there was none."""
    if acceptance is None:
        return None
    verdict = acceptance.verdict
    outcome = "accepted" if verdict.is_accepted else "refused"
    at = datetime.fromtimestamp(acceptance.at_ms / 1_000, UTC)
    return NodeTestTold(
        tested_at=at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        outcome="overridden" if acceptance.accepted_by else outcome,
        accepted_by=acceptance.accepted_by,
        basis=verdict.basis,
        nodes=verdict.nodes,
        code=verdict.reason.code,
        sentence=verdict.reason.sentence,
        figures=_figures(acceptance),
        unmeasured=tuple(one.sentence for one in acceptance.test.unmeasured),
        notes=verdict.notes,
    )


def _figures(acceptance: Acceptance) -> tuple[FigureTold, ...]:
    if not acceptance.verdict.compared:
        return tuple(
            FigureTold(name=one.name, value=one.value, unit=one.unit)
            for one in acceptance.test.figures
        )
    return tuple(
        FigureTold(
            name=one.name,
            value=None if one.judged == "missing" else one.value,
            unit=one.unit,
            median=one.median,
            deviation=one.deviation,
            allowed=one.allowed,
            judged=one.judged,
        )
        for one in acceptance.verdict.compared
    )
