"""What a ladder costs: all that has to be ordered to stand each factor that was asked for.

Prices that nobody states are counted, not guessed: a sum says how many things it leaves out.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.study.grow.answer import GrowAnswer, Row
from tenfold.study.grow.layers.budget.money import BUDGET


class Bill(Struct, frozen=True, kw_only=True):
    """What some rows of a ladder cost together."""

    reliefs: int
    usd_per_month: float
    unpriced: int

    @property
    def sentence(self) -> str:
        """The bill in a few words."""
        if not self.reliefs:
            return "nothing to pay"
        if self.unpriced == self.reliefs:
            return "prices not known"
        money = f"${self.usd_per_month:,.0f} a month" if self.usd_per_month else "free"
        return f"{money} and {self.unpriced} without a price" if self.unpriced else money


class Stage(Struct, frozen=True, kw_only=True):
    """One factor that was asked for: what it takes, by when, and what holds the fleet below it."""

    factor: float
    bill: Bill
    order_first: str
    blocked_by: str
    """The layer for which no relief is known; empty where the fleet gets there."""


def bill_of(rows: Sequence[Row]) -> Bill:
    """Return what the reliefs of some rows cost, a larger budget left out."""
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
    # The last row that breaks holds it: it has no relief, or there were too many rows.
    blocked_by = rows[-1].layer if short and rows else ""
    return Stage(
        factor=factor,
        bill=bill_of(rows),
        order_first=min((row.order_by for row in rows if _is_day(row.order_by)), default=""),
        blocked_by=blocked_by,
    )


def order_day(row: Row) -> str:
    """Return the day to order by as it is told: one that has gone says so."""
    return f"{row.order_by} (past)" if row.late else row.order_by


def _is_day(text: str) -> bool:
    """Without a pace an order is told by weeks before a factor, and those have no order."""
    return text[:4].isdigit() and text[4:5] == "-"
