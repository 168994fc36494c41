"""What was reported as lost with its site: it may still run there, and must be stopped.

The list is on disk before the loss is reported, so that a later control plane stops these attempts
too, and reports none of them as running.

    HOME/sites.json     {"lost": [SITE], "given_up": [{"site", "job", "attempt", "at_ms"}]}
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from tenfold.live.local.attempt.folder import write_durably
from tenfold.model.ids import JobId, SiteId
from tenfold.model.units import Millis

FILE = "sites.json"
Key = tuple[JobId, int]


class GivenUp(Struct, frozen=True):
    """One attempt that was reported as lost while its site did not answer."""

    site: SiteId
    job: JobId
    attempt: int
    at_ms: Millis

    @property
    def key(self) -> Key:
        """Its job and number."""
        return self.job, self.attempt


class _Content(Struct):
    lost: list[SiteId] = []
    given_up: list[GivenUp] = []


class LossRecord:
    """The sites that are lost, and the attempts that were given up with them."""

    def __init__(self, folder: str) -> None:
        """Raises `OSError` or `msgspec.DecodeError` if there is a file and it cannot be read."""
        self._path = f"{folder}/{FILE}"
        try:
            with open(self._path, "rb") as file:
                content = msgspec.json.decode(file.read(), type=_Content)
        except FileNotFoundError:
            content = _Content()
        self.lost: dict[SiteId, None] = dict.fromkeys(content.lost)
        self.given_up: dict[Key, GivenUp] = {one.key: one for one in content.given_up}

    def lose(self, site: SiteId, keys: Sequence[Key], at_ms: Millis) -> None:
        """Record that a site is lost, with these attempts; it is on disk when this returns."""
        self.lost[site] = None
        for job, attempt in keys:
            self.given_up[job, attempt] = GivenUp(site, job, attempt, at_ms)
        self._write()

    def found(self, site: SiteId) -> None:
        """Record that a site is back."""
        self.lost.pop(site, None)
        self._write()

    def over(self, keys: Iterable[Key]) -> None:
        """Record that nothing is left of attempts that were given up."""
        if [1 for key in keys if self.given_up.pop(key, None) is not None]:
            self._write()

    def of(self, site: SiteId) -> list[Key]:
        """Return what was given up at a site and may still run."""
        return [one.key for one in self.given_up.values() if one.site == site]

    def _write(self) -> None:
        content = _Content(list(self.lost), list(self.given_up.values()))
        write_durably(self._path, msgspec.json.encode(content).decode())
