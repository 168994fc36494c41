"""Storage shelves: the relief of a tier, at the price of the tier."""

from math import ceil

from msgspec.structs import replace

from tenfold.model.fleet.spec import Tier
from tenfold.model.units import Bytes, BytesPerSecond, usd
from tenfold.report.figures import count
from tenfold.study.grow.cost.prices import priced
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks, with_relief
from tenfold.study.grow.state import State

CLOUD = "object-"
"""How the media of stores that are rented by the TB begin."""


def more_shelves(state: State, tier: Tier, multiple: float) -> Relief:
    """Return the shelves for a multiple of a tier's capacity, at its price."""
    more = max(1, ceil(tier.shelves * (multiple - 1) * NEARLY))
    bought = _with_shelves(tier, tier.shelves + more)
    added_tb = (bought.capacity - tier.capacity) / 1e12
    price = added_tb * usd(tier.usd_micros_per_tb_month)

    def apply(now: State) -> State:
        tiers = tuple(bought if one.id == tier.id else one for one in now.spec.tiers)
        return with_relief(now, "shelves", replace(now.spec, tiers=tiers))

    text = _text(state, tier, bought)
    relief = Relief("shelves", text, price, lead_weeks(state, "storage"), apply)
    if tier.usd_micros_per_tb_month:
        return relief
    return priced(state, relief, "storage-tb", added_tb)


def _text(state: State, tier: Tier, bought: Tier) -> str:
    """Return what is added: capacity of a cloud store, which has no shelves to count."""
    kind = state.inputs.fleet.catalogue.tiers.find(tier.tier_class)
    if kind is not None and kind.medium.startswith(CLOUD):
        now, then = tier.capacity / 1e12, bought.capacity / 1e12
        return f"raise the capacity of {tier.id} to {then:,.0f} TB (up from {now:,.0f})"
    more = count(bought.shelves - tier.shelves, "storage shelf").replace("shelfs", "shelves")
    return f"add {more} to {tier.id}"


def _with_shelves(tier: Tier, shelves: int) -> Tier:
    """Return a tier with more shelves: capacity, bandwidth, streams and power grow with them."""
    by = shelves / max(1, tier.shelves)
    return replace(
        tier,
        shelves=shelves,
        capacity=Bytes(round(tier.capacity * by)),
        read_bandwidth=BytesPerSecond(round(tier.read_bandwidth * by)),
        write_bandwidth=BytesPerSecond(round(tier.write_bandwidth * by)),
        iops=round(tier.iops * by),
        streams=round(tier.streams * by),
        power_w=round(tier.power_w * by),
    )
