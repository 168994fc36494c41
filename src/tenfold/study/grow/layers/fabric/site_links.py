"""Site links: what jobs read and write on tiers of another site against the link bandwidth.

Jobs use the tier of their profile from wherever they run: at all sites with GPUs of their type, in
proportion to those. That is certain only if there is one such site. If the tier's own site has GPUs
as well, the range goes from all jobs there first to all jobs elsewhere first. Datasets that are
copied between sites move all their bytes as often as the grow file says.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace as with_fields
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.fleet.spec import SiteLink, Tier
from tenfold.model.growth.growth import Axis, Dataset, grown_by, grows_along
from tenfold.model.ids import SiteId
from tenfold.model.job.traffic import Traffic
from tenfold.model.units import SECOND, BytesPerSecond
from tenfold.physics.growth.breaking import ASSUMED, STATED, Evidence, Utilisation, weakest
from tenfold.physics.site_routes import quickest_route
from tenfold.report.figures import line_rate
from tenfold.study.grow.cost.prices import priced
from tenfold.study.grow.history import History, JobKind, history_of, running_growth
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.storage.capacity import dataset_growth
from tenfold.study.grow.relief import NEARLY, Relief, lead_weeks, round_up_to, with_relief
from tenfold.study.grow.state import State

GBPS = 125_000_000
"""Bytes per second of a Gbit/s."""


class RemoteTraffic(NamedTuple):
    """Traffic between one site and a tier of another, each way."""

    tier: Tier
    site: SiteId
    read_bytes_per_s: float
    write_bytes_per_s: float
    local_share: float
    """Share of the GPUs that are at the tier's own site."""


class LinkLoad(Struct, frozen=True, kw_only=True):
    """Traffic on one link today, each way, and how well it is known."""

    towards: tuple[float, float] = (0.0, 0.0)
    local_share: float = 0.0
    """Share of the GPUs whose jobs would not use the link."""
    copies: tuple[tuple[Dataset, int], ...] = ()
    """Datasets that are copied over it, each with its direction."""
    evidence: Evidence = STATED

    def bytes_per_s(self, running: float, axis: Axis, factor: float) -> float:
        """Return the busier direction, as links are full duplex, at a multiple of the jobs."""
        flows = [one * running for one in self.towards]
        for dataset, way in self.copies:
            flows[way] += dataset.staged_bytes_per_s * dataset_growth(dataset, axis, factor)
        return max(flows)


