"""Histories with a rhythm: working weeks, batches, equal jobs, delays, drains and `sacct` dumps."""

import math
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

from benchmarks.grow.independent.closed import crossing
from benchmarks.grow.independent.fleets.requests import Slots
from benchmarks.grow.independent.made import (
    FACTOR,
    RULE,
    Answer,
    Check,
    Files,
    Made,
    first_is,
    near,
    over_today,
    toml,
)
from benchmarks.grow.independent.made import job_table as table
from benchmarks.grow.independent.queueing import Gang, fifo_starts, wait_quantile

DAY_S = 86_400.0
HOUR_S = 3_600.0
GPUS = 8


class Process:
    """Arrivals and durations by a rule; the truth is a long run of the second simulator."""

    def __init__(
        self, draw: Callable[[random.Random, float, float], list[Gang]], nodes: int, load: float
    ) -> None:
        self._draw, self.nodes, self.load = draw, nodes, load

    def gangs(self, seed: int, days: float, k: float = 1.0) -> list[Gang]:
        return self._draw(random.Random(seed), self.load * k * self.nodes, days)

    def wait_s(self, gangs: Sequence[Gang], nodes: int | None = None) -> float:
        starts = fifo_starts(gangs, nodes or self.nodes)
        return max(wait_quantile(gangs, starts), wait_quantile(gangs, starts, by_gpu_time=False))

    def limit_s(self, k: float) -> float:
        """Return the wait of a long run at a factor: the limit that is reached there."""
        return round(self.wait_s(self.gangs(77, 800, k)))

    def sample_k(self, gangs: Sequence[Gang], limit_s: float) -> float:
        def wait_s(k: float) -> float:
            return self.wait_s([Gang(one.submit_s / k, one.duration_s, 1) for one in gangs])

        return crossing(wait_s, limit_s, 0.5, 8.0, 12)


def working_weeks(seed: int) -> Made:
    """Jobs come from Monday to Friday; weekends are rest, not gaps in the record."""
    nodes, load, k = 8, 0.5, 1.3

    def drawn(draw: random.Random, busy: float, days: float) -> list[Gang]:
        # All work of a week comes in five days of seven.
        per_s, now, gangs = busy / HOUR_S * 7 / 5, 0.0, list[Gang]()
        while (now := now + draw.expovariate(per_s)) < days * 5 / 7 * DAY_S:
            week, within = divmod(now, 5 * DAY_S)
            at = float(round(week * 7 * DAY_S + within))
            gangs.append(Gang(at, max(1.0, round(draw.expovariate(1 / HOUR_S))), 1))
        return gangs

    of = Process(drawn, nodes, load)
    gangs = of.gangs(seed + 400, 42)
    limit_s = of.limit_s(k)

    def quiet(answer: Answer) -> str:
        said = f"{answer.text()} {answer.errors}".lower()
        return "weekends are called gaps" if " gap" in said or "no records" in said else ""

    def worked(answer: Answer) -> str:
        found = answer.layer("compute").get("k")
        return "" if near(found, 1 / load, 0.12) else f"GPU time at {found}x, truth {1 / load}x"

    return Made(
        "3 histories",
        "queue",
        _files(nodes, gangs, fifo_starts(gangs, nodes), limit_s),
        _words("jobs", 1.8),
        [
            *first_is("queue", k, 0.1, sample=of.sample_k(gangs, limit_s)),
            Check(RULE, "weekends are not gaps", quiet),
            Check(FACTOR, "GPU time counts whole weeks", worked),
        ],
    )


def jobs_come_in_batches(seed: int) -> Made:
    """Somebody submits six jobs at once: waits are far longer than Erlang's at the same load."""
    nodes, load, k = 10, 0.4, 1.4

    def drawn(draw: random.Random, busy: float, days: float) -> list[Gang]:
        per_s, now, gangs = busy / HOUR_S / 6, 0.0, list[Gang]()
        while (now := now + draw.expovariate(per_s)) < days * DAY_S:
            gangs += [
                Gang(float(round(now)), max(1.0, round(draw.expovariate(1 / HOUR_S))), 1)
                for _ in range(6)
            ]
        return gangs

    return _known(seed + 410, Process(drawn, nodes, load), k)


def jobs_are_alike(seed: int) -> Made:
    """All jobs run for the same time: M/D/c."""
    nodes, load, k = 6, 0.5, 1.4

    def drawn(draw: random.Random, busy: float, days: float) -> list[Gang]:
        per_s, now, gangs = busy / HOUR_S, 0.0, list[Gang]()
        while (now := now + draw.expovariate(per_s)) < days * DAY_S:
            gangs.append(Gang(float(round(now)), HOUR_S, 1))
        return gangs

    return _known(seed + 420, Process(drawn, nodes, load), k)


