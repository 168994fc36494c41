"""Job histories of known processes: Erlang's waits, gaps, missing starts, types and backfill."""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TypeAlias

from benchmarks.grow.independent.closed import (
    crossing,
    mmc_queue_occupied,
    mmc_waits_longer,
)
from benchmarks.grow.independent.made import (
    RULE,
    Answer,
    Check,
    Files,
    Made,
    Relief,
    covers,
    first_is,
    near,
    over_today,
    relief_holds,
    toml,
)
from benchmarks.grow.independent.made import job_table as table
from benchmarks.grow.independent.queueing import (
    Gang,
    easy_starts,
    fifo_starts,
    poisson_gangs,
    worst_wait,
)

DAY_S = 86_400.0
GPUS = 8
NEVER_S = 100_000_000
Starts: TypeAlias = Callable[[Sequence[Gang], int], list[float]]


class Erlang:
    """Jobs of one node that arrive by chance and run for exponential times, first come first."""

    def __init__(self, seed: int, load: float | None = None, days: float = 28) -> None:
        draw = random.Random(seed)
        self.seed, self.days = seed, days
        self.nodes = draw.randint(5, 9)
        self.mean_s = draw.choice([2_700.0, 3_600.0, 4_500.0])
        self.load = load or draw.uniform(0.42, 0.52)
        # A limit that is reached well before the fleet is full, and not today.
        self.limit_s = round(self.mean_s * draw.uniform(0.2, 0.35))
        while self.k() < 1.15 and self.load < 1:
            self.limit_s = round(self.limit_s * 1.1)

    def k(self, nodes: int | None = None) -> float:
        """Return the factor at which a tenth of the jobs wait longer than the limit."""
        servers = nodes or self.nodes
        return crossing(
            lambda k: mmc_waits_longer(
                servers, k * self.load * self.nodes, self.mean_s, self.limit_s
            ),
            0.1,
        )

    def sample_k(self, nodes: int | None = None, gap: tuple[float, float] | None = None) -> float:
        """Return the same of this very history, run again with its arrivals closer together."""
        gangs = self.gangs()
        if gap is not None:
            lost = (gap[1] - gap[0]) * DAY_S
            gangs = [
                Gang(gang.submit_s - (lost if late else 0), gang.duration_s, gang.nodes)
                for gang in gangs
                if (late := gang.submit_s >= gap[1] * DAY_S) or gang.submit_s < gap[0] * DAY_S
            ]
        return _sample_k(gangs, nodes or self.nodes, self.limit_s, fifo_starts)

    def gangs(self) -> list[Gang]:
        per_s = self.load * self.nodes / self.mean_s
        return poisson_gangs(self.seed, per_s, self.days * DAY_S, [(1, 1.0, self.mean_s)])

    def rows(
        self, *, starts: bool = True, gap: tuple[float, float] | None = None
    ) -> list[Mapping[str, object]]:
        """Return the job table; jobs submitted between two days of `gap` are lost."""
        gangs = self.gangs()
        begun = fifo_starts(gangs, self.nodes)
        return [
            row(gang, start if starts else None)
            for gang, start in zip(gangs, begun, strict=True)
            if gap is None or not gap[0] * DAY_S <= gang.submit_s < gap[1] * DAY_S
        ]

    def files(self, rows: Sequence[Mapping[str, object]], more: int = 0, **limits: float) -> Files:
        return {
            "fleet.toml": fleet(self.nodes + more),
            "grow.toml": grow(wait_s_p90=self.limit_s, **limits),
            "jobs.csv": table(rows),
        }


def _sample_k(gangs: Sequence[Gang], nodes: int, limit_s: float, starts: Starts) -> float:
    def wait_s(k: float) -> float:
        sooner = [Gang(gang.submit_s / k, gang.duration_s, gang.nodes) for gang in gangs]
        return worst_wait(sooner, starts(sooner, nodes))

    return crossing(wait_s, limit_s, 0.5, 8.0, 12)


