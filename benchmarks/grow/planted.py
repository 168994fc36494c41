"""Fleets with a break planted in them: is the first one named, and its factor found?

Truth is told by closed forms that share no code with growth. Beside it stands what one gets by
naming the layer that is fullest today. Every miss is printed.
"""

from collections import Counter
from typing import NamedTuple

from benchmarks.verdict import Verdict
from tenfold.compose.fleet import OpenFleet, load_facts
from tenfold.compose.grow_inputs import GrowInputs
from tenfold.model.catalogue import Catalogue
from tenfold.model.policy import Policy
from tenfold.physics.layout import lay_out
from tenfold.study.grow.answer import GrowAnswer
from tenfold.study.grow.ladder import climb
from tenfold.study.grow.question import GrowQuestion
from tenfold.testing.planted_fleets import Planted, planted, sound, starved
from tenfold.testing.planted_truth import first_of, headroom

SEED_FIRST = 10_000
"""Seeds below were looked at while this was written; those from here on were kept aside."""
FLEETS, SOUND, STARVED = 200, 40, 10
K_APART = 0.1
SAME = {"queue": ("queue", "compute")}
"""A full pool is one break, whether it is told by the work that comes or by the waits."""


class Judged(NamedTuple):
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
        return f"seed {fleet.seed} along {fleet.plan.axis}: {planned}, said {self.named} at {k}"


def run(thresholds: dict[str, float]) -> list[Verdict]:
    facts = load_facts()
    cooling = tuple(one.rack_kw_max for one in facts.cooling)
    seeds = range(SEED_FIRST, SEED_FIRST + FLEETS)
    broken = [judged(planted(seed, cooling), facts) for seed in seeds]
    hungry = [judged(starved(seed, cooling), facts) for seed in seeds[:STARVED]]
    quiet = [judged(sound(seed, cooling), facts) for seed in seeds[:SOUND]]
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


def judged(fleet: Planted, facts: Catalogue) -> Judged:
    """Return a planted fleet with what growth answers."""
    spec = fleet.plan.spec
    inputs = GrowInputs(
        fleet=OpenFleet(spec=spec, layout=lay_out(spec), catalogue=facts),
        jobs=fleet.jobs,
        starts_ms=fleet.starts_ms,
        policy=Policy(name="fifo"),
        grow=fleet.plan.grow,
        measured=fleet.measured,
        profiles=fleet.profiles,
    )
    question = GrowQuestion(axis=fleet.plan.axis, seeds=3, count_assumed=fleet.plan.counts_assumed)
    return Judged(fleet, climb(inputs, question))


def _show(broken: list[Judged], hungry: list[Judged], quiet: list[Judged]) -> None:
    kinds = Counter(one.fleet.first for one in broken)
    good = Counter(one.fleet.first for one in broken if one.right)
    near = Counter(one.fleet.first for one in broken if one.apart <= K_APART)
    print(f"{'planted':18} {'fleets':>6} {'named':>6} {'within 10%':>10}")
    for layer, many in sorted(kinds.items()):
        print(f"{layer:18} {many:6} {good[layer]:6} {near[layer]:10}")
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
