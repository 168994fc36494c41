"""What it costs to reach each requested factor.

Fixes without a known price are counted, not estimated: a total says how many it leaves out.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.study.grow.answer import GrowAnswer, ReliefShown, Row
from tenfold.study.grow.layers.budget.money import BUDGET


class Bill(Struct, frozen=True, kw_only=True):
    """What the fixes of some rows cost together."""

    reliefs: int
    usd_per_month: float
    unpriced: int
    """Parts of fixes without a price; the sum leaves them out."""
    low: float = 0.0
    high: float = 0.0
    """The range of the sum; equal to it unless a price is assumed."""
    raises_budget: bool = False

    @property
    def sentence(self) -> str:
        """The cost in a few words."""
        if not self.reliefs:
            return "no cost besides the larger budget" if self.raises_budget else "no cost"
        unpriced = f" + {self.unpriced} unpriced" if self.unpriced else ""
        if unpriced and not self.usd_per_month:
            return f"$0/month{unpriced}" if self.unpriced < self.reliefs else "no prices known"
        if not self.usd_per_month:
            return "free"
        spread = f" ({dollars(self.low)}-{dollars(self.high)})" if self.assumed else ""
        return f"{dollars(self.usd_per_month)}/month{spread}{unpriced}"

    @property
    def assumed(self) -> bool:
        """Whether a price in it is assumed."""
        return self.low < self.high


class Stage(Struct, frozen=True, kw_only=True):
    """One requested factor: what it takes, by when, and what blocks it."""

    factor: float
    fixes: int
    """Rows of the ladder before it that have a fix, a larger budget included."""
    bill: Bill
    order_first: str
    blocked_by: str
    """The layer without a known fix; empty if the factor is reached."""
    next_label: str = ""
    """What breaks next, if the factor is not reached because the list of fixes is full."""


def bill_of(rows: Sequence[Row]) -> Bill:
    """Return what the fixes of some rows cost; a larger budget pays for them and is no cost."""
    reliefs = [row.relief for row in rows if row.relief is not None]
    paid = [one for one in reliefs if one.code != BUDGET]
    known = [one.usd_per_month or 0.0 for one in paid]
    return Bill(
        reliefs=len(paid),
        usd_per_month=sum(known),
        unpriced=sum(1 if one.usd_per_month is None else one.unpriced for one in paid),
        low=sum(
            usd if one.usd_low is None else one.usd_low
            for one, usd in zip(paid, known, strict=True)
        ),
        high=sum(
            usd if one.usd_high is None else one.usd_high
            for one, usd in zip(paid, known, strict=True)
        ),
        raises_budget=any(BUDGET in one.code for one in reliefs),
    )


def cost_cell(relief: ReliefShown | None) -> str:
    """Return what a fix costs a month: `~` marks an assumed price, `-` a limit that is raised."""
    if relief is None:
        return ""
    if relief.code == BUDGET:
        return "-"
    if relief.usd_per_month is None:
        return "unknown"
    if not relief.usd_per_month and not relief.unpriced:
        return "free"
    about = "~" if relief.assumed_prices else ""
    more = f" + {relief.unpriced} unpriced" if relief.unpriced else ""
    return f"{about}{relief.usd_per_month:,.0f}{more}"


def month_sentence(answer: GrowAnswer) -> str:
    """Return what the fleet costs a month, today and with all fixes; empty without prices."""
    month = answer.month
    if not month.usd_today:
        return ""
    said = f"total cost: {dollars(month.usd_today)}/month today"
    fixes = _fixes_without_price(answer.rows)
    if round(month.usd_then) != round(month.usd_today):
        least = "at least " if fixes else ""
        said += f", {least}{dollars(month.usd_then)}/month at {month.factor:.3g}x"
    if fixes:
        have = "1 fix has" if fixes == 1 else f"{fixes:,} fixes have"
        said += f" ({have} no full price)"
    unpriced = f" (without {', '.join(month.unpriced)}: no price)" if month.unpriced else ""
    return f"{said}{unpriced}"


def _fixes_without_price(rows: Sequence[Row]) -> int:
    """Return how many fixes have no price, or have a part without one."""
    fixes = [row.relief for row in rows if row.relief is not None and row.relief.code != BUDGET]
    return sum(one.usd_per_month is None or one.unpriced > 0 for one in fixes)


def dollars(value: float) -> str:
    """Return dollars without cents."""
    return f"${value:,.0f}"


def stages(answer: GrowAnswer) -> list[Stage]:
    """Return what each factor takes, smallest first: the rows that break before it."""
    return [_stage(answer, factor) for factor in sorted(answer.to)]


def _stage(answer: GrowAnswer, factor: float) -> Stage:
    rows = [row for row in answer.rows if row.k is not None and row.k < factor]
    short = answer.ok_up_to is not None and answer.ok_up_to < factor
    full = answer.next_label if short else ""
    blocked_by = (rows[-1].label or rows[-1].layer) if short and rows and not full else ""
    return Stage(
        factor=factor,
        fixes=sum(row.relief is not None for row in rows),
        bill=bill_of(rows),
        order_first=min((order_day(row) for row in rows if _is_day(row.order_by)), default=""),
        blocked_by=blocked_by,
        next_label=full,
    )


def order_day(row: Row) -> str:
    """Return the day to order by as printed, marked if it is past."""
    return f"{row.order_by} (past)" if row.late else row.order_by


def _is_day(text: str) -> bool:
    """Without a pace, orders are given in weeks before a factor and cannot be sorted."""
    return text[:4].isdigit() and text[4:5] == "-"