class SiteLinks(ComputedLayer):
    """Links between sites that jobs are known to use."""

    name = "site-links"
    title = "Site-to-site links"
    breaks = "jobs and copies move more over a link between sites than its `gbps`"
    cause_rank = 25
    grows_with = ("jobs", "nodes", "data")
    grows_by = "GPUs that read and jobs that write, until all GPUs are in use; copies of datasets"
    needs = "`--measured` with the layer `site-links`, or `tier` in `--profiles`"
    fixed_by = "a faster link"
    assumes = "jobs run at all sites in proportion to their GPUs"

    def reports_missing(self, axis: Axis) -> bool:
        """Return whether jobs grow: copies that the grow file does not name are none."""
        return grows_along(axis, "jobs")

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return one constraint for each link in known use; else the missing input."""
        links, history = state.spec.links, state.once(history_of)
        if not links:
            return []
        used = {} if history is None else _link_loads(state, remote_traffic(state, history))
        used = _with_copies(state, used)
        if not used:
            return [self.unknown("links")]
        load = 1.0 if history is None else history.load
        return [self._link(state, axis, links[at], use, load) for at, use in used.items()]

    def _link(
        self, state: State, axis: Axis, link: SiteLink, use: LinkLoad, load: float
    ) -> Constraint:
        resource = f"link {link.a} - {link.b}"
        capacity = float(link.bandwidth) * state.capacity_scale(self.key(resource))
        running = running_growth(axis, load)

        def demand(factor: float) -> float:
            return use.bytes_per_s(running(factor), axis, factor)

        def symptom(factor: float) -> str:
            return f"link {link.a} - {link.b}: {line_rate(demand(factor))} of {line_rate(capacity)}"

        def relieve(multiple: float) -> list[Relief]:
            return [_wider(state, link, multiple)]

        found = self.constraint(resource, demand, capacity, use.evidence, symptom, relieve)
        return with_fields(found, bounds=_bounds(found, axis, use, load, capacity))


def _bounds(
    found: Constraint, axis: Axis, use: LinkLoad, load: float, capacity: float
) -> tuple[Utilisation, Utilisation] | None:
    """Return utilisation if jobs run away from the tier first, and if they run next to it first."""
    if not use.local_share:
        return None
    running, wide, remote = running_growth(axis, load), 1 + found.spread, 1 - use.local_share

    def filled(factor: float) -> float:
        """Return the share of the GPUs that are in use."""
        return min(1.0, load * running(factor) / grown_by(axis, "nodes", factor))

    def highest(factor: float) -> float:
        share = min(1.0, remote / filled(factor)) / remote
        return use.bytes_per_s(running(factor) * share, axis, factor) / capacity * wide

    def lowest(factor: float) -> float:
        share = max(0.0, 1 - use.local_share / filled(factor)) / remote
        return use.bytes_per_s(running(factor) * share, axis, factor) / capacity / wide

    return highest, lowest


def _wider(state: State, link: SiteLink, multiple: float) -> Relief:
    required = _sold(link.bandwidth * multiple / NEARLY)

    def apply(now: State) -> State:
        links = tuple(
            replace(one, bandwidth=required) if (one.a, one.b) == (link.a, link.b) else one
            for one in now.spec.links
        )
        return with_relief(now, "link", replace(now.spec, links=links))

    old, new = line_rate(float(link.bandwidth)), line_rate(float(required))
    text = f"upgrade the link {link.a} - {link.b} to {new} (up from {old})"
    relief = Relief("link", text, None, lead_weeks(state, "link"), apply)
    return priced(state, relief, "link-gbps", (required - link.bandwidth) * 8 / 1e9)


def _sold(bytes_per_s: float) -> BytesPerSecond:
    """Return the next rate that can be ordered: whole Gbit/s, or tens of Mbit/s below that."""
    unit = GBPS if bytes_per_s > GBPS else GBPS // 100
    return BytesPerSecond(round_up_to(bytes_per_s, unit))


def remote_traffic(state: State, history: History) -> list[RemoteTraffic]:
    """Return the mean traffic of each site with the tiers of other sites.

    Jobs of one kind run at all sites with GPUs of their type, in proportion to those.
    """
    tiers = {str(tier.id): tier for tier in state.spec.tiers}
    found: dict[tuple[str, SiteId], RemoteTraffic] = {}
    for kind, running in history.running.items():
        profile = state.inputs.profiles.get(kind.profile)
        tier = None if profile is None else tiers.get(profile.traffic.tier)
        if profile is None or tier is None:
            continue
        reads, writes = _drawn(profile.traffic, kind, running)
        gpus = _gpus_by_site(state, kind)
        whole = sum(gpus.values())
        for site, held in gpus.items():
            if site == tier.site:
                continue
            old = found.get((tier.id, site), RemoteTraffic(tier, site, 0.0, 0.0, 0.0))
            found[tier.id, site] = RemoteTraffic(
                tier,
                site,
                old.read_bytes_per_s + reads * held / whole,
                old.write_bytes_per_s + writes * held / whole,
                max(old.local_share, gpus.get(tier.site, 0) / whole),
            )
    return list(found.values())


def _gpus_by_site(state: State, kind: JobKind) -> dict[SiteId, int]:
    """Return the GPUs that a kind of jobs may use, by site."""
    gpus: dict[SiteId, int] = {}
    for pool in state.spec.pools:
        if pool.gpus and (not kind.accelerators or pool.accelerator in kind.accelerators):
            gpus[pool.site] = gpus.get(pool.site, 0) + pool.gpus
    return gpus


def _drawn(traffic: Traffic, kind: JobKind, running: float) -> tuple[float, float]:
    """Return bytes per second that jobs of a kind read and write."""
    every_s = traffic.checkpoint_every_ms / SECOND
    saves = traffic.checkpoint_bytes / every_s if every_s else 0.0
    return traffic.read_bytes_per_s_per_gpu * running, saves * running / kind.gpus


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
                local_share=max(old.local_share, one.local_share),
                evidence=weakest(evidence, old.evidence),
            )
    return found


def _with_copies(state: State, jobs: dict[int, LinkLoad]) -> dict[int, LinkLoad]:
    """Return the load on each link with the datasets that are copied over it."""
    spec, found = state.spec, dict(jobs)
    sites = {str(tier.id): tier.site for tier in spec.tiers}
    for dataset in state.grow.datasets:
        at, end = SiteId(dataset.source_site), sites[dataset.tier]
        if not dataset.source_site or at == end:
            continue
        route = quickest_route(spec.links, at, end, float(dataset.bytes))
        for link in () if route is None else route.links:
            way = 0 if link.a == at else 1
            at = link.b if link.a == at else link.a
            place = spec.links.index(link)
            old = found.get(place, LinkLoad())
            found[place] = replace(old, copies=(*old.copies, (dataset, way)))
    return found
