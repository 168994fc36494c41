"""The latest requests that had a key: one that comes twice at once is admitted once.

Older ones are found in the journal before a request is handed to the loop. Here are those that
may have been admitted after somebody looked there: as many as can wait in the inbox, and more.
"""

from collections.abc import Iterable

from msgspec import Struct

from tenfold.model.job.submission import SubmitKey
from tenfold.model.reason import Reason

KEYS_KEPT_MAX = 50_000
"""Keys in memory; the inbox holds 10,000 requests."""


class AdmittedRequest(Struct, frozen=True):
    """A request that was admitted, and the number of its first job."""

    digest: str
    number: int


class RecentKeys:
    """Requests by team and key, the oldest first."""

    def __init__(self, known: Iterable[tuple[SubmitKey, int]] = ()) -> None:
        self._known: dict[tuple[str, str], AdmittedRequest] = {}
        for key, number in known:
            self.note(key, number)

    def find(self, key: SubmitKey) -> int | Reason | None:
        """Return the number of the first job that was admitted under a key.

        None where nothing was, and a reason where something else was.
        """
        known = self._known.get((key.team, key.key))
        return None if known is None else match_key(key, known.digest, known.number)

    def note(self, key: SubmitKey, number: int) -> None:
        """Keep a key; the oldest goes where there are too many."""
        name = (key.team, key.key)
        self._known.pop(name, None)
        self._known[name] = AdmittedRequest(key.digest, number)
        if len(self._known) > KEYS_KEPT_MAX:
            del self._known[next(iter(self._known))]


def match_key(key: SubmitKey, digest: str, number: int) -> int | Reason:
    """Return the number of what was admitted under a key, if it is what is asked for now."""
    if digest == key.digest:
        return number
    return Reason("key-taken", {"key": key.key})
