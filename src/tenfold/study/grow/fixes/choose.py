"""Choose the fix of a break: the cheapest relief with which the whole fleet goes further.

A single relief that is enough comes before several together, unless those cost less. A switch of
the scheduler is offered next to it as an alternative, and is the fix only if there is no other.
"""

from collections.abc import Iterable, Sequence
from math import inf
from typing import NamedTuple

from tenfold.study.grow.attribute import RAISED, Attribution
from tenfold.study.grow.constraint_set import ConstraintSet
from tenfold.study.grow.fixes.size import fewest_units
from tenfold.study.grow.layer import Constraint
from tenfold.study.grow.question import GrowQuestion
from tenfold.study.grow.relief import Relief, combined
from tenfold.study.grow.search import Bottleneck, find_bottleneck
from tenfold.study.grow.state import State

HELPS = 1.02
"""A relief must raise the factor by at least this, unless another break is as close."""
CLEARLY = 1.05
COMPANIONS_MOST = 3
"""New nodes may need power, ports and floor at once; a relief that needs more is rejected."""
NO_FIX = "no known fix"
SPENT = "search stopped: simulation budget exhausted"
NOT_MINIMAL = "may be more than needed: the simulation budget is used up"
SIZING_SHARE = 0.5
"""Share of the simulation budget left that finding the size of a relief may use."""
TRIED_MOST = 2
"""Fixes named that were tried and are not enough."""


class Step(NamedTuple):
    """A relief, the fleet with it, and where that breaks."""

    relief: Relief
    state: State
    then: Bottleneck

    @property
    def reach(self) -> float:
        """The factor that the fleet reaches; beyond all factors requested it is infinite."""
        return inf if self.then.k is None else self.then.k


class Choice(NamedTuple):
    """The step taken, other ways out, and what there is to say about it."""

    step: Step | None
    alternatives: tuple[Step, ...]
    said: str = ""


