"""Small build-out problems, drawn at random or by hand, and their optimum by trying everything."""

from collections.abc import Iterator
from itertools import product

from hypothesis import strategies as st

from tenfold.decide.capacity.buildout.check import usable_nodes, used_of_limit
from tenfold.decide.capacity.buildout.plan import worst_mean
from tenfold.decide.capacity.buildout.problem import (
    BuildOut,
    DemandClass,
    Limit,
    OwnOption,
    RentOption,
    Scenario,
)

MONTHS = 3


def own(name: str = "train", **changes: object) -> OwnOption:
    stated = {"gpus_per_node": 8, "nodes_today": 0, "usd_per_node_month": 8_000.0, "lead_months": 1}
    return OwnOption(name=name, **{**stated, **changes})  # pyright: ignore[reportArgumentType]


def rent(name: str = "cloud", **changes: object) -> RentOption:
    return RentOption(name=name, **{"usd_on_demand": 2_000.0, **changes})  # pyright: ignore[reportArgumentType]


def problem(demand: list[float], **changes: object) -> BuildOut:
    """Return one class with one course of demand; it runs on every option one to one."""
    options = {"own": (own(),), "rent": (rent(),), **changes}
    names = [one.name for group in ("own", "rent") for one in options[group]]  # pyright: ignore
    stated: dict[str, object] = {
        "months": len(demand),
        "classes": (
            DemandClass(name="train", rates=dict.fromkeys(names, 1.0), delay_usd=10_000.0),
        ),
        "scenarios": (Scenario(name="base", probability=1.0, demand=(tuple(demand),)),),
        **options,
    }
    return BuildOut(**stated)  # pyright: ignore[reportArgumentType]


@st.composite
def tiny_problems(draw: st.DrawFn) -> BuildOut:
    """Draw a problem of one class and two months or three that can be solved by trying all."""
    months = draw(st.integers(2, MONTHS))
    gpus = st.integers(0, 24).map(float)
    scenarios = draw(st.integers(1, 2))
    spares = draw(st.sampled_from([0.0, 0.1]))
    budget = draw(st.one_of(st.none(), st.integers(20_000, 90_000)))
    bought = own(
        nodes_today=draw(st.integers(0, 2)),
        usd_per_node_month=float(draw(st.integers(2_000, 14_000))),
        lead_months=draw(st.integers(0, 2)),
        nodes_most=2,
        spares_per_node=spares,
    )
    rented = rent(
        usd_on_demand=draw(st.one_of(st.none(), st.integers(800, 4_000).map(float))),
        usd_spot=draw(st.one_of(st.none(), st.integers(300, 2_000).map(float))),
        spot_goodput=draw(st.sampled_from([1.0, 0.8])),
        usd_reserved=draw(st.one_of(st.none(), st.integers(500, 2_500).map(float))),
        reserved_months=2,
        gpus_most=draw(st.sampled_from([None, 16])),
    )
    limit = Limit(
        name="power",
        unit="kW",
        room=tuple(float(draw(st.integers(0, 30))) for _ in range(months)),
        per_node={"train": 10.0},
    )
    racks = Limit(
        name="racks",
        unit="racks",
        room=(float(draw(st.integers(0, 2))),) * months,
        per_node={},
        per_unit={"train": 2.0},
        free={"train": 1.0},
    )
    kind = DemandClass(
        name="train",
        rates={"train": 1.0, "cloud": draw(st.sampled_from([1.0, 2.0]))},
        spot_share=draw(st.sampled_from([0.0, 0.5])),
        delay_usd=float(draw(st.integers(1_000, 9_000))),
    )
    courses = tuple(
        Scenario(
            name=f"course {number}",
            probability=1 / scenarios,
            demand=(tuple(draw(gpus) for _ in range(months)),),
            budget_usd=() if budget is None else (float(budget),) * months,
        )
        for number in range(scenarios)
    )
    return BuildOut(
        months=months,
        own=(bought,),
        rent=(rented,),
        classes=(kind,),
        scenarios=courses,
        limits=(limit, racks),
        cvar_weight=draw(st.sampled_from([0.0, 0.5])),
        cvar_tail=0.5,
    )


