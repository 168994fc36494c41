"""Every feature of a policy, each as a scenario that both worlds run.

A scenario is nodes, a policy and jobs with how long they last. `test_every_feature.py` runs them
and fails where a field of a policy, a team, a window or a job's terms changes none of them.
"""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.fault import Fault
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, SiteId, TeamId
from tenfold.model.job.job import shape_of
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.job.submission import Submission
from tenfold.model.job.terms import Hours, Terms, Window
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.policy.policy import Placement, Policy, PolicyName
from tenfold.model.policy.site_costs import DataPlace, SiteCosts, SiteRoute
from tenfold.model.policy.slurm import Backfill, SlurmPolicy
from tenfold.model.units import DAY, HOUR, MINUTE, Millis, UsdMicros, usd_micros
from tenfold.testing.builders import in_domains, nodes

GPU = 1_000
"""Quotas are in thousandths of a GPU."""


class Task(Struct, frozen=True, kw_only=True):
    """One submission: when, what, and how long each of its jobs lasts."""

    at_min: float
    lasts_min: float
    submission: Submission
    fails: bool = False


class Scenario(Struct, frozen=True, kw_only=True):
    """What both worlds run."""

    policy: Policy
    nodes: Sequence[Node]
    tasks: tuple[Task, ...]
    faults: tuple[Fault, ...] = ()
    until_ms: Millis = Millis(3 * DAY)


def task(
    at_min: float,
    lasts_min: float,
    gpus: float,
    *,
    team: str = "red",
    name: str = "job",
    per_node: int | None = None,
    where: PlacementConstraints | None = None,
    terms: Terms | None = None,
    limit_min: float | None = None,
    priority: int = 0,
    array: int = 0,
    fails: bool = False,
) -> Task:
    """Return one submission in minutes."""
    limit = None if limit_min is None else Millis(round(limit_min * MINUTE))
    submission = Submission(
        team=TeamId(team),
        shape=shape_of(gpus, gpus_per_node=per_node, where=where),
        run_spec=RunSpec(name=name, command=("true",)),
        priority=priority,
        limit_ms=limit,
        terms=terms,
        array=array,
    )
    return Task(at_min=at_min, lasts_min=lasts_min, submission=submission, fails=fails)


def governed(*teams: TeamRules, **rules: object) -> Policy:
    """Return a governed policy."""
    return Policy(name="governed", govern=replace(GovernanceRules(teams=teams), **rules))


def team(name: str, gpus: int = 0, **terms: object) -> TeamRules:
    """Return a team with a quota in GPUs."""
    quota = {"any": gpus * GPU} if gpus else {}
    return replace(TeamRules(id=TeamId(name), quota=quota), **terms)


def minutes(count: float) -> Millis:
    return Millis(round(count * MINUTE))


def tagged(count: int, *tags: str, name: str = "n") -> list[Node]:
    return [replace(one, tags=tags) for one in nodes(count, name=name)]


def powered(count: int) -> list[Node]:
    """Nodes of one rack that can power two of three of them under load."""
    made = in_domains(nodes(count), {"rack": count})
    return [replace(one, watts_idle=100, watts_per_gpu=100, rack_watts=2_000) for one in made]


def crowded(name: PolicyName, placement: Placement = "tenfold", **settings: object) -> Scenario:
    """Many jobs of three teams on four nodes, for a policy without rules."""
    tasks = tuple(
        task(
            7 * number + 0.13 * (number % 5),
            (13, 47, 95, 160, 31, 240)[number % 6],
            (1, 8, 2, 16, 4, 0.5, 3, 8)[number % 8],
            team=("red", "blue", "green")[number % 3],
            limit_min=(15, 60, 100, 200, 40, 300)[number % 6],
            priority=(0, 0, 3)[number % 3],
        )
        for number in range(60)
    )
    policy = replace(Policy(name=name, placement=placement), **settings)
    return Scenario(policy=policy, nodes=nodes(4), tasks=tasks)