def row(gang: Gang, start_s: float | None = None, **more: object) -> dict[str, object]:
    begun = {} if start_s is None else {"start_s": round(start_s)}
    gpus = gang.nodes * GPUS
    return {
        "submit_s": round(gang.submit_s),
        "duration_s": round(gang.duration_s),
        "gpus": gpus,
        "gpus_per_node": GPUS,
        "limit_s": round(gang.duration_s),
        **begun,
        **more,
    }


def fleet(nodes: int, **others: int) -> str:
    pools = [{"name": "p", "accelerator": "H100", "nodes": nodes, "gpus_per_node": GPUS}]
    pools += [
        {"name": name.lower(), "accelerator": name, "nodes": count, "gpus_per_node": GPUS}
        for name, count in others.items()
    ]
    return toml(pool=pools)


def grow(**limits: float) -> str:
    return toml(limits={"stranded_share_most": 1.0, **limits}, facility={"ports_free": 1_000_000})


def words(axis: str, to: float, *more: str, policy: str = "fifo") -> list[str]:
    return [
        "--jobs",
        "@jobs.csv",
        "--policy",
        policy,
        "--grow",
        "@grow.toml",
        "--axis",
        axis,
        "--to",
        f"{to:g}",
        *more,
    ]


def waits_of_one_node_jobs(seed: int) -> Made:
    """Erlang's formula says at which load a tenth of the jobs wait too long."""
    of = Erlang(seed)
    rows, to = of.rows(), 1.6

    def unmixed(answer: Answer) -> str | None:
        fix = (answer.first.get("relief") or {}).get("sentence", "")
        return (
            ""
            if not ("policy" in fix and "add " in fix)
            else f"`{fix}` hides a switch of policy in a purchase"
        )

    relief = Relief(
        "queue",
        "node",
        lambda more: of.sample_k(of.nodes + more),
        lambda more: of.files(rows, more),
        apart=1,
        then_within=0.1,
    )
    return Made(
        "7 reliefs",
        "queue",
        of.files(rows),
        words("jobs", to),
        [
            *first_is("queue", of.k(), 0.1, sample=of.sample_k()),
            covers("queue", of.k()),
            *relief_holds(relief, to),
            Check(RULE, "a purchase does not switch the policy", unmixed),
        ],
    )


def weeks_are_missing(seed: int) -> Made:
    """Three weeks of eight were not recorded: load and waits are those of the five."""
    of = Erlang(seed + 50, days=56)
    rows = of.rows(gap=(21, 42))

    def told(answer: Answer) -> str:
        said = f"{answer.text()} {answer.errors}".lower()
        told = re.search(
            r"\b(gaps?|missing|holes?|no records?|without records?|without jobs|not covered)\b",
            said,
        )
        return "" if told else "three missing weeks are not mentioned"

    def load(answer: Answer) -> str:
        k = answer.layer("compute").get("k")
        return "" if near(k, 1 / of.load, 0.1) else f"GPU time at {k}x, truth {1 / of.load:.3g}x"

    return Made(
        "3 histories",
        "queue",
        of.files(rows),
        words("jobs", 1.6),
        [
            *first_is("queue", of.k(), 0.1, sample=of.sample_k(gap=(21, 42))),
            covers("queue", of.k()),
            Check(RULE, "GPU time counts covered weeks only", load),
            Check(RULE, "the gap is told", told),
        ],
    )


def load_beyond_the_fleet_without_starts(seed: int) -> Made:
    """A history without start times asks for more GPU time than there is."""
    of = Erlang(seed + 20, load=random.Random(seed).uniform(1.15, 1.5), days=21)
    rows = of.rows(starts=False)
    return Made(
        "4 no starts",
        "compute",
        {**of.files(rows), "grow.toml": grow(wait_s_p90=NEVER_S)},
        words("jobs", 2),
        [*over_today("compute"), *first_is("compute", 1 / of.load, 0.08)[1:], *_exits({"1.1x": 1})],
    )


