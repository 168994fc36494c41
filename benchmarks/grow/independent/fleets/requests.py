"""What jobs ask for: CPUs beside GPUs, either type, parts of a node, and quotas of teams."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from benchmarks.grow.independent.closed import crossing, mmc_waits_longer
from benchmarks.grow.independent.made import (
    RULE,
    Answer,
    Check,
    Files,
    Made,
    Relief,
    Table,
    first_is,
    near,
    relief_holds,
    toml,
)
from benchmarks.grow.independent.made import job_table as table
from benchmarks.grow.independent.queueing import Gang, fifo_starts, poisson_gangs, wait_quantile

DAY_S = 86_400.0
GPUS = 8
Rows: TypeAlias = Sequence[Mapping[str, object]]


class Slots:
    """Jobs of one slot each, first come first; how many slots a node has is up to the requests."""

    def __init__(
        self, seed: int, slots: int, load: float, mean_s: float = 3_600.0, days: float = 28
    ) -> None:
        self.slots, self.load, self.mean_s, self.days = slots, load, mean_s, days
        self.gangs = poisson_gangs(seed, load * slots / mean_s, days * DAY_S, [(1, 1.0, mean_s)])
        # The limit is what a tenth of the jobs wait at a factor well above today.
        self.limit_s = round(_p90_s(slots, 0.5 * (load + 1) * slots, mean_s))

    def k(self, slots: int | None = None) -> float:
        count = slots or self.slots
        return crossing(
            lambda k: mmc_waits_longer(
                count, k * self.load * self.slots, self.mean_s, self.limit_s
            ),
            0.1,
        )

    def sample_k(self, slots: int | None = None) -> float:
        """Return the same of this very history, run again with its arrivals closer together."""

        def wait_s(k: float) -> float:
            sooner = [Gang(one.submit_s / k, one.duration_s, 1) for one in self.gangs]
            starts = fifo_starts(sooner, slots or self.slots)
            return max(
                wait_quantile(sooner, starts), wait_quantile(sooner, starts, by_gpu_time=False)
            )

        return crossing(wait_s, self.limit_s, 0.5, 8.0, 12)

    def rows(self, **asked: object) -> list[Mapping[str, object]]:
        starts = fifo_starts(self.gangs, self.slots)
        return [
            {
                "submit_s": round(one.submit_s),
                "duration_s": round(one.duration_s),
                "start_s": round(start),
                **asked,
            }
            for one, start in zip(self.gangs, starts, strict=True)
        ]


def _p90_s(slots: int, busy: float, mean_s: float) -> float:
    low, high = 1.0, 100 * mean_s
    while high - low > 1:
        middle = (low + high) / 2
        longer = mmc_waits_longer(slots, busy, mean_s, middle) > 0.1
        low, high = (middle, high) if longer else (low, middle)
    return high


def cpus_run_out(seed: int) -> Made:
    """Jobs of one GPU ask for half the CPUs of a node: two fit where eight GPUs are."""
    draw = random.Random(seed)
    nodes = draw.randint(4, 6)
    of = Slots(seed + 300, 2 * nodes, draw.uniform(0.5, 0.6))
    pool = {"cpus_per_node": 96, "memory_gib_per_node": 1024}

    def files(more: int) -> Files:
        return _files([_pool(nodes + more, **pool)], of.rows(gpus=1, cpus=48), of.limit_s)

    to = 1.5
    relief = Relief(
        "queue",
        "node",
        lambda more: of.sample_k(2 * (nodes + more)),
        files,
        apart=1,
        then_within=0.1,
    )
    return Made(
        "requests",
        "queue",
        files(0),
        _words("jobs", to),
        [*first_is("queue", of.k(), 0.1, sample=of.sample_k()), *relief_holds(relief, to)],
    )


def memory_runs_out(seed: int) -> Made:
    """Jobs of two GPUs ask for a third of a node's memory: three fit, and two GPUs stay idle."""
    draw = random.Random(seed)
    nodes = draw.randint(4, 6)
    of = Slots(seed + 310, 3 * nodes, draw.uniform(0.5, 0.6))
    pool = {"cpus_per_node": 96, "memory_gib_per_node": 1000}
    rows = of.rows(gpus=2, mem_gib=330, cpus=1)
    return Made(
        "requests",
        "queue",
        _files([_pool(nodes, **pool)], rows, of.limit_s),
        _words("jobs", 1.5),
        first_is("queue", of.k(), 0.1, sample=of.sample_k()),
    )


