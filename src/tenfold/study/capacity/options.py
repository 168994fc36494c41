"""What a plan may buy and rent, and which demand may run on it."""

from collections.abc import Sequence
from math import ceil
from statistics import median

from msgspec.structs import replace

from tenfold.decide.capacity.buildout.problem import DemandClass, OwnOption, RentOption
from tenfold.model.capacity.plan_file import BuyTable, ClassTable, PlanFile, RentTable
from tenfold.model.errors import InputError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.facility import PriceKind
from tenfold.model.fleet.spec import FleetSpec, Pool, Price
from tenfold.model.units import HOURS_PER_MONTH, UsdMicros
from tenfold.study.capacity.calendar import months_of
from tenfold.study.capacity.inputs import CapacityInputs
from tenfold.study.capacity.ladder import Ladder
from tenfold.study.estimate.money import fleet_bill
from tenfold.study.grow.relief import lead_weeks
from tenfold.study.grow.state import State

LEAD_STAGES = {
    "order": (1.0, 3.0),
    "delivery": (20.0, 40.0),
    "installation": (2.0, 4.0),
    "integration": (1.0, 2.0),
    "validation": (1.0, 2.0),
}
"""P50 and P90 in weeks where no lead time of nodes is stated; an assumption."""
DELAY_TIMES = 3.0
"""What a missing GPU-hour costs, as a multiple of the on-demand price; an assumption."""
RESERVED_MONTHS = 12
SPOT_GOODPUT = 0.85
OWNED: tuple[PriceKind, ...] = ("owned", "reserved")
"""Pools whose nodes are there for good; others are rented by the hour."""


def classes_of(inputs: CapacityInputs) -> list[ClassTable]:
    """Return the classes of demand: those stated, or one for each accelerator of the fleet."""
    if inputs.plan.demand:
        return list(inputs.plan.demand)
    names = [pool.accelerator for pool in inputs.grow.fleet.spec.pools if pool.gpus]
    return [ClassTable(name=name, accelerator=name) for name in dict.fromkeys(names) if name]


def gpus_today(inputs: CapacityInputs, kind: ClassTable) -> float:
    """Return the GPUs that a class needs today: as stated, or all of its accelerator."""
    if kind.gpus is not None:
        return kind.gpus
    catalogue, spec = inputs.grow.fleet.catalogue, inputs.grow.fleet.spec
    alike = [
        pool for pool in spec.pools if _same(catalogue, pool.accelerator or "", kind.accelerator)
    ]
    return float(sum(pool.gpus for pool in alike))


def bought_pools(inputs: CapacityInputs) -> list[Pool]:
    """Return the pools whose nodes may be bought: owned ones, and those named by `[[buy]]`."""
    stated = [one.pool for one in inputs.plan.buy]
    return [
        pool
        for pool in inputs.grow.fleet.spec.pools
        if pool.gpus_per_node and (pool.id in stated or has_purchase_price(pool))
    ]


def has_purchase_price(pool: Pool) -> bool:
    """Return whether the fleet file says what a node of a pool costs to own."""
    return pool.price is not None and pool.price.kind in OWNED


def is_owned(pool: Pool) -> bool:
    """Return whether the nodes of a pool are there for good.

    Those of a pool at a stated price by the hour are rented as demand needs them.
    """
    return has_purchase_price(pool) or pool.price is None or "price" in pool.defaulted


def own_options(
    inputs: CapacityInputs,
    ladder: Ladder,
    spares: tuple[float, float],
    lead: float,
    notes: list[str],
) -> list[OwnOption]:
    """Return what can be bought; `lead` is the planned lead time of nodes in weeks."""
    months = inputs.horizon.months
    stated = {one.pool: one for one in inputs.plan.buy}
    total = max(1, inputs.grow.fleet.spec.nodes)
    states = [ladder.state(month) for month in range(months)]
    options: list[OwnOption] = []
    bought = bought_pools(inputs)
    for pool in inputs.grow.fleet.spec.pools:
        if pool.gpus and is_owned(pool) and pool not in bought:
            options.append(_kept(pool, months))
            notes.append(
                f"no purchase price known for pool {pool.id}: no nodes are bought for it; set "
                "`capex_usd_per_node` in its `price`, or under `[[buy]]`"
            )
    for pool in bought:
        usd = _node_usd(ladder.today.spec, pool, stated.get(str(pool.id)))
        today = pool.nodes if is_owned(pool) else 0
        share = pool.nodes / total if is_owned(pool) else 0.0
        options.append(
            OwnOption(
                name=str(pool.id),
                accelerator=pool.accelerator or "",
                site=str(pool.site),
                gpus_per_node=pool.gpus_per_node,
                nodes_today=today,
                nodes_planned=tuple(_planned(state, pool) for state in states),
                usd_per_node_month=usd,
                lead_months=ceil(months_of(lead) - 1e-9),
                nodes_most=stated[str(pool.id)].nodes_most if str(pool.id) in stated else None,
                spares_fixed=spares[0] * share,
                spares_per_node=spares[1],
                spares_ready=tuple((state.grow.operations.spares or 0) * share for state in states),
            )
        )
    if not options:
        notes.append("no pool is owned and none is named by `[[buy]]`: everything is rented")
    return options


