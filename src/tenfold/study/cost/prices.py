"""What an hour costs: by pool where a fleet file says so, else by accelerator."""

from collections.abc import Iterable
from statistics import median

from msgspec import Struct

from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.fleet.facility import PriceKind
from tenfold.model.fleet.node import Node
from tenfold.model.fleet.spec import FleetSpec, Pool, Site
from tenfold.model.units import UsdMicros, usd, usd_micros

FREE = UsdMicros(0)


class Rate(Struct, frozen=True, kw_only=True):
    """The price of one GPU-hour on the nodes of a pool, and what they draw."""

    pool: str
    accelerator: str
    usd_micros_per_gpu_hour: UsdMicros
    kind: PriceKind
    provider: str = ""
    """Whose price it is, where it is a price fact."""
    owner: str = ""
    """Whose GPUs they are, where not yours."""
    watts_per_gpu: float = 0.0
    """At full load, its share of the node and cooling included."""
    usd_per_kwh: float = 0.0
    co2_g_per_kwh: float | None = None


class PriceBook:
    """Rates of nodes."""

    def __init__(self, catalogue: Catalogue, spec: FleetSpec | None) -> None:
        self._catalogue = catalogue
        self._pools: dict[str, Pool] = {} if spec is None else {p.id: p for p in spec.pools}
        self._sites: dict[str, Site] = {} if spec is None else {s.id: s for s in spec.sites}
        self._rates: dict[tuple[str, str], Rate] = {}
        self.notes: dict[str, None] = {}
        """What was assumed, in order."""

    def of(self, node: Node) -> Rate:
        """Return the rate of a node."""
        key = (node.pool, node.accelerator or "")
        rate = self._rates.get(key)
        if rate is None:
            pool = self._pools.get(node.pool)
            rate = self._of_facts(node) if pool is None else self._of_pool(node, pool)
            self._rates[key] = rate
        return rate

    def rates(self) -> Iterable[Rate]:
        """Return every rate that was asked for."""
        return self._rates.values()

    def _of_pool(self, node: Node, pool: Pool) -> Rate:
        site, price = self._sites[pool.site], pool.price
        if price is None:
            self.notes[f"pool `{pool.id}` has no price and counts as free"] = None
        elif price.basis not in ("stated", "capex"):
            hourly = usd(price.usd_micros_per_hour)
            self.notes[
                f"pool `{pool.id}` has no price: assumed ${hourly:,.2f} per hour ({price.basis})"
            ] = None
        return Rate(
            pool=pool.id,
            accelerator=pool.accelerator or "",
            usd_micros_per_gpu_hour=FREE if price is None else price.usd_micros_per_hour,
            kind="owned" if price is None else price.kind,
            provider=price.basis.partition("/")[0] if price and "/" in price.basis else "",
            owner=site.owner,
            watts_per_gpu=pool.power_w_per_node / pool.gpus_per_node * site.pue,
            usd_per_kwh=site.usd_per_kwh,
            co2_g_per_kwh=site.co2_g_per_kwh,
        )

    def _of_facts(self, node: Node) -> Rate:
        part = self._catalogue.accelerators.find(node.accelerator or "")
        prices = (
            []
            if part is None
            else [one.usd_per_gpu_hour for one in self._catalogue.prices_of(part.name, "on-demand")]
        )
        name = part.name if part is not None else node.accelerator or "unknown"
        hourly = median(prices) if prices else 0.0
        self.notes[
            f"{name} has no price: assumed ${hourly:,.2f} per hour (median on-demand price)"
            if prices
            else f"{name} has no known price and counts as free; give a fleet file with `--fleet`"
        ] = None
        return Rate(
            pool=node.pool or name,
            accelerator=name,
            usd_micros_per_gpu_hour=usd_micros(hourly),
            kind="on-demand",
        )
