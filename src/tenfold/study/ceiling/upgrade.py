"""Faster network or more GPUs: which gives more throughput for the next dollar.

Options of different prices are compared by gain per cost, both as shares of today's; added GPUs are
also shown at the price of the network upgrade.
"""

from math import log2
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tenfold.compose.fleet import OpenFleet
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.scaling import ScalePoint
from tenfold.decide.layout.search import breakdown_at, search
from tenfold.model.reason import Misfit, Reason
from tenfold.study.ceiling.design import CeilingQuestion, Design, design_of, grown
from tenfold.study.ceiling.layers import CeilingGrade

Verdict = Literal["fabric", "gpus", "neither"]
TRAFFIC = ("tp_s", "moe_s", "p2p_s", "dp_s")
LEAST_GAIN = 0.005
"""Smaller gains are within the noise of any estimate."""


class FabricPrice(Struct, frozen=True, kw_only=True):
    """What the network costs, as shares; the defaults are assumptions."""

    share_of_gpu_hour: float = 0.15
    """NICs, cables and switches of one GPU over its hourly price; doubled rates double it."""
    uplink_share: float = 0.5
    """Share of a non-blocking fabric's price above its leaves."""


ASSUMED_PRICE = FabricPrice()


class Option(Struct, frozen=True, kw_only=True):
    """One thing to buy."""

    name: str
    verdict: Verdict
    cost_share: float
    """Share of what today's GPUs cost."""
    usd_per_hour: float | None
    gain_share: float
    """Throughput gained over today's."""
    gain_per_cost: float
    tokens_per_s_per_usd_hour: float | None
    sentence: str


class UpgradeAnswer(Struct, frozen=True, kw_only=True):
    """Options, best value first, and the conclusion."""

    model: str
    accelerator: str
    gpus: int
    tokens_per_s: float
    traffic_share: float
    """Share of a step spent waiting for other GPUs."""
    verdict: Verdict
    sentence: str
    options: tuple[Option, ...]
    fabric_price: FabricPrice
    evidence: CeilingGrade


def upgrade(
    fleet: OpenFleet, question: CeilingQuestion | None = None, price: FabricPrice = ASSUMED_PRICE
) -> UpgradeAnswer | Misfit:
    """Return whether network or GPUs give more per dollar, for a model on a fleet."""
    return upgrade_of(design_of(fleet, question or CeilingQuestion()), price)


def upgrade_of(design: Design, price: FabricPrice = ASSUMED_PRICE) -> UpgradeAnswer | Misfit:
    """Return the same for an existing design."""
    request = design.request
    if request is None:
        return Misfit((Reason("no-model"),))
    base = _base(design)
    if base is None:
        fields = {"model": request.job.model, "gpus": design.gpus_today}
        return Misfit((Reason("memory-exceeded", fields),))
    target = replace(design.target, gpus=base.gpus)
    today = search(request, target, base.gpus)
    rate = request.global_batch * request.seq / float(today.step_s[0])
    parts = breakdown_at(today, 0)
    made = _options(design, target, base.gpus, rate, price)
    options = sorted(made, key=lambda one: -one.gain_per_cost)
    best = options[0]
    verdict: Verdict = best.verdict if best.gain_share > LEAST_GAIN else "neither"
    return UpgradeAnswer(
        model=request.job.model,
        accelerator=target.accelerator,
        gpus=base.gpus,
        tokens_per_s=rate,
        traffic_share=sum(parts[part] for part in TRAFFIC) / float(today.step_s[0]),
        verdict=verdict,
        sentence=_sentence(request, verdict, options),
        options=tuple(options),
        fabric_price=price,
        evidence="assumption" if price == ASSUMED_PRICE else "supposed",
    )


def _base(design: Design) -> ScalePoint | None:
    """Return the largest size within today's fleet that trains the batch as requested."""
    if design.curve is None:
        return None
    batch, points = design.curve.global_batch, design.curve.points
    exact = [one for one in points if one.plan.global_batch == batch]
    within = [one for one in exact if one.gpus <= design.gpus_today]
    return within[-1] if within else None


def _options(
    design: Design, target: PlanningTarget, gpus: int, rate: float, price: FabricPrice
) -> list[Option]:
    faster = replace(target, nic_bytes_per_s=2 * target.nic_bytes_per_s)
    share = price.share_of_gpu_hour
    options = [
        _fabric(design, "nic-x2", "twice the network bandwidth per GPU", (faster, share), rate),
        _more_gpus(design, gpus, rate, share),
    ]
    narrow = target.oversubscription(gpus)
    if narrow > 1:
        wide = replace(target, leaf_oversubscription=1.0, pod_oversubscription=1.0)
        cost = share * price.uplink_share * (1 - 1 / narrow)
        text = f"non-blocking uplinks instead of {narrow:g}:1"
        options.append(_fabric(design, "non-blocking", text, (wide, cost), rate))
    return options


def _fabric(
    design: Design, name: str, what: str, bought: tuple[PlanningTarget, float], rate: float
) -> Option:
    target, cost = bought
    request = design.request
    assert request is not None, "an upgrade is of a job"
    after = (
        request.global_batch * request.seq / float(search(request, target, target.gpus).step_s[0])
    )
    return _option(target, (name, "fabric", what), cost, rate, after)


def _more_gpus(design: Design, gpus: int, rate: float, cost: float) -> Option:
    """Return what GPUs gain at the price of the network upgrade, along the scaling curve.

    Batches divide over few odd sizes, so the gain of a few more GPUs is read off the doubling:
    throughput grows with their number to some power below 1.
    """
    request = design.request
    assert request is not None, "an upgrade is of a job"
    twice = search(request, grown(design, 2 * gpus), 2 * gpus)
    power = 0.0
    if twice.found:
        power = log2(request.global_batch * request.seq / float(twice.step_s[0]) / rate)
    after = rate * (1 + cost) ** power
    target = replace(design.target, gpus=gpus)
    return _option(target, ("gpus", "gpus", f"{cost:.1%} more GPUs"), cost, rate, after)


def _option(
    target: PlanningTarget, named: tuple[str, Verdict, str], cost: float, rate: float, after: float
) -> Option:
    name, verdict, what = named
    gain = after / rate - 1
    hourly = target.usd_per_gpu_hour * target.gpus * cost
    priced = f" for ${hourly:,.2f} an hour" if hourly else ""
    return Option(
        name=name,
        verdict=verdict,
        cost_share=cost,
        usd_per_hour=hourly or None,
        gain_share=gain,
        gain_per_cost=gain / cost if cost > 0 else 0.0,
        tokens_per_s_per_usd_hour=(after - rate) / hourly if hourly else None,
        sentence=f"{what}: {gain:+.1%} throughput{priced}, {cost:.1%} of the GPU cost",
    )


def _sentence(request: TrainRequest, verdict: Verdict, options: list[Option]) -> str:
    best = options[0]
    if verdict == "neither":
        return f"neither network nor GPUs would speed up {request.job.model} at this size"
    other = next((one for one in options if one.verdict != best.verdict), None)
    more = "the network" if verdict == "fabric" else "GPUs"
    less = "GPUs" if verdict == "fabric" else "the network"
    against = "" if other is None else f"; on {less} (`{other.name}`), {other.gain_per_cost:.2f}%"
    return (
        f"spend on {more}: each 1% of the GPU cost spent on {more} (`{best.name}`) adds "
        f"{best.gain_per_cost:.2f}% throughput{against}"
    )