def few_jobs_are_long(seed: int) -> Made:
    """Lognormal durations: a few jobs hold most of the GPU time."""
    nodes, load, k, sigma = 12, 0.5, 1.3, 1.2
    middle = math.log(HOUR_S) - sigma**2 / 2

    def drawn(draw: random.Random, busy: float, days: float) -> list[Gang]:
        per_s, now, gangs = busy / HOUR_S, 0.0, list[Gang]()
        while (now := now + draw.expovariate(per_s)) < days * DAY_S:
            gangs.append(
                Gang(float(round(now)), max(1.0, round(draw.lognormvariate(middle, sigma))), 1)
            )
        return gangs

    return _known(seed + 430, Process(drawn, nodes, load), k, within=0.15)


def starts_come_late(seed: int) -> Made:
    """Every job starts up to a minute after it could: a scheduler that looks once a minute."""
    draw = random.Random(seed)
    of = Slots(seed + 440, draw.randint(6, 9), draw.uniform(0.45, 0.55))
    rows = [
        {**one, "start_s": int(str(one["start_s"])) + draw.randint(0, 60)}
        for one in of.rows(gpus=GPUS, gpus_per_node=GPUS)
    ]
    files = {
        "fleet.toml": _fleet(of.slots),
        "grow.toml": _grow(of.limit_s),
        "jobs.csv": table(rows),
    }
    return Made(
        "6 recorded waits",
        "queue",
        files,
        _words("jobs", 1.6),
        first_is("queue", of.k(), 0.1, sample=of.sample_k()),
    )


def nodes_were_drained(seed: int) -> Made:
    """A third of the nodes was away all month: recorded waits are far longer than simulated."""
    draw = random.Random(seed)
    there = draw.randint(5, 7)
    of = Slots(seed + 450, there, 0.86)
    nodes = there + there // 2
    waits = sorted(
        start - one.submit_s
        for one, start in zip(of.gangs, fifo_starts(of.gangs, there), strict=True)
    )
    limit_s = round(0.5 * waits[int(0.9 * len(waits))])
    files = {
        "fleet.toml": _fleet(nodes),
        "grow.toml": _grow(limit_s),
        "jobs.csv": table(of.rows(gpus=GPUS, gpus_per_node=GPUS)),
    }

    def both(answer: Answer) -> str:
        head = answer.text().splitlines()[0]
        return "" if "recorded" in head and "simulated" in head else f"`{head}`"

    return Made(
        "6 recorded waits",
        "queue",
        files,
        _words("jobs", 2),
        [*over_today("queue"), Check(RULE, "both waits are printed", both)],
    )


def jobs_are_held(seed: int) -> Made:
    """Every job was held for hours on a fleet that is never half full: nodes would not help."""
    draw = random.Random(seed)
    nodes, runs_s = draw.randint(5, 12), 3_600 * draw.randint(1, 3)
    limit_s = 3_600 * draw.randint(2, 4)
    gap_s = runs_s / nodes / draw.uniform(0.2, 0.4)
    rows = [
        {
            "submit_s": round(n * gap_s),
            "start_s": round(n * gap_s + limit_s * draw.uniform(1.5, 2.5)),
            "duration_s": runs_s,
            "gpus": GPUS,
            "gpus_per_node": GPUS,
        }
        for n in range(int(14 * DAY_S / gap_s))
    ]
    files = {
        "fleet.toml": _fleet(nodes),
        "grow.toml": _grow(limit_s),
        "jobs.csv": table(rows),
    }

    def no_purchase(answer: Answer) -> str:
        fixes = [row["relief"]["sentence"] for row in answer.rows if row.get("relief")]
        return f"offers {'; '.join(fixes)}" if fixes else ""

    checks = [*over_today("queue"), Check(RULE, "nothing is bought against a hold", no_purchase)]
    return Made("6 recorded waits", "queue", files, _words("jobs", 2), checks)


