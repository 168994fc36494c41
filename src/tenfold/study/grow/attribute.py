"""Find the layer that causes a break: the one without which the fleet would go further.

The lowest factor alone confuses effects with causes: a slow tier lengthens jobs, and the queue
seems to break. So each candidate is relaxed, as if its capacity had no limit, and the whole is
searched again. Relaxing is not a relief: it costs nothing and changes nothing else.
"""

from itertools import combinations
from math import inf
from typing import NamedTuple

from tenfold.study.grow.layer import Constraint, relax
from tenfold.study.grow.search import Bottleneck, ConstraintsOf, evaluate, find_bottleneck
from tenfold.study.grow.state import State

RAISED = 1.001
"""A smaller gain is search noise."""
CANDIDATES_MOST = 6
LOADED = 0.5
"""A resource used less than this does not slow jobs down."""


class Attribution(NamedTuple):
    """The constraints that cause a break together, usually one.

    `k_without` is where the fleet breaks without them; None if nothing else breaks.
    """

    constraints: tuple[Constraint, ...]
    k_without: float | None


class _Trial(NamedTuple):
    constraints: tuple[Constraint, ...]
    k: float | None

    @property
    def reach(self) -> float:
        return inf if self.k is None else self.k


def attribute(
    state: State, constraints_of: ConstraintsOf, now: Bottleneck, most: float
) -> Attribution:
    """Return the constraints whose relaxing raises the factor of the whole fleet.

    If no single one does, a pair is returned; if no pair does, all that break at once.
    """
    assert now.constraint is not None, "only a break has a cause"
    assert now.k is not None, "only a break has a cause"
    overlapping = _candidates(state, constraints_of, now)
    for many in (1, 2):
        trials = [
            _relaxed_trial(state, constraints_of, group, most)
            for group in combinations(overlapping, many)
        ]
        better = [trial for trial in trials if trial.reach > now.k * RAISED]
        if better:
            best = min(better, key=_preference)
            return Attribution(best.constraints, best.k)
    at_once = tuple(
        constraint
        for constraint in now.overlapping
        if (evaluate(constraint, most).broken.k or inf) <= now.k * RAISED
    )
    together = _relaxed_trial(state, constraints_of, at_once, most)
    if together.reach > now.k * RAISED:
        return Attribution(together.constraints, together.k)
    return Attribution((now.constraint,), now.k)


def _candidates(
    state: State, constraints_of: ConstraintsOf, now: Bottleneck
) -> tuple[Constraint, ...]:
    """Return the overlapping constraints, and those that may slow jobs down if waits break.

    Jobs lose time to each other before a tier is too slow on average, and waits follow: the shared
    resource is then the cause although its own factor is higher.
    """
    assert now.k is not None, "only a break has a cause"
    known = {constraint.key: constraint for constraint in now.overlapping[:CANDIDATES_MOST]}
    if any(constraint.of.shows_slow_jobs for constraint in now.overlapping):
        known |= {
            constraint.key: constraint
            for constraint in constraints_of(state)
            if constraint.unlimited is not None and constraint.utilisation(max(1.0, now.k)) > LOADED
        }
    return tuple(known.values())


def _relaxed_trial(
    state: State, constraints_of: ConstraintsOf, group: tuple[Constraint, ...], most: float
) -> _Trial:
    without = relax(state, *group)
    found = find_bottleneck(constraints_of(without), most)
    return _Trial(group, found.k)


def _preference(trial: _Trial) -> tuple[float, tuple[int, ...], tuple[str, ...]]:
    """Return a sort key: furthest first, then causes before effects, then by name."""
    ranks = tuple(constraint.cause_rank for constraint in trial.constraints)
    return -trial.reach, ranks, tuple(constraint.key for constraint in trial.constraints)
