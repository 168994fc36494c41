"""What clients may find under each key, after all that was acknowledged and all that was not."""

import hashlib
from typing import Literal

ABSENT = ""
"""In place of a digest: the key has no object."""

NOTHING = frozenset([ABSENT])
Judgement = Literal["right", "lost", "wrong", "back"]


def digest_of(data: bytes) -> str:
    """Return the hash by which an object is recognised."""
    return hashlib.sha256(data).hexdigest()


class Expected:
    """What one client knows of its keys. A request without an answer leaves two possibilities."""

    def __init__(self) -> None:
        self._possible: dict[str, frozenset[str]] = {}
        self._before: tuple[str, frozenset[str]] | None = None
        self.acknowledged = 0
        self.unanswered = 0

    @property
    def keys(self) -> list[str]:
        """Return every key that was ever written."""
        return list(self._possible)

    def possible(self, key: str) -> frozenset[str]:
        """Return the digests that the key may have."""
        return self._possible.get(key, NOTHING)

    def is_sure(self, key: str) -> bool:
        """Return whether an object that was acknowledged must be there."""
        return ABSENT not in self.possible(key)

    def begin(self, key: str, digest: str) -> None:
        """Note a write, or a delete, that was sent."""
        self._before = key, self.possible(key)
        self._possible[key] = self.possible(key) | {digest}

    def done(self, key: str, digest: str) -> None:
        """Note that it was acknowledged."""
        self._before = None
        self._possible[key] = frozenset([digest])
        self.acknowledged += 1

    def fail(self, *, was_sent: bool) -> None:
        """Note that the last request has no answer; one that was never sent changed nothing."""
        if was_sent:
            self.unanswered += 1
        elif self._before is not None:
            key, possible = self._before
            self._possible[key] = possible
        self._before = None

    def restore(self, key: str, digests: frozenset[str]) -> None:
        """Note that a write was refused because of what is there."""
        self._possible[key] = digests

    def judge(self, key: str, found: str) -> Judgement:
        """Judge what a read found: a digest, or ABSENT."""
        possible = self.possible(key)
        if found in possible:
            return "right"
        if found == ABSENT:
            return "lost"
        return "back" if ABSENT in possible else "wrong"
