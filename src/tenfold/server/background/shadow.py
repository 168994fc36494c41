"""The thread of a shadow: behind the loop, a quarter of the time at most, and never in its way."""

import logging
from collections.abc import Iterable
from pathlib import Path
from time import perf_counter

from msgspec.structs import replace
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from tenfold.compose.live_shadow import LiveShadow, ShadowStatus
from tenfold.files.records.shadow_log import ShadowLog
from tenfold.journal.store import Store
from tenfold.model.errors import TenfoldError
from tenfold.model.policy.policy import Policy
from tenfold.server.background.background import BackgroundTask

REST = 3
"""Times as long as a shadow thought it rests: the loop and the server share its interpreter."""
POLL_S = 1.0
"""How often it looks for a new cycle where there was none."""
AGAIN_S = 5.0
"""From a journal that does not answer to the next try."""
MARK_S = 60.0
"""How often it writes down how far it has come where nothing differs."""
CYCLE_S_MAX = 30.0
"""A shadow that takes longer over one cycle is ended. An assumption: no cycle may take so long."""
END_S = 5.0
_LOG = logging.getLogger("tenfold.server")


class ShadowRunner(BackgroundTask):
    """Runs a shadow until it is stopped, or breaks: from where it was, or with what comes next."""

    def __init__(self, store: Store, policy: Policy, log: Path) -> None:
        super().__init__("the shadow", END_S)
        self._store, self._policy, self._path = store, policy, log
        self._shadow: LiveShadow | None = None
        self._failure = ""
        self._thinks_since_s: float | None = None
        """When it was asked about the cycle that it has not answered yet."""

    def status(self) -> ShadowStatus:
        """Return how far it has come; what ended it where it did not go on."""
        shadow = self._shadow
        if shadow is None:
            return ShadowStatus(failure=self._failure or "it has not begun")
        told, since_s = shadow.status(), self._thinks_since_s
        if since_s is not None and perf_counter() - since_s > CYCLE_S_MAX and not told.failure:
            said = f"it has thought about one cycle for {perf_counter() - since_s:.0f} s"
            return replace(told, failure=said)
        return told

    def work(self) -> None:
        """Ask the shadow until it is stopped or breaks."""
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
        while not self.stopping.is_set():
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
            self.stopping.wait(rest_s)
        if self._shadow is not None:
            self._shadow.mark()

    def _once(self, log: ShadowLog) -> float:
        """Ask about one cycle; return how long to rest."""
        if self._shadow is None:
            self._shadow = LiveShadow(self._store, self._policy, log)
        self._thinks_since_s = begun = perf_counter()
        found = self._shadow.step()
        self._thinks_since_s = None
        thought_s = perf_counter() - begun
        if thought_s > CYCLE_S_MAX:
            self._shadow.end(f"it took {thought_s:.0f} s over one cycle")
        return REST * thought_s if found else POLL_S

    def _broke(self, why: str) -> None:
        self._failure = why
        _LOG.error("the shadow `%s` is left out from now on: %s", self._policy.name, why)


class ShadowCollector(Collector):
    """What a shadow has come to, read when somebody scrapes."""

    def __init__(self, shadow_runner: ShadowRunner) -> None:
        self._shadowing = shadow_runner

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the journal."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read how far it has come."""
        told = self._shadowing.status()
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
