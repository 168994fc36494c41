"""What makes a small world a governed one: places, tags, power, teams, terms and windows.

It is drawn after everything else, so that the world of a seed is the same without it.
"""

from random import Random
from typing import get_args

from msgspec.structs import replace

from tenfold.model.fleet.constraints import LEVELS, PlacementConstraints, TopologyMode
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import WHOLE, Job, Shape
from tenfold.model.job.terms import Hours, JobKind, Terms, Window
from tenfold.model.policy.governance import ANY, USD, Amounts, FairShare, GovernanceRules, TeamRules
from tenfold.model.units import HOUR, MINUTE, Millis, UsdMicros

TAGS = ("eu", "production", "certified")
KINDS: tuple[JobKind, ...] = ("batch", "batch", "training", "experiment", "interactive", "service")
WAYS: tuple[TopologyMode, ...] = ("required", "required", *get_args(TopologyMode))
SHARES: tuple[FairShare, ...] = get_args(FairShare)
SAVES_MS = (None, None, 1, 10 * MINUTE, HOUR)


def placed(dice: Random, nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Return nodes that stand in leaves and pods, bear tags, and draw power from their racks."""
    has_power, has_tags = dice.random() < 0.4, dice.random() < 0.6
    scaleup = dice.choice((1, 1, 2, 4))
    found: list[Node] = []
    for number, node in enumerate(nodes):
        tags = tuple(tag for tag in TAGS if has_tags and dice.random() < 0.3)
        found.append(
            replace(
                node,
                leaf=f"l{number // 3}" if dice.random() < 0.9 else "",
                pod=f"p{number // 6}",
                scaleup=f"u{number // scaleup}" if scaleup > 1 else "",
                tags=tags,
                watts_idle=500 if has_power else 0,
                watts_per_gpu=700 if has_power else 0,
            )
        )
    if not has_power:
        return tuple(found)
    # Every rack feeds one of its nodes in full, and not always all of them.
    share = dice.choice((0.5, 0.75, 1.0))
    limits: dict[tuple[str, str], int] = {}
    for rack in dict.fromkeys((node.site, node.rack) for node in found):
        gpus = [node.gpus for node in found if (node.site, node.rack) == rack]
        limits[rack] = 500 * len(gpus) + 700 * max(*gpus, int(sum(gpus) * share))
    return tuple(replace(node, rack_watts=limits[node.site, node.rack]) for node in found)


def on_terms(dice: Random, jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Return jobs of which some have terms, places to stand, arrays, and others before them."""
    wheres = {job.shape.key: _where(dice) for job in jobs}
    made: list[Job] = []
    array, most, left = "", 0, 0
    for job in jobs:
        if not left and dice.random() < 0.08:
            array, most, left = f"array-{job.seq}", dice.choice((0, 1, 2)), dice.randint(2, 5)
        terms = _terms(dice, job, made)
        if left:
            terms = replace(terms or Terms(), array=array, array_most=most)
            left -= 1
        where = wheres[job.shape.key]
        if terms is not None and terms.kind == "experiment":
            avoids = (*where.avoids, "production") if where else ("production",)
            where = replace(where or PlacementConstraints(), avoids=tuple(dict.fromkeys(avoids)))
        made.append(replace(job, shape=_standing(job.shape, where), terms=terms))
    return tuple(made)


def governance(dice: Random, nodes: tuple[Node, ...], jobs: tuple[Job, ...]) -> GovernanceRules:
    """Return rules for the teams that submit, with quotas, windows and limits of all sorts."""
    is_bound = dice.random() < 0.7
    govern = GovernanceRules(
        teams=_teams(dice, nodes, jobs) if is_bound else (),
        fair_share=dice.choice(SHARES),
        half_life_ms=Millis(dice.choice((10 * MINUTE, 24 * HOUR))),
        reservations=dice.choice((0, 1, 4)),
        reserve_after_ms=Millis(dice.choice((0, 0, 10 * MINUTE))),
        backfill=dice.random() < 0.8,
        preempts=dice.random() < 0.8,
        min_run_ms=Millis(dice.choice((0, MINUTE, 5 * MINUTE))),
        delay_ms=Millis(dice.choice((0, 0, MINUTE))),
        stops_per_hour=dice.choice((0, 0, 2)),
        stops_per_job=dice.choice((0, 0, 1)),
        restart_cost_ms=Millis(dice.choice((0, 5 * MINUTE))),
        defragment=dice.random() < 0.3,
        idle_ms=dice.choice((None, Millis(0), Millis(10 * MINUTE))),
        off_peak=(Hours(Millis(22 * HOUR), Millis(30 * HOUR)),) if dice.random() < 0.5 else (),
        windows=_windows(dice, nodes, jobs),
        timezone_ms=Millis(dice.choice((0, 2 * HOUR))),
    )
    return _by_day(dice, _priced(dice, govern))


def _where(dice: Random) -> PlacementConstraints | None:
    if dice.random() < 0.6:
        return None
    where = PlacementConstraints(
        within=dice.choice(("", *LEVELS)),
        how=dice.choice(WAYS),
        needs=(dice.choice(TAGS),) if dice.random() < 0.2 else (),
        avoids=(dice.choice(TAGS),) if dice.random() < 0.2 else (),
    )
    return where if where.key else None


def _standing(shape: Shape, where: PlacementConstraints | None) -> Shape:
    if where is None or not (shape.gpus or shape.milli):
        return shape
    return replace(shape, key=f"{shape.key} {where.key}", where=where)


def _terms(dice: Random, job: Job, earlier: list[Job]) -> Terms | None:
    if dice.random() < 0.4:
        return None
    least, most = _elastic(dice, job.shape)
    kind = dice.choice(KINDS)
    length_ms = job.duration_ms or 0
    after: tuple[JobId, ...] = ()
    if earlier and dice.random() < 0.15:
        after = tuple(dict.fromkeys(dice.choice(earlier).id for _ in range(dice.randint(1, 2))))
    return Terms(
        kind=kind,
        preemptible=dice.random() < 0.85,
        checkpoint_every_ms=dice.choice([one and Millis(one) for one in SAVES_MS]),
        least_gpus=least,
        most_gpus=most,
        after=after,
        off_peak=dice.random() < 0.1,
        busy_ms=Millis(dice.randint(0, length_ms)) if kind == "interactive" else None,
    )


def _elastic(dice: Random, shape: Shape) -> tuple[int, int]:
    """Return the fewest and the most GPUs of an elastic job, whole members; zeros for others."""
    each = shape.gpus_per_node or 1
    if not shape.gpus or shape.cpus_milli or shape.memory_mib or shape.gpus % each:
        return 0, 0
    if dice.random() < 0.6:
        return 0, 0
    parts = shape.gpus // each
    return each * dice.randint(1, parts), each * dice.randint(parts, 2 * parts)


def _teams(dice: Random, nodes: tuple[Node, ...], jobs: tuple[Job, ...]) -> tuple[TeamRules, ...]:
    """Return a tree over the teams that submit; quotas add up to the fleet or less.

    Limits leave to each team the room for its largest gang: what may never run is no test.
    """
    names = [team for team in dict.fromkeys(job.team for job in jobs) if team]
    gpus = _by_type(nodes)
    parts = max(1, len(names) + dice.choice((0, 1)))
    # A gang may take whole nodes, and so a little more than it asks for.
    whole = max(node.gpus for node in nodes)
    largest = (max((job.shape.gpus for job in jobs), default=0) + whole) * WHOLE
    may_keep = largest <= gpus[ANY] // parts
    parent = TeamId("all") if names and dice.random() < 0.5 else None
    teams = [
        TeamRules(
            id=name,
            parent=parent,
            weight=dice.choice((0.5, 1.0, 1.0, 3.0)),
            quota={kind: milli // parts // WHOLE * WHOLE for kind, milli in gpus.items()},
            borrow=_limit(dice, (max(0, largest - gpus[ANY] // parts), largest)),
            lend=_limit(dice, (0, gpus[ANY] // 2)) if may_keep else {},
            min_run_ms=Millis(MINUTE) if dice.random() < 0.2 else None,
        )
        for name in names
    ]
    if parent is not None:
        quota = {
            kind: sum(team.quota.get(kind, 0) for team in teams)
            for kind in dict.fromkeys(kind for team in teams for kind in team.quota)
        }
        teams.insert(0, TeamRules(id=parent, quota=quota))
    return tuple(teams)


def _priced(dice: Random, govern: GovernanceRules) -> GovernanceRules:
    """Return rules that now and then also limit what teams spend an hour."""
    if dice.random() < 0.85:
        return govern
    kinds = dict.fromkeys(kind for team in govern.teams for kind in team.quota if kind != ANY)
    prices = {kind: UsdMicros(dice.choice((1, 2, 5)) * 1_000_000) for kind in kinds}
    teams: list[TeamRules] = []
    for team in govern.teams:
        worth = sum(team.quota.get(kind, 0) * price // WHOLE for kind, price in prices.items())
        teams.append(replace(team, quota={**team.quota, USD: worth}))
    return replace(govern, teams=tuple(teams), usd_micros_per_gpu_hour=prices)


def _by_day(dice: Random, govern: GovernanceRules) -> GovernanceRules:
    """Return rules that now and then give a team that may borrow another quota by night."""
    free = [place for place, team in enumerate(govern.teams) if not team.borrow]
    if not free or dice.random() < 0.85:
        return govern
    place = dice.choice(free)
    team = govern.teams[place]
    night = Hours(Millis(dice.choice((1, 20)) * HOUR), Millis(dice.choice((21, 30)) * HOUR))
    quota = {kind: amount // 2 // WHOLE * WHOLE for kind, amount in team.quota.items()}
    mine = replace(team, hours=((night, quota),))
    return replace(govern, teams=(*govern.teams[:place], mine, *govern.teams[place + 1 :]))


def _by_type(nodes: tuple[Node, ...]) -> Amounts:
    found: Amounts = {ANY: sum(node.gpus for node in nodes) * WHOLE}
    for node in nodes:
        if node.accelerator:
            found[node.accelerator] = found.get(node.accelerator, 0) + node.gpus * WHOLE
    return found


def _limit(dice: Random, amounts: tuple[int, ...]) -> Amounts:
    """Return one of the amounts for all types together; mostly no limit."""
    return {ANY: dice.choice(amounts)} if dice.random() < 0.3 else {}


def _windows(dice: Random, nodes: tuple[Node, ...], jobs: tuple[Job, ...]) -> tuple[Window, ...]:
    """Return up to two windows on some nodes: maintenance, or kept for a team."""
    teams = ["", *(team for team in dict.fromkeys(job.team for job in jobs) if team)]
    windows: list[Window] = []
    for number in range(dice.choice((0, 0, 1, 2))):
        start_ms = dice.randrange(12) * HOUR
        windows.append(
            Window(
                id=f"w{number}",
                start_ms=Millis(start_ms),
                end_ms=Millis(start_ms + dice.choice((MINUTE, HOUR, 3 * HOUR))),
                every_ms=Millis(24 * HOUR) if dice.random() < 0.3 else None,
                nodes=(dice.choice([name for node in nodes for name in (node.id, node.rack)]),),
                team=dice.choice(teams),
            )
        )
    return tuple(windows)


def calm(jobs: tuple[Job, ...]) -> tuple[Job, ...]:
    """Return jobs that say how long they run at most, keep to it, and never change their size."""
    return tuple(
        replace(
            job,
            limit_ms=Millis(max(1, job.duration_ms or 0)),
            terms=job.terms and replace(job.terms, least_gpus=0, most_gpus=0),
        )
        for job in jobs
    )
