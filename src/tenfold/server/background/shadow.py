"""Run a shadow policy behind the loop, with at most a quarter of the time, never in its way."""

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

PAUSE_FACTOR = 3
"""Pause for this many times as long as the shadow took: it shares the interpreter with the loop."""
POLL_S = 1.0
"""How often to look for a new cycle."""
RETRY_S = 5.0
"""How long to wait after the journal did not answer."""
PROGRESS_S = 60.0
"""How often to log progress if nothing differs."""
CYCLE_S_MAX = 30.0
"""A shadow that takes longer for one cycle is stopped. An assumption: no cycle takes so long."""
END_S = 5.0
_LOG = logging.getLogger("tenfold.server")


class ShadowRunner(BackgroundTask):
    """Runs a shadow until it is stopped or fails; it resumes where it was, or at the next cycle."""

    def __init__(self, store: Store, policy: Policy, log: Path) -> None:
        super().__init__("the shadow", END_S)
        self._store, self._policy, self._path = store, policy, log
        self._shadow: LiveShadow | None = None
        self._failure = ""
        self._cycle_since_s: float | None = None
        """When it started on the current cycle; None between cycles."""

    def status(self) -> ShadowStatus:
        """Return its progress, and why it stopped if it did."""
        shadow = self._shadow
        if shadow is None:
            return ShadowStatus(failure=self._failure or "not started yet")
        status_now, since_s = shadow.status(), self._cycle_since_s
        if (
            since_s is not None
            and perf_counter() - since_s > CYCLE_S_MAX
            and not status_now.failure
        ):
            stuck = f"stuck on one cycle for {perf_counter() - since_s:.0f} s"
            return replace(status_now, failure=stuck)
        return status_now

    def work(self) -> None:
        """Run the shadow until it is stopped or fails."""
        try:
            log = ShadowLog(self._path)
        except OSError as error:
            self._fail(f"cannot write its log: {error.strerror or error}")
            return
        try:
            self._follow(log)
        except Exception as error:
            # Whatever breaks a policy on trial, the fleet continues without it.
            self._fail(f"{type(error).__name__}: {error}")
            if self._shadow is not None and not self._shadow.failure:
                self._shadow.end(self._failure)
        finally:
            log.close()

    def _follow(self, log: ShadowLog) -> None:
        logged = perf_counter()
        while not self.stopping.is_set():
            try:
                pause_s = self._once(log) if self.may_run() else POLL_S
                if perf_counter() - logged > PROGRESS_S and self._shadow is not None:
                    logged = perf_counter()
                    self._shadow.mark()
            except TenfoldError as error:
                _LOG.log(logging.WARNING, "the shadow is waiting: %s", error)
                pause_s = RETRY_S
            if self._shadow is not None and self._shadow.failure:
                self._fail(self._shadow.failure)
                return
            self.stopping.wait(pause_s)
        if self._shadow is not None:
            self._shadow.mark()

    def _once(self, log: ShadowLog) -> float:
        """Run one cycle; return how long to pause."""
        if self._shadow is None:
            self._shadow = LiveShadow(self._store, self._policy, log)
        self._cycle_since_s = begun = perf_counter()
        found = self._shadow.step()
        self._cycle_since_s = None
        took_s = perf_counter() - begun
        if took_s > CYCLE_S_MAX:
            self._shadow.end(f"it took {took_s:.0f} s for one cycle")
        return PAUSE_FACTOR * took_s if found else POLL_S

    def _fail(self, why: str) -> None:
        self._failure = why
        _LOG.error("shadow policy `%s` stopped: %s", self._policy.name, why)


class ShadowCollector(Collector):
    """Progress of a shadow, read at each scrape."""

    def __init__(self, shadow_runner: ShadowRunner) -> None:
        self._runner = shadow_runner

    def describe(self) -> Iterable[Metric]:
        """Return nothing: registering must not read the journal."""
        return ()

    def collect(self) -> Iterable[Metric]:
        """Read its progress."""
        status_now = self._runner.status()
        yield CounterMetricFamily(
            "tenfold_shadow_cycles", "Cycles the shadow has decided.", value=status_now.cycles
        )
        yield CounterMetricFamily(
            "tenfold_shadow_cycles_differing",
            "Cycles in which the shadow would have decided differently.",
            value=status_now.cycles_differing,
        )
        yield GaugeMetricFamily(
            "tenfold_shadow_behind_events",
            "Events the shadow has not read yet.",
            value=status_now.events_behind,
        )
        yield GaugeMetricFamily(
            "tenfold_shadow_up", "1 while the shadow runs.", value=int(not status_now.failure)
        )
