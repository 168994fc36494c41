"""The thread of a shadow: behind the loop, a quarter of the time at most, and never in its way."""

import logging
from collections.abc import Iterable
from pathlib import Path
from threading import Event, Thread
from time import perf_counter

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tenfold.compose.live_shadow import LiveShadow, ShadowStanding
from tenfold.files.shadow_log import ShadowLog
from tenfold.journal.store import Store
from tenfold.model.errors import TenfoldError
from tenfold.model.policy import Policy

REST = 3
"""Times as long as a shadow thought it rests: the loop and the server share its interpreter."""
POLL_S = 1.0
"""How often it looks for a new cycle where there was none."""
AGAIN_S = 5.0
"""From a journal that does not answer to the next try."""
MARK_S = 60.0
"""How often it writes down how far it has come where nothing differs."""
THOUGHT_S_MOST = 30.0
"""A shadow that takes longer over one cycle is ended. An assumption: no cycle may take so long."""
END_S = 10.0
_LOG = logging.getLogger("tenfold.server")


class Shadowing:
    """Runs a shadow until it is stopped, or breaks."""

    def __init__(self, store: Store, policy: Policy, log: Path) -> None:
        self._store, self._policy, self._path = store, policy, log
        self._ends = Event()
        self._shadow: LiveShadow | None = None
        self._failure = ""
        self._thread = Thread(target=self.follow, name="tenfold-shadow", daemon=True)

    def start(self) -> None:
        """Begin where it was the last time, or with what comes next."""
        self._thread.start()

    def stop(self) -> None:
        """End it, with a note of how far it has come."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join(END_S)

    def standing(self) -> ShadowStanding:
        """Return how far it has come; what ended it where it did not go on."""
        shadow = self._shadow
        if shadow is None:
            return ShadowStanding(failure=self._failure or "it has not begun")
        return shadow.standing()

    def follow(self) -> None:
        """Ask the shadow until it is stopped or breaks: what the thread does."""
        try:
            log = ShadowLog(self._path)
        except OSError as error:
            self._broke(f"its log cannot be written: {error.strerror or error}")
            return
        try:
            self._follow(log)
        except Exception as error:
            # Whatever breaks a policy on trial, the fleet goes on without it.
            self._broke(f"{type(error).__name__}: {error}")
            if self._shadow is not None and not self._shadow.failure:
                self._shadow.end(self._failure)
        finally:
            log.close()

    def _follow(self, log: ShadowLog) -> None:
        marked = perf_counter()
        while not self._ends.is_set():
            try:
                rest_s = self._once(log)
                if perf_counter() - marked > MARK_S and self._shadow is not None:
                    marked = perf_counter()
                    self._shadow.mark()
            except TenfoldError as error:
                _LOG.log(logging.WARNING, "the shadow waits: %s", error)
                rest_s = AGAIN_S
            if self._shadow is not None and self._shadow.failure:
                self._broke(self._shadow.failure)
                return
            self._ends.wait(rest_s)
        if self._shadow is not None:
            self._shadow.mark()

    def _once(self, log: ShadowLog) -> float:
        """Ask about one cycle; return how long to rest."""
        if self._shadow is None:
            self._shadow = LiveShadow(self._store, self._policy, log)
        begun = perf_counter()
        found = self._shadow.step()
        thought_s = perf_counter() - begun
        if thought_s > THOUGHT_S_MOST:
            self._shadow.end(f"it took {thought_s:.0f} s over one cycle")
        return REST * thought_s if found else POLL_S

    def _broke(self, why: str) -> None:
        self._failure = why
        _LOG.error("the shadow `%s` is left out from now on: %s", self._policy.name, why)


class ShadowMeters(Collector):
    """What a shadow has come to, read when somebody scrapes."""

    def __init__(self, shadowing: Shadowing) -> None:
        self._shadowing = shadowing

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the journal."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read how far it has come."""
        told = self._shadowing.standing()
        yield CounterMetricFamily(
            "tenfold_shadow_cycles", "Cycles that the shadow was asked about.", value=told.cycles
        )
        yield CounterMetricFamily(
            "tenfold_shadow_cycles_differing",
            "Cycles in which the shadow would have decided otherwise.",
            value=told.cycles_differing,
        )
        yield GaugeMetricFamily(
            "tenfold_shadow_behind_events",
            "Events that the shadow does not know of yet.",
            value=told.events_behind,
        )
        yield GaugeMetricFamily(
            "tenfold_shadow_up", "1 while the shadow goes on.", value=int(not told.failure)
        )
