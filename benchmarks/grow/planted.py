"""Fleets with a break planted in them: is the first one named, and its factor found?

Truth is told by closed forms that share no code with growth. Beside it stands what one gets by
naming the layer that is fullest today. Every fleet is said as it is judged, every miss at the end.
"""

import sys
import time
from collections import Counter
from functools import cache
from typing import NamedTuple

from benchmarks.verdict import Verdict
from tenfold.compose.fleet import OpenFleet, load_facts
from tenfold.decide.layout.serve import ServeAnswer, ServeRequest, plan_serve
from tenfold.model.errors import TenfoldError
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.plan import ServiceDemand
from tenfold.physics.layout import lay_out
from tenfold.study.grow.analyse import analyse
from tenfold.study.grow.answer import GrowAnswer
from tenfold.study.grow.inputs import GrowInputs
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.parallel import process_map, usable_cpus
from tenfold.study.plan.target import serve_targets
from tenfold.study.plan.train import model_shape
from tests.rigs.planted.fleets import Planted, planted, sound, starved
from tests.rigs.planted.plan import Replica
from tests.rigs.planted.truth import first_of, headroom
from tests.rigs.planted.upkeep import SERVICE

SEED_FIRST = 30_000
"""Seeds below were looked at while this was written; those from here on were kept aside."""
FLEETS, SOUND, STARVED = 200, 40, 10
K_APART = 0.1
PLANS_KEPT = 64
SAME = {"queue": ("queue", "compute")}
"""A full pool is one break, whether it is told by the work that comes or by the waits."""


class Task(NamedTuple):
    """A fleet to plant and judge: by a process of its own, so told by name and seed."""

    kind: str
    seed: int


class Evaluated(NamedTuple):
    """A planted fleet and what was said of it."""

    fleet: Planted
    answer: GrowAnswer

    @property
    def named(self) -> str:
        first = self.answer.first
        return "nothing" if first is None else first.layer

    @property
    def right(self) -> bool:
        return self.named in SAME.get(self.fleet.first, (self.fleet.first,))

    @property
    def apart(self) -> float:
        first = self.answer.first
        return 1.0 if first is None or first.k is None else abs(first.k / self.fleet.k - 1)

    def line(self) -> str:
        first, fleet = self.answer.first, self.fleet
        k = "-" if first is None or first.k is None else f"{first.k:.2f}"
        planned = f"{fleet.first or 'nothing'} at {fleet.k:.2f}"
        meant = f" by {fleet.kind}" if fleet.kind not in ("", fleet.first) else ""
        said = f"{planned}{meant}, said {self.named} at {k}"
        return f"seed {fleet.seed} along {fleet.plan.axis}: {said}"


def run(thresholds: dict[str, float]) -> list[Verdict]:
    kinds = (("planted", FLEETS), ("starved", STARVED), ("sound", SOUND))
    tasks = [Task(kind, SEED_FIRST + at) for kind, many in kinds for at in range(many)]
    found = process_map(rank, tasks, workers=usable_cpus(), lost=_lost, done=lambda _: None)
    broken, hungry, quiet = found[:FLEETS], found[FLEETS : FLEETS + STARVED], found[-SOUND:]
    _show(broken, hungry, quiet)
    right = sum(one.right for one in broken) / len(broken)
    within = sum(one.apart <= K_APART for one in broken) / len(broken)
    alarms = sum(one.answer.first is not None for one in quiet)
    causes = sum(one.right for one in hungry)
    return [
        Verdict("first break named right", 100 * right, at_least=thresholds["first_percent"]),
        Verdict("factor within 10%", 100 * within, at_least=thresholds["factor_percent"]),
        Verdict(f"alarms of {SOUND} sound fleets", alarms, at_most=thresholds["alarms"]),
        Verdict(f"starved tiers named, of {STARVED}", causes, at_least=thresholds["starved_named"]),
    ]


def rank(task: Task) -> Evaluated:
    """Plant a fleet, judge it, and say so at once: the whole takes minutes."""
    facts, began = _facts(), time.process_time()
    found = judged(_planted(task, facts), facts)
    spent_s = time.process_time() - began
    print(f"{task.kind:8} {found.line()} ({spent_s:.1f} s)", file=sys.stderr, flush=True)
    return found


