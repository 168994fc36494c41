"""Site links: what jobs read and write on tiers of another site against the link bandwidth.

A tier at a site with GPUs is used by those. One at a site without GPUs is used remotely by all
sites with GPUs, in proportion to their GPUs; that is certain only if there is one such site.
Dataset copies are not counted, because their frequency is not known.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.fleet.spec import SiteLink, Tier
from tenfold.model.growth.growth import Axis, grown_by
from tenfold.model.ids import SiteId
from tenfold.model.units import SECOND, BytesPerSecond
from tenfold.physics.growth.breaking import ASSUMED, STATED, Evidence, weakest
from tenfold.physics.site_routes import quickest_route
from tenfold.report.figures import rate_bytes
from tenfold.study.grow.history import History, history_of, running_growth
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks, with_relief
from tenfold.study.grow.state import State


class RemoteTraffic(NamedTuple):
    """Traffic between one site and a tier of another, each way."""

    tier: Tier
    site: SiteId
    read_bytes_per_s: float
    write_bytes_per_s: float


class LinkLoad(Struct, frozen=True, kw_only=True):
    """Traffic on one link today, each way, and how well it is known."""

    towards: tuple[float, float] = (0.0, 0.0)
    evidence: Evidence = STATED

    @property
    def bytes_per_s(self) -> float:
        """The busier direction: links are full duplex."""
        return max(self.towards)


class SiteLinks(ComputedLayer):
    """Links between sites that jobs are known to use."""

    name = "site-links"
    title = "Site-to-site links"
    breaks = "jobs read and write more over a link between sites than its `gbps`"
    cause_rank = 25
    grows_with = ("data", "jobs", "nodes")
    needs = "`--measured` with the layer `site-links`, or `tier` in `--profiles`"
    fixed_by = "a faster link"
    assumes = "tiers at sites without GPUs are read by all GPUs equally"

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return one constraint for each link in known use; else the missing input."""
        links, history = state.spec.links, state.once(history_of)
        if not links:
            return []
        used = {} if history is None else _link_loads(state, _remote_traffic(state, history))
        if not used or history is None:
            return [self.unknown("links")]
        return [self._link(state, axis, links[at], use, history.load) for at, use in used.items()]

    def _link(
        self, state: State, axis: Axis, link: SiteLink, use: LinkLoad, load: float
    ) -> Constraint:
        resource = f"link {link.a} - {link.b}"
        capacity = float(link.bandwidth) * state.capacity_scale(self.key(resource))
        running = running_growth(axis, load)

        def demand(factor: float) -> float:
            return use.bytes_per_s * running(factor) * grown_by(axis, "data", factor)

        def symptom(factor: float) -> str:
            return (
                f"link {link.a} - {link.b}: {rate_bytes(demand(factor))} of {rate_bytes(capacity)}"
            )

        def relieve(multiple: float) -> list[Relief]:
            return [_wider(state, link, multiple)]

        return self.constraint(resource, demand, capacity, use.evidence, symptom, relieve)


def _wider(state: State, link: SiteLink, multiple: float) -> Relief:
    required = BytesPerSecond(round(link.bandwidth * multiple / NEARLY))

    def apply(now: State) -> State:
        links = tuple(
            replace(one, bandwidth=required) if (one.a, one.b) == (link.a, link.b) else one
            for one in now.spec.links
        )
        return with_relief(now, "link", replace(now.spec, links=links))

    old, new = rate_bytes(float(link.bandwidth)), rate_bytes(float(required))
    text = f"upgrade the link {link.a} - {link.b} to {new} (up from {old})"
    return Relief("link", text, None, lead_weeks(state, "link"), apply)


def _remote_traffic(state: State, history: History) -> list[RemoteTraffic]:
    """Return the mean traffic of sites with tiers at sites without GPUs."""
    gpus: dict[SiteId, int] = {}
    for pool in state.spec.pools:
        if pool.gpus:
            gpus[pool.site] = gpus.get(pool.site, 0) + pool.gpus
    drawn = _drawn(state, history)
    whole = sum(gpus.values())
    return [
        RemoteTraffic(tier, site, reads * held / whole, writes * held / whole)
        for tier in state.spec.tiers
        if tier.site not in gpus and tier.id in drawn
        for reads, writes in [drawn[tier.id]]
        for site, held in gpus.items()
    ]


def _drawn(state: State, history: History) -> dict[str, tuple[float, float]]:
    """Return bytes per second read from each tier and written to it."""
    drawn: dict[str, tuple[float, float]] = {}
    for kind, running in history.running.items():
        profile = state.inputs.profiles.get(kind.profile)
        if profile is None or not profile.traffic.tier:
            continue
        traffic = profile.traffic
        every_s = traffic.checkpoint_every_ms / SECOND
        saves = traffic.checkpoint_bytes / every_s if every_s else 0.0
        reads, writes = drawn.get(traffic.tier, (0.0, 0.0))
        drawn[traffic.tier] = (
            reads + traffic.read_bytes_per_s_per_gpu * running,
            writes + saves * running / kind.gpus,
        )
    return drawn


def _link_loads(state: State, remote: Sequence[RemoteTraffic]) -> dict[int, LinkLoad]:
    """Return the load on each link, by its position in the file."""
    spec, found = state.spec, dict[int, LinkLoad]()
    sites = {one.site for one in remote}
    evidence = ASSUMED if len(sites) > 1 or state.inputs.mix else STATED
    for one in remote:
        route = quickest_route(spec.links, one.tier.site, one.site, one.read_bytes_per_s)
        at = one.tier.site
        for link in () if route is None else route.links:
            forth = link.a == at
            at = link.b if forth else link.a
            there, back = one.read_bytes_per_s, one.write_bytes_per_s
            place = spec.links.index(link)
            old = found.get(place, LinkLoad())
            flows = (there, back) if forth else (back, there)
            found[place] = LinkLoad(
                towards=(old.towards[0] + flows[0], old.towards[1] + flows[1]),
                evidence=weakest(evidence, old.evidence),
            )
    return found