def either_type_will_do(seed: int) -> Made:
    """Jobs that take one of two types queue for the nodes of both together."""
    draw = random.Random(seed)
    first, second = draw.randint(3, 5), draw.randint(3, 5)
    of = Slots(seed + 320, first + second, draw.uniform(0.5, 0.6))
    rows = of.rows(gpus=GPUS, gpus_per_node=GPUS, gpu_type="A100|H100")
    pools = [_pool(first), _pool(second, name="old", accelerator="A100")]

    def load(answer: Answer) -> str:
        k = answer.layer("compute").get("k")
        return "" if near(k, 1 / of.load, 0.1) else f"GPU time at {k}x, truth {1 / of.load:.3g}x"

    return Made(
        "requests",
        "queue",
        _files(pools, rows, of.limit_s),
        _words("jobs", 1.5),
        [
            *first_is("queue", of.k(), 0.1, sample=of.sample_k()),
            Check(RULE, "GPU time of both types is counted", load),
        ],
    )


def parts_of_a_node(seed: int) -> Made:
    """Jobs of two GPUs: four fit on a node."""
    draw = random.Random(seed)
    nodes = draw.randint(2, 4)
    of = Slots(seed + 330, 4 * nodes, draw.uniform(0.5, 0.6))
    return Made(
        "requests",
        "queue",
        _files([_pool(nodes)], of.rows(gpus=2), of.limit_s),
        _words("jobs", 1.5),
        first_is("queue", of.k(), 0.1, sample=of.sample_k()),
    )


def a_team_reaches_its_quota(seed: int) -> Made:
    """A team may use a third of the nodes and no more; its jobs wait while others are idle."""
    draw = random.Random(seed)
    nodes = draw.choice([12, 15])
    own = nodes // 3
    of = Slots(seed + 340, own, draw.uniform(0.5, 0.6))
    rows = of.rows(gpus=GPUS, gpus_per_node=GPUS, team="capped")
    quota, none = f"H100 = {own * GPUS}", "any = 0"
    policy = (
        'name = "governed"\n'
        f'[[teams]]\nid = "capped"\nquota = {{ {quota} }}\nborrow = {{ {none} }}\n'
        f'[[teams]]\nid = "other"\nquota = {{ H100 = {(nodes - own) * GPUS} }}\n'
        "lend = { H100 = 0 }\n"
    )
    files = {**_files([_pool(nodes)], rows, of.limit_s), "policy.toml": policy}

    def free(answer: Answer) -> str:
        fix = (answer.first.get("relief") or {}).get("sentence", "")
        return "" if "quota" in fix or "borrow" in fix or "lend" in fix else f"fix: `{fix}`"

    return Made(
        "7 reliefs",
        "queue",
        files,
        _words("jobs", 1.5, policy="@policy.toml"),
        [
            *first_is("queue", of.k(), 0.1, sample=of.sample_k()),
            Check(RULE, "the fix is a quota, not a purchase", free),
        ],
    )


def teams_come_with_their_jobs(seed: int) -> Made:
    """Along `teams`, jobs arrive as along `jobs`."""
    draw = random.Random(seed)
    of = Slots(seed + 350, draw.randint(6, 9), draw.uniform(0.45, 0.55))
    rows = [
        {**one, "team": draw.choice(["vision", "speech", "robots"])}
        for one in of.rows(gpus=GPUS, gpus_per_node=GPUS)
    ]
    return Made(
        "5 axes",
        "queue",
        _files([_pool(of.slots)], rows, of.limit_s),
        _words("teams", 1.6),
        first_is("queue", of.k(), 0.12, sample=of.sample_k()),
    )


def _files(pools: Sequence[Table], rows: Rows, limit_s: float, **more: object) -> Files:
    return {
        "fleet.toml": toml(pool=pools),
        "grow.toml": toml(
            limits={"wait_s_p90": limit_s, "stranded_share_most": 1.0, **more},
            facility={"ports_free": 1_000_000},
        ),
        "jobs.csv": table(rows),
    }


def _pool(nodes: int, **more: object) -> Table:
    given = {"name": "p", "accelerator": "H100", "nodes": nodes, "gpus_per_node": GPUS}
    return {**given, **more}


def _words(axis: str, to: float, *more: str, policy: str = "fifo") -> list[str]:
    given = ["--jobs", "@jobs.csv", "--policy", policy, "--grow", "@grow.toml"]
    return [*given, "--axis", axis, "--to", f"{to:g}", *more]


KINDS: dict[str, tuple[Callable[[int], Made], int]] = {
    "cpus": (cpus_run_out, 1),
    "memory": (memory_runs_out, 1),
    "either-type": (either_type_will_do, 1),
    "parts": (parts_of_a_node, 1),
    "team-quota": (a_team_reaches_its_quota, 1),
    "teams-axis": (teams_come_with_their_jobs, 1),
}