class Chooser:
    """Chooses the fix of one break of a state."""

    def __init__(
        self, state: State, constraint_set: ConstraintSet, cause: Attribution, k: float
    ) -> None:
        self.state = state
        self.constraint_set = constraint_set
        self.cause = cause
        self.k = k
        self.target = target_of(constraint_set.question, cause)
        self._notes: dict[str, str] = {}
        self._tried: list[str] = []

    def choose(self) -> Choice:
        """Return the cheapest step that is enough, or else the first that helps."""
        reliefs = _reliefs(self.cause.constraints, self.target)
        found = self._found([one for one in reliefs if not one.scheduler])
        switches = [
            step
            for relief in reliefs
            if relief.scheduler and not self.constraint_set.spent
            for step in [self._taken(relief)]
            if self._helps(step)
        ]
        best = min(found, key=self._preference, default=None)
        if best is None and switches:
            best, switches = switches[0], switches[1:]
        if best is not None:
            said = best.relief.sentence
            notes = (note for of, note in self._notes.items() if said.startswith(of))
            return Choice(best, tuple(switches), next(notes, ""))
        return Choice(None, (), self._why_none(reliefs))

    def _found(self, reliefs: Sequence[Relief]) -> list[Step]:
        """Return steps that help: those tried until one is free, or enough by itself."""
        found: list[Step] = []
        for relief in reliefs:
            if self.constraint_set.spent:
                break
            single = self._taken(self._sized(relief))
            if self._enough(single) or (self._helps(single) and not relief.usd_per_month):
                return [*found, single] if relief.usd_per_month else [single]
            step = single if self._helps(single) else self._with_companions(single)
            if step is not None:
                found.append(step)
            else:
                self._tried.append(single.relief.sentence)
        return found

    def _sized(self, relief: Relief) -> Relief:
        """Return a relief with the fewest units after which its layers hold up to the target."""

        def enough(sized: Relief) -> bool:
            relieved = sized.apply(self.state)
            return all(
                self.constraint_set.holds(relieved, constraint, self.target)
                for constraint in self.cause.constraints
            )

        until = self.constraint_set.budget_part(SIZING_SHARE)
        found = fewest_units(relief, enough, lambda: self.constraint_set.runs.jobs > until)
        if not found.minimal:
            self._notes[found.relief.sentence] = NOT_MINIMAL
        return found.relief

    def _with_companions(self, step: Step) -> Step | None:
        """Return a step with the reliefs of the layers that it overloads, if that helps."""
        for _ in range(COMPANIONS_MOST):
            found = self._joined(step)
            if found is None:
                return None
            if self._helps(found):
                return found
            step = found
        return None

    def _joined(self, step: Step) -> Step | None:
        """Return a step combined with a relief of the layer that it overloads; None without one.

        Of several reliefs, the first after which that layer is no longer the bottleneck.
        """
        overloaded = step.then.constraint
        if overloaded is None:
            return None
        for more in overloaded.reliefs(self.target):
            if more.scheduler:
                continue
            both = self._taken(combined([step.relief, more]))
            later = both.then.constraint
            if later is None or later.key != overloaded.key or both.reach > step.reach:
                return both
        return None

    def _taken(self, relief: Relief) -> Step:
        relieved = relief.apply(self.state)
        most = self.constraint_set.question.most
        return Step(relief, relieved, find_bottleneck(self.constraint_set.rankable(relieved), most))

    def _helps(self, step: Step) -> bool:
        """Return whether the fleet goes further, or as far as it would without the layer at all."""
        if step.reach > self.k * HELPS:
            return True
        relaxed = self.cause.k_without
        return relaxed is not None and step.reach > self.k * RAISED and step.reach * HELPS > relaxed

    def _enough(self, step: Step) -> bool:
        """Return whether the fleet reaches the target, the next break, or what it has today."""
        without = inf if self.cause.k_without is None else self.cause.k_without
        if self.k < 1 <= step.reach:
            return True
        return step.reach * HELPS > min(self.target, without) and self._helps(step)

    def _preference(self, step: Step) -> tuple[bool, bool, float, int]:
        price = step.relief.usd_per_month
        parts = step.relief.code.count("+")
        unpriced = price is None or step.relief.unpriced > 0
        return not self._enough(step), unpriced, price or 0.0, parts

    def _why_none(self, reliefs: Iterable[Relief]) -> str:
        """Say why there is no fix: none is known, none is enough, or none could be tried."""
        # A purchase is named before a switch of the scheduler.
        ordered = sorted(reliefs, key=lambda relief: relief.scheduler)
        known = [relief.sentence for relief in ordered]
        if self.constraint_set.spent:
            left = [one for one in known if one not in self._tried]
            return f"{SPENT}; next candidate, untested: {left[0]}" if left else SPENT
        if not known:
            return next((one.no_fix for one in self.cause.constraints if one.no_fix), NO_FIX)
        tried = self._tried or known
        more = f", and {len(tried) - TRIED_MOST} more" if len(tried) > TRIED_MOST else ""
        return f"no fix is enough; tried: {'; '.join(tried[:TRIED_MOST])}{more}"


def target_of(question: GrowQuestion, cause: Attribution) -> float:
    """Return the factor to size a relief for: a requested factor clearly past the next break.

    A relief sized for the next break alone would have to be bought again right after it.
    """
    rival = question.most if cause.k_without is None else cause.k_without
    required = [factor for factor in question.to if factor > rival * CLEARLY]
    return min(required, default=question.most)


def _reliefs(constraints: Sequence[Constraint], target: float) -> list[Relief]:
    """Return the reliefs of one constraint, or for several the cheapest of each combined."""
    found = [constraint.reliefs(target) for constraint in constraints]
    if len(found) == 1:
        return found[0]
    plain = [[relief for relief in some if not relief.scheduler] for some in found]
    return [combined([some[0] for some in plain])] if all(plain) else []