def no_verdict_is_no_pass(seed: int) -> Made:
    """Without start times waits are not judged, so a required factor is not met unless allowed."""
    of = Erlang(seed + 30, load=0.4, days=21)
    rows = of.rows(starts=False)
    return Made(
        "4 no starts",
        "queue",
        of.files(rows),
        words("jobs", 2),
        [*_exits({"1.2x": 1, "1.2x --allow-unknown": 0, "3x --allow-unknown": 1})],
    )


def recorded_waits_break_the_limit(seed: int) -> Made:
    """Jobs waited for hours although nodes were free: what was measured comes first."""
    of = Erlang(seed + 60, load=0.4)
    draw = random.Random(seed)
    late_s = of.limit_s * draw.uniform(3, 6)
    rows = [
        {**one, "start_s": int(str(one["start_s"])) + round(late_s * draw.uniform(0.7, 1.3))}
        for one in of.rows()
    ]
    return Made("6 recorded waits", "queue", of.files(rows), words("jobs", 2), over_today("queue"))


def one_type_is_short(seed: int) -> Made:
    """Jobs ask for a type; one pool is nearly full while the other idles."""
    draw = random.Random(seed)
    of = Erlang(seed + 70, load=draw.uniform(0.55, 0.62))
    idle = of.nodes * 3
    rows = [{**one, "gpu_type": "A100"} for one in of.rows()]
    # The other type has a tenth of its nodes busy; its jobs wait only behind others in the queue.
    calm = poisson_gangs(seed + 1, 0.1 * idle / of.mean_s, of.days * DAY_S, [(1, 1.0, of.mean_s)])
    rows += [{**row(gang, gang.submit_s), "gpu_type": "H100"} for gang in calm]
    rows.sort(key=lambda one: int(str(one["submit_s"])))
    last = 0
    for one in rows:
        last = one["start_s"] = max(last, int(str(one["start_s"])))

    def files(more: int) -> Files:
        return {
            "fleet.toml": fleet(idle, A100=of.nodes + more),
            "grow.toml": grow(wait_s_p90=of.limit_s),
            "jobs.csv": table(rows),
        }

    def apart(answer: Answer) -> str:
        k = answer.layer("compute", "A100").get("k")
        return (
            ""
            if near(k, 1 / of.load, 0.1)
            else f"GPU time of A100 at {k}x, truth {1 / of.load:.3g}x"
        )

    to = 1.5
    relief = Relief(
        "queue", "node", lambda more: of.sample_k(of.nodes + more), files, apart=1, then_within=0.1
    )
    return Made(
        "9 types apart",
        "queue",
        files(0),
        words("jobs", to),
        [
            *first_is("queue", of.k(), 0.1, sample=of.sample_k()),
            Check(RULE, "GPU time is judged by type", apart),
            *relief_holds(relief, to),
        ],
    )


def load_of_one_type(seed: int) -> Made:
    """GPU time of one type ends first; nothing else has a limit that is reached."""
    of = Erlang(seed + 80, load=random.Random(seed).uniform(0.6, 0.7), days=21)
    idle = of.nodes * 4
    rows = [{**one, "gpu_type": "A100"} for one in of.rows(starts=False)]
    files = {
        "fleet.toml": fleet(idle, A100=of.nodes),
        "grow.toml": grow(wait_s_p90=NEVER_S),
        "jobs.csv": table(rows),
    }
    return Made(
        "9 types apart",
        "compute",
        files,
        words("jobs", 3, "--count-assumed"),
        first_is("compute", 1 / of.load, 0.08),
    )


def gangs_first_come(seed: int) -> Made:
    return _gangs(seed, "fifo", fifo_starts)


def gangs_with_backfill(seed: int) -> Made:
    return _gangs(seed + 10, "slurm", easy_starts)


