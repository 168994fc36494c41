"""Routes between sites: which links a transfer uses, and with what it shares them.

Links are full duplex. A site may be reached through others; the route used is the fastest
for the payload, counting latency and the slowest link.
"""

from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush

from msgspec import Struct

from tenfold.model.fleet.spec import SiteLink
from tenfold.model.ids import SiteId

MICRO = 1e-6


class Route(Struct, frozen=True, kw_only=True):
    """The links from one site to another, in order."""

    links: tuple[SiteLink, ...]

    @property
    def bytes_per_s(self) -> float:
        """The narrowest link, had the transfer all of them to itself."""
        return float(min(link.bandwidth for link in self.links))

    @property
    def latency_s(self) -> float:
        """All delays added up, one way."""
        return sum(link.latency_us for link in self.links) * MICRO

    @property
    def usd_micros_per_gb(self) -> int:
        """What a gigabyte costs over all links."""
        return sum(link.egress_usd_micros_per_gb for link in self.links)


def quickest_route(
    links: Sequence[SiteLink], start: SiteId, end: SiteId, payload_bytes: float
) -> Route | None:
    """Return the fastest route for a payload, or None if there is none."""
    assert start != end, "a site needs no route to itself"
    routes: list[Route] = []
    # The best way has some narrowest link: try each width, with the least delay for it.
    for width in sorted({link.bandwidth: None for link in links}):
        wide = [link for link in links if link.bandwidth >= width]
        route = _least_delay(wide, start, end)
        if route is not None:
            routes.append(route)
    return min(
        routes,
        key=lambda route: route.latency_s + payload_bytes / route.bytes_per_s,
        default=None,
    )


def shared_rates(routes: Mapping[SiteId, Route]) -> dict[SiteId, float]:
    """Return the rate of each route while all are in use: links are shared evenly."""
    users: dict[tuple[SiteId, SiteId], int] = {}
    for route in routes.values():
        for link in route.links:
            users[(link.a, link.b)] = users.get((link.a, link.b), 0) + 1
    return {
        site: min(link.bandwidth / users[(link.a, link.b)] for link in route.links)
        for site, route in routes.items()
    }


def _least_delay(links: Iterable[SiteLink], start: SiteId, end: SiteId) -> Route | None:
    near: dict[SiteId, list[tuple[SiteId, SiteLink]]] = {}
    for link in links:
        near.setdefault(link.a, []).append((link.b, link))
        near.setdefault(link.b, []).append((link.a, link))
    # Ties go to fewer links, then to the order of names: the same file, the same way.
    queue: list[tuple[float, int, tuple[str, ...], tuple[SiteLink, ...]]] = [(0.0, 0, (start,), ())]
    seen: dict[str, None] = {}
    while queue:
        delay, count, path, taken = heappop(queue)
        at = path[-1]
        if at == end:
            return Route(links=taken)
        if at in seen:
            continue
        seen[at] = None
        for other, link in near.get(SiteId(at), []):
            if other not in seen:
                step = (delay + link.latency_us, count + 1, (*path, other), (*taken, link))
                heappush(queue, step)
    return None