def cheapest_by_trying(problem: BuildOut) -> float | None:
    """Return the least cost over all orders, each month then served from the cheapest source."""
    found = [
        cost for orders in _all_orders(problem) if (cost := _cost(problem, *orders)) is not None
    ]
    return min(found, default=None)


def _all_orders(problem: BuildOut) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    option, offer = problem.own[0], problem.rent[0]
    most = range((option.nodes_most or 0) + 1)
    units = range(4) if offer.usd_reserved is not None else range(1)
    useful = max(0, problem.months - option.lead_months)
    for bought in product(most, repeat=useful):
        if sum(bought) <= (option.nodes_most or 0):
            for reserved in product(units, repeat=problem.months):
                yield bought, reserved


def _cost(problem: BuildOut, bought: tuple[int, ...], reserved: tuple[int, ...]) -> float | None:
    option, offer = problem.own[0], problem.rent[0]
    totals = [0.0] * len(problem.scenarios)
    for month in range(problem.months):
        new = sum(bought[: max(0, month - option.lead_months + 1)])
        covered = sum(reserved[max(0, month - offer.reserved_months + 1) : month + 1])
        for limit in problem.limits:
            if used_of_limit(limit, {option.name: new}) > limit.room[month] + 1e-9:
                return None
        gpus = covered * offer.gpus_per_unit
        if offer.gpus_most is not None and gpus > offer.gpus_most:
            return None
        there = usable_nodes(option, option.nodes_today + new, month) * option.gpus_per_node
        shared = new * option.usd_per_node_month + gpus * (offer.usd_reserved or 0.0)
        for at, scenario in enumerate(problem.scenarios):
            budget = scenario.budget_usd[month] if scenario.budget_usd else None
            if budget is not None and shared > budget + 1e-9:
                return None
            left = None if budget is None else budget - shared
            wanted = scenario.demand[0][month]
            totals[at] += shared + _served(problem, wanted, there, gpus, left)
    chances = [one.probability for one in problem.scenarios]
    mean = sum(chance * cost for chance, cost in zip(chances, totals, strict=True))
    if not problem.cvar_weight or len(totals) < 2:
        return mean
    worst = worst_mean(totals, chances, problem.cvar_tail)
    return (1 - problem.cvar_weight) * mean + problem.cvar_weight * worst


def _served(
    problem: BuildOut, wanted: float, there: float, reserved: float, left: float | None
) -> float:
    """Return what a month costs besides what was ordered: the cheapest mix, on a fine grid.

    The mix is a line program of two amounts, so its optimum is at a corner.
    """
    kind, offer = problem.classes[0], problem.rent[0]
    rate = kind.rates["cloud"]
    short = max(0.0, wanted - there - reserved * rate)
    free = None if offer.gpus_most is None else offer.gpus_most - reserved
    done = rate * offer.spot_goodput
    spot_most = 0.0 if offer.usd_spot is None else min(kind.spot_share * wanted, short) / done
    hourly_most = 0.0 if offer.usd_on_demand is None else short / rate
    spot_usd, hourly_usd = offer.usd_spot or 0.0, offer.usd_on_demand or 0.0
    edges = [(1.0, 0.0, spot_most), (0.0, 1.0, hourly_most), (done, rate, short)]
    if free is not None:
        edges.append((1.0, 1.0, float(free)))
    if left is not None:
        edges.append((spot_usd, hourly_usd, left))
    best = short * kind.delay_usd
    for spot, hourly in _corners(edges):
        if all(a * spot + b * hourly <= most + 1e-7 for a, b, most in edges):
            missing = short - spot * done - hourly * rate
            cost = spot * spot_usd + hourly * hourly_usd + missing * kind.delay_usd
            best = min(best, cost)
    return best


def _corners(edges: list[tuple[float, float, float]]) -> Iterator[tuple[float, float]]:
    lines = [*edges, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)]
    for one, other in product(lines, repeat=2):
        area = one[0] * other[1] - one[1] * other[0]
        if abs(area) > 1e-12:
            spot = (one[2] * other[1] - one[1] * other[2]) / area
            hourly = (one[0] * other[2] - one[2] * other[0]) / area
            if spot >= -1e-9 and hourly >= -1e-9:
                yield max(0.0, spot), max(0.0, hourly)