def _planted(task: Task, facts: Catalogue) -> Planted:
    cooling = tuple(one.rack_kw_max for one in facts.cooling)
    if task.kind == "starved":
        return starved(task.seed, cooling)
    make = planted if task.kind == "planted" else sound
    return make(task.seed, cooling, replica())


def judged(fleet: Planted, facts: Catalogue) -> Evaluated:
    """Return a planted fleet with what growth answers."""
    spec = fleet.plan.spec
    inputs = GrowInputs(
        fleet=OpenFleet(spec=spec, layout=lay_out(spec), catalogue=facts),
        jobs=fleet.jobs,
        starts_ms=fleet.starts_ms,
        policy=fleet.policy,
        failures=fleet.plan.failures,
        grow=fleet.plan.grow,
        measured=fleet.measured,
        profiles=fleet.profiles,
    )
    question = GrowQuestion(axis=fleet.plan.axis, seeds=3, count_assumed=fleet.plan.counts_assumed)
    return Evaluated(fleet, analyse(inputs, question))


@cache
def replica() -> Replica:
    """Return the replica that serves most requests a GPU on the pool of planted fleets."""
    facts = _facts()
    spec = planted(0, tuple(one.rack_kw_max for one in facts.cooling)).plan.spec
    [target] = serve_targets(OpenFleet(spec=spec, layout=lay_out(spec), catalogue=facts))
    assert SERVICE.ttft_s is not None, "a planted service promises something"
    assert SERVICE.tpot_s is not None, "a planted service promises something"
    service = ServiceDemand(
        model=SERVICE.model,
        qps=1e-3,
        input_tokens=SERVICE.input_tokens,
        output_tokens=SERVICE.output_tokens,
        ttft_s=SERVICE.ttft_s,
        tpot_s=SERVICE.tpot_s,
        attainment=0.5,
        spare_replicas=0,
        headroom=0.0,
    )
    request = ServeRequest(service=service, shape=model_shape(SERVICE.model, facts))
    answer = plan_serve(request, [target], keep=PLANS_KEPT)
    assert isinstance(answer, ServeAnswer), "the planted service fits its pool"
    best = max(answer.plans, key=lambda one: one.qps_per_replica_max / one.gpus_per_replica)
    return Replica(best.qps_per_replica_max, best.gpus_per_replica)


@cache
def _facts() -> Catalogue:
    return load_facts()


def _lost(task: Task, why: str) -> Evaluated:
    said = f"the {task.kind} fleet of seed {task.seed} was lost: {why}"
    raise TenfoldError("run-lost", said, "run it on a machine with more memory")


def _show(broken: list[Evaluated], hungry: list[Evaluated], quiet: list[Evaluated]) -> None:
    kinds = Counter(_kind(one) for one in broken)
    good = Counter(_kind(one) for one in broken if one.right)
    near = Counter(_kind(one) for one in broken if one.apart <= K_APART)
    print(f"{'planted':18} {'fleets':>6} {'named':>6} {'within 10%':>10}")
    for kind, many in sorted(kinds.items()):
        print(f"{kind:18} {many:6} {good[kind]:6} {near[kind]:10}")
    axes = Counter(one.fleet.plan.axis for one in broken)
    print("along " + ", ".join(f"{axis} {many}" for axis, many in sorted(axes.items())))
    fullest = sum(first_of(headroom(one.fleet.plan))[0] == one.fleet.first for one in broken)
    print(f"naming the fullest layer of today would be right in {fullest} of {len(broken)}")
    apart = sorted(one.apart for one in broken)
    print(f"factors are off by {apart[len(apart) // 2]:.2%} (median), {apart[-1]:.1%} (most)")
    for one in broken:
        if not one.right or one.apart > K_APART:
            print(f"  MISS {one.line()}")
    for one in hungry:
        print(f"  {'starved' if one.right else 'MISS starved'} {one.line()}")
    for one in quiet:
        if one.answer.first is not None:
            print(f"  ALARM {one.line()}")


def _kind(one: Evaluated) -> str:
    return one.fleet.kind or one.fleet.first
