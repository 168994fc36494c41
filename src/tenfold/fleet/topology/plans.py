"""How many members of a gang each domain takes.

A plan has domains and numbers; the nodes within a domain are chosen later.
"""

from collections.abc import Iterator
from itertools import islice

from tenfold.fleet.topology.domains import Tally

Plan = list[tuple[int, int]]
"""Domains with the number of members for each."""


def packed(tally: Tally, members: int) -> Plan | None:
    """Return a plan on as few domains as possible; the last is the tightest that fits the rest."""
    plan: Plan = []
    used: dict[int, None] = {}
    for domain in tally.from_emptiest():
        if tally.counts[domain] >= members:
            last = next(d for d in tally.from_tightest(members) if d not in used)
            plan.append((last, members))
            return plan
        plan.append((domain, tally.counts[domain]))
        used[domain] = None
        members -= tally.counts[domain]
    return None


def balanced(tally: Tally, members: int) -> Iterator[Plan]:
    """Yield plans of equal parts, on the fewest domains first; parts differ by at most one."""
    for parts in range(1, min(members, tally.count_with_free(1)) + 1):
        small, larger = divmod(members, parts)
        if tally.count_with_free(small) < parts or tally.count_with_free(small + 1) < larger:
            continue
        plan = [(domain, small + 1) for domain in islice(tally.from_tightest(small + 1), larger)]
        taken = dict(plan)
        others = (domain for domain in tally.from_tightest(small) if domain not in taken)
        yield plan + [(domain, small) for domain in islice(others, parts - larger)]


def spread(tally: Tally, members: int) -> Plan | None:
    """Return a plan over as many domains as possible, one member at a time, emptiest first."""
    order = list(islice(tally.from_emptiest(), members))
    parts = dict.fromkeys(order, 0)
    while order and members:
        turn = order[:members]
        for domain in turn:
            parts[domain] += 1
        members -= len(turn)
        order = [domain for domain in order if parts[domain] < tally.counts[domain]]
    return None if members else list(parts.items())
