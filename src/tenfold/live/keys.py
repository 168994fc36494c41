"""Recent idempotency keys: a request that arrives twice at once is admitted once.

Older keys are looked up in the journal before a request enters the loop. These are the ones that
may have been admitted since that lookup: more than fit in the inbox.
"""

from collections.abc import Iterable

from msgspec import Struct

from tenfold.model.job.submission import SubmitKey
from tenfold.model.reason import Reason

KEYS_KEPT_MAX = 50_000
"""Keys in memory; the inbox holds 10,000 requests."""


class AdmittedRequest(Struct, frozen=True):
    """An admitted request, and the number of its first job."""

    digest: str
    number: int


class RecentKeys:
    """Requests by team and key, oldest first."""

    def __init__(self, known: Iterable[tuple[SubmitKey, int]] = ()) -> None:
        self._known: dict[tuple[str, str], AdmittedRequest] = {}
        for key, number in known:
            self.note(key, number)

    def find(self, key: SubmitKey) -> int | Reason | None:
        """Return the number of the first job admitted with a key.

        None if there is none, and a reason if the key was used for another request.
        """
        known = self._known.get((key.team, key.key))
        return None if known is None else match_key(key, known.digest, known.number)

    def note(self, key: SubmitKey, number: int) -> None:
        """Add a key; the oldest is dropped if there are too many."""
        name = (key.team, key.key)
        self._known.pop(name, None)
        self._known[name] = AdmittedRequest(key.digest, number)
        if len(self._known) > KEYS_KEPT_MAX:
            del self._known[next(iter(self._known))]


def match_key(key: SubmitKey, digest: str, number: int) -> int | Reason:
    """Return the number admitted with a key, if it was the same request."""
    if digest == key.digest:
        return number
    return Reason("key-taken", {"key": key.key})
