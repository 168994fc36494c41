"""What it costs to reach each requested factor.

Fixes without a known price are counted, not estimated: a total says how many it leaves out.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.study.grow.answer import GrowAnswer, Row
from tenfold.study.grow.layers.budget.money import BUDGET


class Bill(Struct, frozen=True, kw_only=True):
    """What the fixes of some rows cost together."""

    reliefs: int
    usd_per_month: float
    unpriced: int

    @property
    def sentence(self) -> str:
        """The cost in a few words."""
        if not self.reliefs:
            return "no cost"
        if self.unpriced == self.reliefs:
            return "cost unknown"
        money = f"${self.usd_per_month:,.0f}/month" if self.usd_per_month else "free"
        if not self.unpriced:
            return money
        fixes = "1 fix" if self.unpriced == 1 else f"{self.unpriced} fixes"
        return (
            f"{money} plus {fixes} of unknown price"
            if self.usd_per_month
            else f"cost of {fixes} unknown, the others are free"
        )


class Stage(Struct, frozen=True, kw_only=True):
    """One requested factor: what it takes, by when, and what blocks it."""

    factor: float
    bill: Bill
    order_first: str
    blocked_by: str
    """The layer without a known fix; empty if the factor is reached."""


def bill_of(rows: Sequence[Row]) -> Bill:
    """Return what the fixes of some rows cost, without a budget increase."""
    reliefs = [row for row in rows if row.relief is not None and row.relief.code != BUDGET]
    return Bill(
        reliefs=len(reliefs),
        usd_per_month=sum(row.usd or 0.0 for row in reliefs),
        unpriced=sum(row.usd is None for row in reliefs),
    )


def stages(answer: GrowAnswer) -> list[Stage]:
    """Return what each factor takes, smallest first: the rows that break before it."""
    return [_stage(answer, factor) for factor in sorted(answer.to)]


def _stage(answer: GrowAnswer, factor: float) -> Stage:
    rows = [row for row in answer.rows if row.k is not None and row.k < factor]
    short = answer.ok_up_to is not None and answer.ok_up_to < factor
    # The last row blocks it: it has no fix, or there were too many rows.
    blocked_by = (rows[-1].label or rows[-1].layer) if short and rows else ""
    return Stage(
        factor=factor,
        bill=bill_of(rows),
        order_first=min((row.order_by for row in rows if _is_day(row.order_by)), default=""),
        blocked_by=blocked_by,
    )


def order_day(row: Row) -> str:
    """Return the day to order by as printed, marked if it is past."""
    return f"{row.order_by} (past)" if row.late else row.order_by


def _is_day(text: str) -> bool:
    """Without a pace, orders are given in weeks before a factor and cannot be sorted."""
    return text[:4].isdigit() and text[4:5] == "-"