def _kept(pool: Pool, months: int) -> OwnOption:
    """Return a pool that is used as it is: nothing is bought for it."""
    return OwnOption(
        name=str(pool.id),
        accelerator=pool.accelerator or "",
        site=str(pool.site),
        gpus_per_node=pool.gpus_per_node,
        nodes_today=pool.nodes,
        usd_per_node_month=0.0,
        lead_months=months,
    )


def _planned(state: State, pool: Pool) -> int:
    """Return the nodes that fixes have added to a pool."""
    now = next((one.nodes for one in state.spec.pools if one.id == pool.id), pool.nodes)
    return max(0, now - pool.nodes) if is_owned(pool) else 0


def _node_usd(spec: FleetSpec, pool: Pool, stated: BuyTable | None) -> float:
    """Return what a node costs a month, with its energy."""
    running = 0.0
    if stated is not None and stated.capex_usd_per_node is not None:
        hourly = stated.capex_usd_per_node / (stated.lifetime_years * 12 * HOURS_PER_MONTH)
        micros = UsdMicros(round(hourly / pool.gpus_per_node * 1e6))
        price = Price(kind="owned", usd_micros_per_hour=micros, basis="capex")
        pool = replace(pool, price=price)
    if stated is not None:
        running = stated.running_usd_per_node_month
    if pool.price is None or pool.price.kind not in OWNED:
        raise InputError(
            "no-price",
            f"no purchase price known for nodes of pool `{pool.id}`",
            "set `capex_usd_per_node` under `[[buy]]`",
            field="capex_usd_per_node",
        )
    one = replace(spec, pools=(replace(pool, nodes=1),), tiers=())
    return sum(line.usd for line in fleet_bill(one)) + running


def node_lead(state: State, notes: list[str]) -> dict[str, tuple[float, float]]:
    """Return the stages of the lead time of nodes, P50 and P90 in weeks."""
    stated = next((one for one in state.grow.lead_times if one.thing == "nodes"), None)
    if stated is None:
        notes.append(
            "assumed lead time of nodes: 27 weeks (P50), 47 weeks (P90); set `[[lead_time]]` of "
            "`nodes` in the grow file"
        )
        return dict(LEAD_STAGES)
    if stated.stages:
        return {str(name): quantiles for name, quantiles in stated.stages.items()}
    return {"total": (stated.weeks_p50, stated.weeks_p90)}


def planned_weeks(state: State, p90: float) -> float:
    """Return the lead time that orders are planned with: the P90 that `grow` uses."""
    stated = lead_weeks(state, "nodes")
    return p90 if stated is None else stated


def rent_options(inputs: CapacityInputs, notes: list[str]) -> list[RentOption]:
    """Return what can be rented: the offers stated, or the medians of the facts."""
    if inputs.plan.rent:
        return [_stated(one) for one in inputs.plan.rent]
    catalogue, found = inputs.grow.fleet.catalogue, dict[str, RentOption]()
    for kind in classes_of(inputs):
        for name in (kind.accelerator, *kind.rates):
            offer = _median(catalogue, name)
            if offer is not None and offer.name not in found:
                found[offer.name] = offer
                notes.append(_assumed(offer))
    return list(found.values())


def _stated(one: RentTable) -> RentOption:
    return RentOption(
        name=one.name,
        accelerator=one.accelerator,
        usd_on_demand=_monthly(one.usd_on_demand_per_gpu_hour),
        usd_spot=_monthly(one.usd_spot_per_gpu_hour),
        spot_goodput=one.spot_goodput,
        usd_reserved=_monthly(one.usd_reserved_per_gpu_hour),
        reserved_months=one.reserved_months,
        gpus_per_unit=one.gpus_per_instance,
        gpus_most=one.gpus_most,
    )


def _monthly(hourly: float | None) -> float | None:
    return None if hourly is None else hourly * HOURS_PER_MONTH