def a_dump_of_sacct(seed: int) -> Made:
    """The accounting of a month as `sacct --parsable2` prints it, with steps and cancelled jobs."""
    draw = random.Random(seed)
    of = Slots(seed + 460, draw.randint(6, 9), draw.uniform(0.45, 0.55))
    files: Files = {
        "fleet.toml": _fleet(of.slots),
        "grow.toml": _grow(of.limit_s),
        "sacct.txt": sacct(of, draw),
    }
    words = ["--jobs", "@sacct.txt", "--policy", "fifo", "--grow", "@grow.toml"]
    return Made(
        "6 recorded waits",
        "queue",
        files,
        [*words, "--axis", "jobs", "--to", "1.6"],
        first_is("queue", of.k(), 0.1, sample=of.sample_k()),
    )


SACCT = (
    "JobID|User|Account|QOS|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqTRES|AllocTRES"
    "|NNodes|Priority"
)


def sacct(of: Slots, draw: random.Random) -> str:
    epoch = datetime(2026, 9, 7, tzinfo=UTC)

    def when(at_s: float) -> str:
        return (epoch + timedelta(seconds=round(at_s))).strftime("%Y-%m-%dT%H:%M:%S")

    lines, number = [SACCT], 4_000
    starts = fifo_starts(of.gangs, of.slots)
    for one, start in zip(of.gangs, starts, strict=True):
        number += 1
        end, limit = start + one.duration_s, math.ceil(one.duration_s / 60) + 1
        state = draw.choices(["COMPLETED", "FAILED", "CANCELLED by 1001"], [90, 6, 4])[0]
        asked = f"billing=96,cpu=96,gres/gpu={GPUS},mem=1000G,node=1"
        account = draw.choice(["nlp", "vision"])
        common = f"{when(one.submit_s)}|{when(start)}|{when(end)}|{one.duration_s:.0f}"
        lines.append(
            f"{number}|u{draw.randint(1, 9)}|{account}|normal|{state}|{common}|{limit}"
            f"|{asked}|{asked}|1|{draw.randint(1_000, 2_000)}"
        )
        step = f"cpu=96,gres/gpu={GPUS},mem=1000G,node=1"
        steps = f"{when(start)}|{when(start)}|{when(end)}|{one.duration_s:.0f}"
        lines.append(f"{number}.batch||{account}||COMPLETED|{steps}|||{step}|1|")
        if draw.random() < 0.02:
            number += 1
            gave_up = when(one.submit_s + 600)
            lines.append(
                f"{number}|u1|nlp|normal|CANCELLED by 1001|{when(one.submit_s)}|None|{gave_up}|0"
                f"|60|{asked}||1|1"
            )
    return "\n".join(lines) + "\n"


def _known(seed: int, of: Process, k: float, within: float = 0.1) -> Made:
    gangs = of.gangs(seed, 28)
    limit_s = of.limit_s(k)
    return Made(
        "3 histories",
        "queue",
        _files(of.nodes, gangs, fifo_starts(gangs, of.nodes), limit_s),
        _words("jobs", 2),
        first_is("queue", k, within, sample=of.sample_k(gangs, limit_s)),
    )


def _files(nodes: int, gangs: Sequence[Gang], starts: Sequence[float], limit_s: float) -> Files:
    rows: list[Mapping[str, object]] = [
        {
            "submit_s": round(one.submit_s),
            "duration_s": round(one.duration_s),
            "gpus": GPUS,
            "gpus_per_node": GPUS,
            "start_s": round(start),
        }
        for one, start in zip(gangs, starts, strict=True)
    ]
    return {
        "fleet.toml": _fleet(nodes),
        "grow.toml": _grow(limit_s),
        "jobs.csv": table(rows),
    }


def _fleet(nodes: int) -> str:
    pool = {"name": "p", "accelerator": "H100", "nodes": nodes, "gpus_per_node": GPUS}
    return toml(pool=[pool])


def _grow(limit_s: float) -> str:
    return toml(
        limits={"wait_s_p90": limit_s, "stranded_share_most": 1.0},
        facility={"ports_free": 1_000_000},
    )


def _words(axis: str, to: float) -> list[str]:
    given = ["--jobs", "@jobs.csv", "--policy", "fifo", "--grow", "@grow.toml"]
    return [*given, "--axis", axis, "--to", f"{to:g}"]


KINDS: dict[str, tuple[Callable[[int], Made], int]] = {
    "working-weeks": (working_weeks, 1),
    "batches": (jobs_come_in_batches, 1),
    "equal-jobs": (jobs_are_alike, 1),
    "long-tail": (few_jobs_are_long, 1),
    "late-starts": (starts_come_late, 1),
    "drained": (nodes_were_drained, 1),
    "held": (jobs_are_held, 2),
    "sacct": (a_dump_of_sacct, 1),
}
