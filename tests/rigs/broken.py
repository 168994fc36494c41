"""The laws by name, how often each was looked at, and what is raised where one does not hold.

A law that was never looked at proves nothing. Every law is declared here, each look is counted,
and whoever runs many worlds asks at the end which laws were never met.
"""

from collections import Counter
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager

PLACING = (
    "a-refusal-is-true",
    "a-resize-keeps-its-bounds",
    "alike-jobs-keep-their-order",
    "an-order-is-not-repeated",
    "deciding-changes-nothing",
    "deciding-twice-is-the-same",
    "fresh-decides-as-warm",
    "gangs-are-whole",
    "gangs-stand-where-they-may",
    "kept-index-is-the-built-one",
    "no-start-on-a-lost-node",
    "only-who-waits-is-promised",
    "room-is-used",
    "the-loop-goes-on",
    "the-state-is-sound",
    "the-version-counts-facts",
    "time-goes-on",
    "who-may-not-be-stopped-is-not",
)
"""What every placing decider and the loop keep."""

JOURNAL = (
    "a-job-comes-once",
    "facts-follow-orders",
    "idling-begins-and-ends",
    "no-job-is-lost",
    "saved-work-is-kept",
    "the-journal-replays",
    "time-limits-are-kept",
    "work-takes-its-time",
)
"""What facts keep, whoever decided."""

GOVERNED = (
    "arrays-keep-to-their-most",
    "broken-gangs-go-first",
    "jobs-come-after-others",
    "nobody-gives-way-in-turn",
    "nobody-is-stopped-in-vain",
    "nobody-is-woken-for-nothing",
    "off-peak-jobs-wait-for-it",
    "only-who-idles-is-reclaimed",
    "only-who-owes-room-is-stopped",
    "quotas-are-kept",
    "racks-keep-to-their-power",
    "runs-have-their-least-time",
    "stops-are-for-who-waits",
    "stops-keep-to-their-rate",
    "stops-say-for-whom",
    "who-asks-has-waited",
    "who-fills-a-hole-is-gone-in-time",
    "who-is-owed-room-gets-it",
    "windows-are-kept",
)
"""What governed placement keeps beside."""

LAWS = (*PLACING, *JOURNAL, *GOVERNED)

times: Counter[str] = Counter()
"""How often each law was looked at in this process."""


class LawBroken(AssertionError):
    """A law of the core does not hold."""

    def __init__(self, law: str, sentence: str) -> None:
        super().__init__(f"law `{law}`: {sentence}")
        self.law = law


def hold(law: str, holds: bool, sentence: str) -> None:
    """Count a look at a law, and raise where it does not hold."""
    assert law in _DECLARED, f"law `{law}` is declared nowhere"
    times[law] += 1
    if not holds and law not in _overlooked:
        raise LawBroken(law, sentence)


_DECLARED = frozenset(LAWS)
_overlooked: list[str] = []


@contextmanager
def overlooked(laws: Iterable[str]) -> Generator[None, None, None]:
    """Let some laws be broken for a while, to learn what the others find."""
    before = list(_overlooked)
    _overlooked.extend(laws)
    try:
        yield
    finally:
        _overlooked[:] = before


def never_met(counted: Mapping[str, int], laws: Iterable[str] = LAWS) -> list[str]:
    """Return the laws that were not looked at once."""
    return [law for law in laws if not counted.get(law)]


def table(counted: Mapping[str, int]) -> str:
    """Return every law with how often it was looked at, a line each."""
    return "\n".join(f"{counted.get(law, 0):>12,}  {law}" for law in sorted(LAWS))