def _gangs(seed: int, policy: str, starts: Starts) -> Made:
    """Gangs of several sizes; the truth is a long run of the second simulator at each load."""
    draw = random.Random(seed)
    nodes = draw.choice([12, 16])
    sizes = ((1, 0.6, 3_600.0), (2, 0.25, 5_400.0), (4, 0.15, 7_200.0))
    work = sum(size * share * mean for size, share, mean in sizes)
    # Backfill plans every waiting job in every cycle, so its history is shorter.
    load, days = draw.uniform(0.4, 0.48), 28.0 if policy == "fifo" else 16.0
    per_s = load * nodes / work
    limit_s = 2_400.0
    k = _gang_k(policy, nodes, load, limit_s)
    gangs = poisson_gangs(seed, per_s, days * DAY_S, sizes)
    sample = _sample_k(gangs, nodes, limit_s, starts)
    rows = [row(gang, start) for gang, start in zip(gangs, starts(gangs, nodes), strict=True)]
    files = {
        "fleet.toml": fleet(nodes),
        "grow.toml": grow(wait_s_p90=limit_s),
        "jobs.csv": table(rows),
    }
    return Made(
        "7 reliefs",
        "queue",
        files,
        words("jobs", 1.6, "--seeds", "3", policy=policy),
        [*first_is("queue", k, 0.12, sample=sample), covers("queue", k)],
    )


@cache
def _gang_k(policy: str, nodes: int, load: float, limit_s: float) -> float:
    starts = fifo_starts if policy == "fifo" else easy_starts
    sizes = ((1, 0.6, 3_600.0), (2, 0.25, 5_400.0), (4, 0.15, 7_200.0))
    work = sum(size * share * mean for size, share, mean in sizes)

    def wait_s(k: float) -> float:
        gangs = poisson_gangs(99, k * load * nodes / work, 250 * DAY_S, sizes)
        return worst_wait(gangs, starts(gangs, nodes))

    low, high = 0.9, 1.05 / load
    for _ in range(7):
        middle = (low + high) / 2
        low, high = (low, middle) if wait_s(middle) > limit_s else (middle, high)
    return high


def nodes_are_left_half_empty(seed: int) -> Made:
    """Jobs of five GPUs leave three idle on every node; they are stranded while jobs wait."""
    of = Erlang(seed + 90, load=random.Random(seed).uniform(0.5, 0.6))
    most = 0.15
    k = crossing(lambda k: 3 / 8 * mmc_queue_occupied(of.nodes, k * of.load * of.nodes), most)
    rows = [{**one, "gpus": 5, "gpus_per_node": 5} for one in of.rows()]
    files = {
        "fleet.toml": fleet(of.nodes),
        "grow.toml": toml(
            limits={"wait_s_p90": NEVER_S, "stranded_share_most": most},
            facility={"ports_free": 1_000_000},
        ),
        "jobs.csv": table(rows),
    }
    return Made(
        "7 reliefs", "fragmentation", files, words("jobs", 2), first_is("fragmentation", k, 0.15)
    )


def fresh_history(seed: int) -> Made:
    """A short history of a known process: its range must cover the truth four times of five."""
    of = Erlang(1_000 + seed, days=15)
    return Made(
        "3 coverage",
        "queue",
        of.files(of.rows()),
        words("jobs", 1.5, "--seeds", "3"),
        [covers("queue", of.k()), covers("compute", 1 / of.load)],
    )


def _exits(wanted: Mapping[str, int]) -> list[Check]:
    """Return checks of the exit status for values of `--require`."""

    def check(required: str, status: int) -> Check:
        def judged(answer: Answer) -> str:
            # The made words are those of the question; `--require` and more come after them.
            given = (*answer.asked, "--require", *required.split())
            found = answer.again(words=given)
            why = found.errors[:80] if found.status > 1 else ""
            return "" if found.status == status else f"exits {found.status} {why}"

        return Check(RULE, f"--require {required} exits {status}", judged)

    return [check(required, status) for required, status in wanted.items()]
