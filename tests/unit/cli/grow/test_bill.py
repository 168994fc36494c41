"""What a ladder costs: sums say what they leave out, and each factor takes its own rows."""

from msgspec.structs import replace

from growth_builders import fleet, given, tier
from tenfold.cli.grow.bill import bill_of, stages
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.answer import ReliefShown, Row
from tenfold.study.grow.question import GrowQuestion


def row(k: float, usd: float | None, *, order_by: str = "", relief: bool = True) -> Row:
    shown = ReliefShown(code="more", sentence="more", usd_per_month=usd, weeks=None)
    return Row(
        layer=f"layer-{k:g}",
        resource="it",
        k=k,
        low=None,
        high=None,
        status="breaks",
        grade="published",
        relief=shown if relief else None,
        usd=usd,
        order_by=order_by,
    )


def test_a_price_that_nobody_states_is_counted_and_in_no_sum():
    bill = bill_of([row(1.5, 100.0), row(2.0, None), row(3.0, 50.0), row(4.0, None, relief=False)])
    assert (bill.reliefs, bill.usd_per_month, bill.unpriced) == (3, 150.0, 1)
    assert bill.sentence == "$150/month + 1 unpriced"


def test_a_bill_says_when_nothing_is_known_and_when_nothing_is_paid():
    assert bill_of([row(2.0, None)]).sentence == "no prices known"
    assert bill_of([row(2.0, 0.0)]).sentence == "free"
    assert bill_of([row(2.0, None, relief=False)]).sentence == "no cost"


def test_each_factor_takes_the_rows_that_break_before_it():
    question = GrowQuestion(axis="nodes", to=(5.0, 2.0))
    answer = replace(
        analyse(given(fleet(rack_kw=70.0, tiers=(tier(),))), question),
        rows=(
            row(1.5, 100.0, order_by="2027-03-01"),
            row(3.0, 50.0, order_by="2027-01-01"),
            row(4.0, None, order_by="20 weeks before 4x", relief=False),
        ),
        ok_up_to=4.0,
    )
    two, five = stages(answer)
    assert (two.factor, two.bill.usd_per_month, two.order_first) == (2.0, 100.0, "2027-03-01")
    assert two.blocked_by == ""
    assert (five.bill.usd_per_month, five.order_first) == (150.0, "2027-01-01")
    assert five.blocked_by == "layer-4"


def test_a_larger_budget_is_granted_and_in_no_sum():
    granted = row(2.0, 900.0)
    shown = ReliefShown(code="budget", sentence="more", usd_per_month=900.0, weeks=None)
    assert bill_of([row(1.5, 100.0), replace(granted, relief=shown)]).usd_per_month == 100.0


def test_a_larger_budget_counts_among_the_fixes_that_a_factor_takes():
    """`--apply` counts it as well, so the numbers must agree."""
    shown = ReliefShown(code="budget", sentence="more", usd_per_month=900.0, weeks=None)
    answer = replace(
        analyse(given(fleet()), GrowQuestion(axis="nodes", to=(3.0,))),
        rows=(row(1.5, 10.0), replace(row(2.0, 900.0), relief=shown)),
    )
    [stage] = stages(answer)
    assert (stage.fixes, stage.bill.usd_per_month) == (2, 10.0)
