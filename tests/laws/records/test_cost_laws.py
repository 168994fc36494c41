"""Bills add up exactly, whatever ran: charges + idle + overhead = total, by every dimension."""

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.compose.fleet import load_facts
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId, PoolId, SiteId, TeamId
from tenfold.model.job.job import WHOLE, Job, Shape
from tenfold.model.job.terms import Terms
from tenfold.model.units import HOUR, Millis, UsdMicros
from tenfold.physics.operations.ledger import GPU_HOUR, charges, divided
from tenfold.study.cost.prices import PriceBook, Rate
from tenfold.study.cost.report import DIMENSIONS, cost_report
from tenfold.study.cost.usage import Held, Present, Usage

CATALOGUE = load_facts()
AMOUNTS = st.dictionaries(st.integers(0, 30), st.integers(0, 10**12), max_size=12)


@given(st.integers(0, 10**15), AMOUNTS)
def test_a_divided_amount_adds_up_and_no_part_is_off_by_a_micro_dollar(
    total: int, weights: dict[int, int]
):
    parts = divided(total, weights)
    whole = sum(weights.values())
    assert sum(parts.values()) == (total if whole else 0)
    for key, part in parts.items():
        assert part >= 0
        if whole:
            assert abs(part * whole - total * weights[key]) < whole


@given(AMOUNTS, st.integers(0, 20_000_000))
def test_charges_are_the_rounded_product_of_time_and_price(units: dict[int, int], price: int):
    found = charges(units, dict.fromkeys(units, price))
    exact = sum(units.values()) * price
    assert abs(sum(found.values()) * GPU_HOUR - exact) * 2 <= GPU_HOUR


class _Book(PriceBook):
    """Rates that the test chooses, by pool."""

    def __init__(self, prices: list[int]) -> None:
        super().__init__(CATALOGUE, None)
        self._prices = prices

    def of(self, node: Node) -> Rate:
        place = int(node.pool[1:])
        return Rate(
            pool=node.pool,
            accelerator=f"part-{place % 2}",
            usd_micros_per_gpu_hour=UsdMicros(self._prices[place]),
            kind=("owned", "on-demand")[place % 2],
            owner=("", "partner")[place % 2],
            watts_per_gpu=500.0 + place,
            usd_per_kwh=0.13,
            co2_g_per_kwh=400.0,
        )


@st.composite
def usages(draw: st.DrawFn) -> tuple[Usage, list[int]]:
    """Return nodes of up to four pools, and jobs that never hold more than there is."""
    pools = draw(st.integers(1, 4))
    prices = draw(st.lists(st.integers(0, 15_000_000), min_size=pools, max_size=pools))
    end = draw(st.integers(1, 40 * HOUR))
    held: list[Held] = []
    present: list[Present] = []
    for number in range(draw(st.integers(1, 6))):
        pool = draw(st.integers(0, pools - 1))
        gpus = draw(st.integers(1, 8))
        node = Node(id=NodeId(f"n{number}"), pool=PoolId(f"p{pool}"), site=SiteId("s"), gpus=gpus)
        at = 0
        for _ in range(draw(st.integers(0, 4))):
            start = draw(st.integers(at, end))
            at = draw(st.integers(start, end))
            milli = draw(st.integers(1, gpus * WHOLE))
            held.append(Held(draw(jobs()), node.id, milli, start, at))
        present.append(Present(node, 0, end, draw(st.integers(0, end))))
    return Usage(start_ms=0, end_ms=end, held=tuple(held), present=tuple(present)), prices


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    number = draw(st.integers(0, 9))
    kind = ("batch", "service", "interactive")[number % 3]
    return Job(
        id=JobId(f"j{number}"),
        shape=Shape(gpus=1, key="1"),
        submitted_ms=Millis(0),
        team=TeamId(("", "a", "b")[number % 3]),
        terms=None if number % 2 else Terms(kind=kind),
    )


@settings(max_examples=150, deadline=None)
@given(usages())
def test_charges_idle_and_overhead_are_the_total_by_every_dimension(found: tuple[Usage, list[int]]):
    usage, prices = found
    report = cost_report(usage, _Book(prices), None)
    whole = report.charged_usd_micros + report.idle_usd_micros + report.overhead_usd_micros
    assert whole == report.total_usd_micros
    for dimension in DIMENSIONS:
        rows = report.rows[dimension]
        assert sum(row.usd_micros for row in rows) == report.charged_usd_micros
        shared = sum(row.idle_usd_micros for row in rows)
        assert shared == (report.idle_usd_micros if any(r.gpu_hours for r in rows) else 0)
    energy = sum(line.usd_micros for line in report.overhead if line.item.startswith("energy"))
    capacity = sum(
        prices[int(one.node.pool[1:])] * one.node.gpus * WHOLE * (one.end_ms - one.start_ms)
        for one in usage.present
    )
    assert abs((report.total_usd_micros - energy) * GPU_HOUR - capacity) * 2 <= GPU_HOUR


@settings(max_examples=60, deadline=None)
@given(usages())
def test_the_energy_of_jobs_is_their_power_over_time(found: tuple[Usage, list[int]]):
    usage, prices = found
    book = _Book(prices)
    report = cost_report(usage, book, None)
    nodes = {one.node.id: one.node for one in usage.present}
    for row in report.rows["job"]:
        joules = sum(
            book.of(nodes[one.node]).watts_per_gpu
            * one.milli
            / WHOLE
            * (one.end_ms - one.start_ms)
            / 1_000
            for one in usage.held
            if one.job.id == row.key
        )
        assert abs(row.kwh - joules / 3.6e6) <= 1e-9 * max(1.0, row.kwh)
        assert row.co2e_kg is not None
        assert abs(row.co2e_kg - row.kwh * 0.4) <= 1e-9 * max(1.0, row.kwh)
