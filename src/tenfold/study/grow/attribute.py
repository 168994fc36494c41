"""Name the layer that breaks first by lifting: the one without which the fleet would go further.

The lowest factor alone names effects for causes: a starved tier lengthens jobs, and the queue
seems to break. Each candidate is therefore lifted, as if its capacity had no limit, and the
whole is searched again. Lifting is not relief: it costs nothing and changes nothing else.
"""

from itertools import combinations
from math import inf
from typing import NamedTuple

from tenfold.study.grow.layer import Law, lift
from tenfold.study.grow.search import Joint, LawsOf, joint, search_law
from tenfold.study.grow.state import State

RAISED = 1.001
"""Less than this is the noise of a search, not a fleet that goes further."""
CANDIDATES_MOST = 6
STRAINED = 0.5
"""What is used by less than this slows nobody down for long."""


class Attribution(NamedTuple):
    """The laws that are to blame together, most often one.

    `k_without` is where the fleet breaks without them; None where nothing else breaks.
    """

    laws: tuple[Law, ...]
    k_without: float | None


class _Trial(NamedTuple):
    laws: tuple[Law, ...]
    k: float | None

    @property
    def reach(self) -> float:
        return inf if self.k is None else self.k


def attribute(state: State, laws_of: LawsOf, now: Joint, most: float) -> Attribution:
    """Return whose lifting raises the factor of the whole.

    Where no single one's does, a pair is named; where no pair's does, all that break at once.
    """
    assert now.law is not None, "only a break has a cause"
    assert now.k is not None, "only a break has a cause"
    rivals = _candidates(state, laws_of, now)
    for many in (1, 2):
        trials = [_lifted(state, laws_of, group, most) for group in combinations(rivals, many)]
        better = [trial for trial in trials if trial.reach > now.k * RAISED]
        if better:
            best = min(better, key=_preference)
            return Attribution(best.laws, best.k)
    at_once = tuple(
        law for law in now.rivals if (search_law(law, most).broken.k or inf) <= now.k * RAISED
    )
    together = _lifted(state, laws_of, at_once, most)
    if together.reach > now.k * RAISED:
        return Attribution(together.laws, together.k)
    return Attribution((now.law,), now.k)


def _candidates(state: State, laws_of: LawsOf, now: Joint) -> tuple[Law, ...]:
    """Return the rivals, and what may slow jobs down where these are seen to be slowed.

    Jobs lose time to each other before a tier is too slow on average, and waits follow: what
    they share is then to blame although its own factor is further away.
    """
    assert now.k is not None, "only a break has a cause"
    known = {law.key: law for law in now.rivals[:CANDIDATES_MOST]}
    if any(law.of.shows_slow_jobs for law in now.rivals):
        known |= {
            law.key: law
            for law in laws_of(state)
            if law.unlimited is not None and law.strain(max(1.0, now.k)) > STRAINED
        }
    return tuple(known.values())


def _lifted(state: State, laws_of: LawsOf, group: tuple[Law, ...], most: float) -> _Trial:
    without = lift(state, *group)
    found = joint(laws_of(without), most)
    return _Trial(group, found.k)


def _preference(trial: _Trial) -> tuple[float, tuple[int, ...], tuple[str, ...]]:
    """The furthest first; of equals causes before effects, then by name."""
    ranks = tuple(law.cause_rank for law in trial.laws)
    return -trial.reach, ranks, tuple(law.key for law in trial.laws)