def _median(catalogue: Catalogue, accelerator: str) -> RentOption | None:
    name = catalogue.accelerators.get(accelerator).name

    def price(kind: PriceKind) -> float | None:
        known = [one.usd_per_gpu_hour for one in catalogue.prices_of(name, kind)]
        return _monthly(median(known)) if known else None

    prices = price("on-demand"), price("spot"), price("reserved")
    if not any(prices):
        return None
    return RentOption(
        name=f"{name} rented",
        accelerator=name,
        usd_on_demand=prices[0],
        usd_spot=prices[1],
        spot_goodput=SPOT_GOODPUT,
        usd_reserved=prices[2],
        reserved_months=RESERVED_MONTHS,
    )


def _assumed(offer: RentOption) -> str:
    named = (
        ("on demand", offer.usd_on_demand),
        ("spot", offer.usd_spot),
        (f"reserved for {offer.reserved_months} months", offer.usd_reserved),
    )
    prices = ", ".join(
        f"${usd / HOURS_PER_MONTH:.2f} {name}" for name, usd in named if usd is not None
    )
    return (
        f"assumed prices of {offer.accelerator} per GPU-hour, medians of providers: {prices}; "
        "set `[[rent]]`"
    )


def demand_classes(
    inputs: CapacityInputs, own: Sequence[OwnOption], rent: Sequence[RentOption], notes: list[str]
) -> list[DemandClass]:
    """Return the classes with the options that each may run on."""
    return [_class(inputs, kind, own, rent, notes) for kind in classes_of(inputs)]


def _class(
    inputs: CapacityInputs,
    kind: ClassTable,
    own: Sequence[OwnOption],
    rent: Sequence[RentOption],
    notes: list[str],
) -> DemandClass:
    catalogue, plan = inputs.grow.fleet.catalogue, inputs.plan
    rates = {kind.accelerator: 1.0, **kind.rates}
    found: dict[str, float] = {}
    for option in (*own, *rent):
        for part, rate in rates.items():
            here = _same(catalogue, option.accelerator, part)
            if here and _resident(inputs, plan, option, kind.residency):
                found[option.name] = rate
    if not found:
        place = f" with residency `{kind.residency}`" if kind.residency else ""
        raise InputError(
            "no-price",
            f"demand `{kind.name}` can run on no own pool and no offer: nothing has "
            f"{kind.accelerator}{place}",
            "add `[[rent]]` offers, `[[buy]]` entries or `rates` for other accelerators",
            field="rates",
        )
    hourly = kind.delay_usd_per_gpu_hour
    if hourly is None:
        hourly = DELAY_TIMES * _dearest(kind, own, rent, found) / HOURS_PER_MONTH
        notes.append(
            f"assumed cost of a delay for {kind.name}: ${hourly:,.2f} per missing GPU-hour "
            f"({DELAY_TIMES:g}x its price); set `delay_usd_per_gpu_hour` under `[[demand]]`"
        )
    return DemandClass(
        name=kind.name,
        rates=found,
        spot_share=kind.spot_share,
        delay_usd=hourly * HOURS_PER_MONTH,
    )


def _dearest(
    kind: ClassTable,
    own: Sequence[OwnOption],
    rent: Sequence[RentOption],
    found: dict[str, float],
) -> float:
    """Return the on-demand price of its cheapest offer, or else what an own GPU costs."""
    offers = [one.usd_on_demand for one in rent if one.name in found and one.usd_on_demand]
    owned = [one.usd_per_node_month / one.gpus_per_node for one in own if one.name in found]
    if not offers and not any(owned):
        raise InputError(
            "no-price",
            f"no price is known for demand `{kind.name}`",
            "add `[[rent]]` offers, `[[buy]]` entries, or `delay_usd_per_gpu_hour` to `[[demand]]`",
            field="rates",
        )
    return min(offers) if offers else max(owned)


def _resident(
    inputs: CapacityInputs, plan: PlanFile, option: OwnOption | RentOption, residency: str
) -> bool:
    if not residency:
        return True
    spec = inputs.grow.fleet.spec
    if isinstance(option, OwnOption):
        pool = next(one for one in spec.pools if one.id == option.name)
        site = next(one for one in spec.sites if one.id == pool.site)
        return residency in (pool.residency or site.residency)
    offer = next((one for one in plan.rent if one.name == option.name), None)
    return offer is not None and residency in offer.residency


def _same(catalogue: Catalogue, one: str, other: str) -> bool:
    known = catalogue.accelerators.find(one), catalogue.accelerators.find(other)
    if known[0] is not None and known[1] is not None:
        return known[0].name == known[1].name
    return one == other