EU, PROD = PlacementConstraints(needs=("EU",)), PlacementConstraints(avoids=("production",))
ONE_RACK = PlacementConstraints(within="rack", how="required")
APART = PlacementConstraints(within="rack", how="spread")
BORROWERS = tuple(task(number, 300, 8, team="blue") for number in range(4))
WINDOW = Window(
    id="w", start_ms=minutes(60), end_ms=minutes(120), every_ms=Millis(6 * HOUR), nodes=("n0",)
)
TEAM_WINDOW = Window(id="t", start_ms=minutes(200), end_ms=minutes(260), nodes=("n1",), team="blue")
DAY_HOURS = ((Hours(Millis(0), Millis(2 * HOUR)), {"any": 16 * GPU}),)

SITE_COSTS = SiteCosts(
    usd_micros_per_gpu_hour={
        "north": {"": usd_micros(2.5)},
        "south": {"": usd_micros(2.0)},
    },
    routes=(SiteRoute("north", "south", 1e9, usd_micros(0.02)),),
    data={"corpus": DataPlace(3_600_000_000_000, ("north",))},
)
"""The south is cheaper, and the data is in the north."""

FEATURES: dict[str, Scenario] = {
    "sites by cost": Scenario(
        policy=Policy(name="fifo", sites=SITE_COSTS),
        nodes=[
            *(replace(one, site=SiteId("north")) for one in nodes(1, name="a")),
            *(replace(one, site=SiteId("south")) for one in nodes(2, name="b")),
        ],
        tasks=(
            task(0, 60, 8, limit_min=120),
            task(1, 60, 8, limit_min=120, terms=Terms(data=("corpus",))),
            task(2, 60, 8, limit_min=120, terms=Terms(data=("corpus",))),
        ),
    ),
    "residency": Scenario(
        policy=governed(
            team("group", residency=("EU",)),
            team("red", parent=TeamId("group"), residency=("certified",)),
            team("blue"),
        ),
        nodes=[
            *tagged(1, "US", "certified", name="a"),
            *tagged(1, "EU", name="b"),
            *tagged(1, "EU", "certified", name="c"),
        ],
        tasks=(
            task(0, 60, 8),
            task(1, 30, 4),
            task(2, 30, 8, team="blue"),
            task(3, 30, 8, team="group"),
            task(4, 20, 24),
        ),
    ),
    "residency of elastic jobs": Scenario(
        policy=governed(team("red", residency=("EU",)), team("blue")),
        nodes=[*tagged(3, "US", name="a"), *tagged(2, "EU", name="b")],
        tasks=(
            task(3, 50, 8, per_node=8, terms=Terms(least_gpus=8, most_gpus=32)),
            task(4, 300, 8, team="blue"),
        ),
    ),
    "tags": Scenario(
        policy=governed(team("red")),
        nodes=[*tagged(2, "production", name="a"), *tagged(1, "EU", name="b")],
        tasks=(
            task(0, 60, 8, where=EU),
            task(1, 30, 8, where=EU),
            task(2, 30, 8, where=PROD),
            task(3, 30, 8),
        ),
    ),
    "tags under fifo": Scenario(
        policy=Policy(name="fifo"),
        nodes=[*tagged(2, "production", name="a"), *tagged(1, "EU", name="b")],
        tasks=(task(0, 60, 8, where=EU), task(1, 30, 8, where=PROD), task(2, 30, 8)),
    ),
    "topology": Scenario(
        policy=governed(team("red")),
        nodes=in_domains(nodes(6), {"rack": 2}),
        tasks=(
            task(0, 60, 24, where=APART),
            task(2, 40, 16, where=ONE_RACK),
            task(3, 40, 16, where=ONE_RACK),
            task(4, 20, 8),
        ),
    ),
    "maintenance windows": Scenario(
        policy=governed(team("red"), windows=(WINDOW,)),
        nodes=nodes(2),
        tasks=(
            task(0, 50, 8, limit_min=55),
            task(5, 100, 8, limit_min=110),
            task(56, 30, 8, limit_min=40),
            task(57, 30, 16, limit_min=40),
            task(300, 300, 8),
            task(301, 300, 8, terms=Terms(preemptible=False)),
        ),
    ),
    "windows of a team": Scenario(
        policy=governed(team("red"), team("blue"), windows=(TEAM_WINDOW,)),
        nodes=nodes(2),
        tasks=(
            task(150, 90, 8, limit_min=100),
            task(151, 90, 8),
            task(205, 20, 8, team="blue"),
            task(206, 20, 8, team="blue"),
        ),
    ),
    "elastic jobs grow": Scenario(
        policy=governed(team("red")),
        nodes=nodes(3),
        tasks=(
            task(3, 300, 2, terms=Terms(least_gpus=1, most_gpus=6)),
            task(4, 200, 8, per_node=8, terms=Terms(least_gpus=8, most_gpus=16)),
            task(95.3, 30, 8),
        ),
    ),
    "elastic jobs shrink and start small": Scenario(
        policy=governed(team("red", 8), team("blue", 8)),
        nodes=nodes(2),
        tasks=(
            task(0, 400, 16, per_node=8, terms=Terms(least_gpus=8, most_gpus=16)),
            task(55.5, 100, 8, team="blue"),
            task(60, 100, 8, terms=Terms(least_gpus=2, most_gpus=8)),
            task(300, 30, 4, team="blue"),
        ),
    ),
    "an elastic job that grew is preempted": Scenario(
        policy=governed(team("red"), team("blue", 16), min_run_ms=minutes(1)),
        nodes=nodes(2),
        tasks=(
            task(3, 200, 4, terms=Terms(least_gpus=4, most_gpus=8)),
            task(4, 95, 8),
            task(45.5, 100, 16, team="blue"),
        ),
    ),
    "jobs that re-ranking does not stop": Scenario(
        policy=Policy(name="tenfold"),
        nodes=nodes(1),
        tasks=(task(0, 300, 8, terms=Terms(keep_on_rerank=True)), task(3, 5, 8)),
    ),
    "idle sessions": Scenario(
        policy=governed(team("red"), idle_ms=minutes(45)),
        nodes=nodes(2),
        tasks=(
            task(0, 500, 8, terms=Terms(kind="interactive", busy_ms=minutes(20))),
            task(
                1,
                500,
                8,
                terms=Terms(kind="interactive", busy_ms=minutes(30), idle_ms=minutes(10)),
            ),
            task(2, 60, 8),
            task(3, 60, 8),
        ),
    ),
    "quotas": Scenario(
        policy=governed(
            team("red", 8, borrow={"any": 8 * GPU}),
            team("blue", 16, lend={"any": 8 * GPU}),
            team("green", 8, weight=3.0),
        ),
        nodes=nodes(4),
        tasks=(
            *(task(number, 70, 8) for number in range(4)),
            task(10, 40, 8, team="green"),
            task(11, 40, 8, team="green"),
            *(task(12 + number, 40, 8, team="blue") for number in range(3)),
        ),
    ),
    "fair share": Scenario(
        policy=governed(team("red"), team("blue", weight=3.0), preempts=False),
        nodes=nodes(4),
        tasks=tuple(task(number, 55, 8, team=("red", "blue")[number % 2]) for number in range(16)),
    ),
    "quotas by the hour": Scenario(
        policy=governed(
            team("red", 8, borrow={"any": 0}, hours=DAY_HOURS), timezone_ms=Millis(-HOUR)
        ),
        nodes=nodes(2),
        tasks=(task(0, 30, 8), task(1, 150, 8), task(100, 30, 8), task(190, 60, 16)),
    ),
    "quotas in dollars": Scenario(
        policy=governed(
            replace(team("red"), quota={"usd": 10_000_000}, borrow={"usd": 0}),
            usd_micros_per_gpu_hour={"H100": UsdMicros(1_000_000)},
        ),
        nodes=nodes(2, accelerator="H100"),
        tasks=(task(0, 60, 8), task(1, 60, 8), task(2, 20, 2)),
    ),
    "reserved starts": Scenario(
        policy=governed(team("red"), reserve_after_ms=minutes(10), reservations=1, preempts=False),
        nodes=nodes(3),
        tasks=(
            task(0, 100, 8, limit_min=120),
            task(1, 50, 8, limit_min=60),
            task(2, 60, 24, limit_min=90),
            task(3, 60, 16, limit_min=90),
            *(task(4 + 3 * number, 30, 8, limit_min=35) for number in range(8)),
            task(30, 30, 8, limit_min=300),
        ),
    ),
    "reserved starts without backfill": Scenario(
        policy=governed(team("red"), reserve_after_ms=minutes(10), backfill=False, preempts=False),
        nodes=nodes(3),
        tasks=(
            task(0, 100, 8, limit_min=120),
            task(1, 50, 8, limit_min=60),
            task(2, 60, 24, limit_min=90),
            *(task(4 + 3 * number, 30, 8, limit_min=35) for number in range(8)),
        ),
    ),
    "rack power": Scenario(
        policy=governed(team("red")),
        nodes=powered(3),
        tasks=tuple(task(number, 40, 8) for number in range(4)),
    ),
    "dependencies": Scenario(
        policy=governed(team("red")),
        nodes=nodes(1),
        tasks=(
            task(0, 30, 4, name="first"),
            task(1, 10, 2, name="fails", fails=True),
            task(2, 10, 2, terms=Terms(after=(JobId("first-1"),))),
            task(3, 10, 2, terms=Terms(after=(JobId("fails-2"),))),
            task(4, 10, 2, terms=Terms(after=(JobId("job-3"), JobId("first-1")))),
        ),
    ),
    "dependencies under fifo": Scenario(
        policy=Policy(name="fifo"),
        nodes=nodes(1),
        tasks=(
            task(0, 30, 4, name="first"),
            task(1, 10, 2, name="fails", fails=True),
            task(2, 10, 2, terms=Terms(after=(JobId("first-1"),))),
            task(3, 10, 2, terms=Terms(after=(JobId("fails-2"),))),
        ),
    ),
    "jobs that wait for nodes": Scenario(
        policy=governed(team("red")),
        nodes=nodes(2),
        tasks=(
            task(0, 30, 24, terms=Terms(allow_pending=True)),
            task(1, 30, 24),
            task(2, 30, 16),
            task(3, 30, 8),
        ),
        until_ms=Millis(6 * HOUR),
    ),
    "arrays": Scenario(
        policy=governed(team("red")),
        nodes=nodes(1),
        tasks=(
            task(0, 30, 2, array=5, name="sweep", terms=Terms(array_most=2)),
            task(1, 30, 2),
        ),
    ),
    "limits of arrays under every policy": Scenario(
        policy=Policy(name="fifo"),
        nodes=nodes(1),
        tasks=(
            task(0, 30, 2, array=5, name="s", terms=Terms(array_most=2, array_most_always=True)),
            task(1, 30, 2),
        ),
    ),
    "jobs after others that may fail": Scenario(
        policy=governed(team("red")),
        nodes=nodes(1),
        tasks=(
            task(0, 30, 2, name="first"),
            task(1, 10, 2, terms=Terms(after_any=(JobId("first-1"),))),
        ),
    ),
    "off-peak hours": Scenario(
        policy=governed(
            team("red"),
            off_peak=(Hours(Millis(2 * HOUR), Millis(4 * HOUR)),),
            timezone_ms=Millis(30 * MINUTE),
        ),
        nodes=nodes(1),
        tasks=(
            task(0, 60, 4, terms=Terms(off_peak=True)),
            task(1, 60, 4),
            task(100, 80, 4, terms=Terms(off_peak=True)),
            task(205, 10, 8, terms=Terms(off_peak=True)),
        ),
    ),
    "time limits": Scenario(
        policy=governed(team("red", 16), team("blue")),
        nodes=nodes(2),
        tasks=(
            task(0, 50, 8, limit_min=30, name="long"),
            task(1, 30, 4, limit_min=30),
            task(2, 40, 4, limit_min=60),
            task(3, 10, 8, terms=Terms(after=(JobId("long-1"),))),
            # Each attempt has the whole limit: what is preempted after an hour has it once more.
            task(70, 140, 16, team="blue", limit_min=90),
            task(130, 20, 8),
            task(300, 80, 8, limit_min=30, terms=Terms(least_gpus=4, most_gpus=16)),
            task(310, 20, 8),
        ),
    ),
    "preemption": Scenario(
        policy=governed(
            team("red", 32),
            team("blue"),
            delay_ms=minutes(3),
            min_run_ms=minutes(20),
            stops_per_hour=2,
        ),
        nodes=nodes(4),
        tasks=(*BORROWERS, *(task(10 + number, 50, 8) for number in range(3)), task(95, 20, 8)),
    ),
    "preemption of jobs that save": Scenario(
        policy=governed(
            team("red", 32),
            team("blue", min_run_ms=minutes(30)),
            stops_per_job=1,
        ),
        nodes=nodes(4),
        tasks=(
            task(0, 300, 8, team="blue", terms=Terms(checkpoint_every_ms=minutes(60))),
            task(1, 300, 8, team="blue", terms=Terms(preemptible=False)),
            task(2, 300, 16, team="blue"),
            *(task(10.5 + 40 * number, 35, 8) for number in range(4)),
            task(300.5, 35, 16),
        ),
    ),
    "cost of a preemption": Scenario(
        policy=governed(team("red", 24), team("blue"), restart_cost_ms=minutes(60)),
        nodes=nodes(3),
        tasks=(
            task(0, 300, 8, team="blue", terms=Terms(checkpoint_every_ms=minutes(60))),
            task(1, 300, 16, team="blue"),
            task(40.5, 35, 8),
        ),
    ),
    "priorities": Scenario(
        policy=governed(team("red")),
        nodes=nodes(1),
        tasks=(task(0, 60, 8), task(1, 30, 8), task(20, 30, 8, priority=5)),
    ),
    "no preemption": Scenario(
        policy=governed(team("red", 32), team("blue"), preempts=False),
        nodes=nodes(4),
        tasks=(*BORROWERS, *(task(10 + number, 50, 8) for number in range(2))),
    ),
    "decayed fair share": Scenario(
        policy=governed(
            team("red"),
            team("blue"),
            fair_share="decayed",
            half_life_ms=minutes(40),
            reservations=0,
        ),
        nodes=nodes(1),
        tasks=(
            task(0, 100, 8),
            task(101, 60, 8, team="green"),
            task(110, 30, 8),
            task(111, 30, 8, team="blue"),
            task(600, 30, 8, team="blue"),
            task(640, 30, 8, team="green"),
            task(641, 30, 8),
            task(642, 30, 8, team="blue"),
        ),
    ),
    "defragmentation": Scenario(
        policy=governed(
            team("red"), defragment=True, reserve_after_ms=minutes(5), min_run_ms=minutes(1)
        ),
        nodes=nodes(3),
        tasks=(
            task(0, 20, 4),
            task(1, 300, 4),
            task(2, 20, 4),
            task(3, 300, 4),
            task(4, 20, 8),
            task(30, 60, 16),
        ),
    ),
    "lost nodes": Scenario(
        policy=governed(team("red")),
        nodes=nodes(3),
        tasks=(
            task(0, 200, 16),
            task(1, 150, 8, terms=Terms(checkpoint_every_ms=minutes(15))),
            task(2, 50, 8),
        ),
        faults=(
            Fault(minutes(70), nodes(3)[0].id, minutes(95)),
            Fault(minutes(80), nodes(3)[2].id, minutes(130)),
        ),
    ),
    "tenfold": crowded("tenfold"),
    "tenfold, keen to preempt": crowded("tenfold", keep_factor=0.95),
    "tenfold, best fit": crowded("tenfold", "best-fit"),
    "tenfold, fgd": crowded("tenfold", "fgd"),
    "fifo": crowded("fifo"),
    "fair": crowded("fair"),
    "edf": crowded("edf"),
    "las": crowded("las", las_limits_gpu_s=(900, 3_600)),
    "governed": crowded("governed"),
    "slurm": crowded("slurm", slurm=SlurmPolicy(backfill=Backfill(interval_ms=Millis(2 * MINUTE)))),
}
