"""Look at what jobs use, and tell the loop who idles: a thread of its own, never the loop's.

What is believed of a job stands in the journal, and every look is held against that. So a loop
that begins again is told again, and nothing here must be remembered but since when use is low.
"""

import logging
from collections.abc import Callable

from msgspec import UNSET

from tenfold.decide.detect.idle import IdleRule, IdleWatch, idle_change, observe
from tenfold.fleet.fleet import Fleet
from tenfold.live.inbox import Answer, Inbox, JobActivity, ReportActivity
from tenfold.live.usage import AttemptUsage, Probe, Usage
from tenfold.model.ids import JobId
from tenfold.model.job.job import Run
from tenfold.model.job.terms import Terms
from tenfold.model.units import SECOND, Millis
from tenfold.report.reasons.render import render
from tenfold.server.background.background import BackgroundTask

EVERY_S = 15.0
"""From one look to the next. An assumption: short beside the minutes that idling takes."""
SAMPLES_MIN = 4
"""Looks within the time after which a job idles."""
END_S = 15.0
_PLAIN = Terms()
_LOG = logging.getLogger("tenfold.server")


class UsageSampler(BackgroundTask):
    """Looks for as long as it runs."""

    def __init__(
        self,
        probe: Probe,
        rule: IdleRule,
        *,
        inbox: Inbox,
        fleet: Callable[[], Fleet | None],
        usage: Usage,
        now_ms: Callable[[], int],
    ) -> None:
        super().__init__("sampling", END_S)
        self._probe, self._rule, self._inbox = probe, rule, inbox
        self._fleet, self._usage, self._now_ms = fleet, usage, now_ms
        self._every_s = min(EVERY_S, max(1.0, rule.after_ms / SECOND / SAMPLES_MIN))
        self._watches: dict[tuple[JobId, int], IdleWatch] = {}

    def announce(self) -> None:
        """Say, before the loop begins, that nobody measured until now."""
        self._inbox.put(ReportActivity(is_first_report=True), self._on_announced)

    def once(self) -> tuple[JobActivity, ...]:
        """Look once, and tell the loop what has changed."""
        now_ms = Millis(self._now_ms())
        found = self._probe.measure(now_ms)
        self._usage.take(found)
        fleet = self._fleet()
        before, self._watches = self._watches, {}
        if fleet is None:
            return ()
        seen: list[JobActivity] = []
        for one in found.attempts:
            run = fleet.running.get(one.job_id)
            if run is not None and _may_idle(run):
                watch = before.get((one.job_id, one.attempt))
                seen += self._observe(one, run, watch, idles=one.job_id in fleet.idle)
        self._usage.idle = fleet.idle.copy()
        if seen:
            self._inbox.put(ReportActivity(tuple(seen)), self._on_answer)
        return tuple(seen)

    def _observe(
        self, one: AttemptUsage, run: Run, before: IdleWatch | None, *, idles: bool
    ) -> list[JobActivity]:
        use, rule = one.use, self._rule
        watch = observe(before, use.use_milli_most, use.at_ms, rule, idles=idles)
        self._watches[one.job_id, one.attempt] = watch
        own_ms = (run.job.terms or _PLAIN).idle_ms
        change = idle_change(watch, rule, None if own_ms is UNSET else own_ms, idles=idles)
        if change is None:
            return []
        return [JobActivity(one.job_id, one.attempt, watch.below_ms)]

    def _on_answer(self, answer: Answer) -> None:
        """Let listings know at once; what is told here is on the disk."""
        if answer.refused is not None:
            _LOG.warning("who idles was not taken note of: %s", render(answer.refused))
        elif (fleet := self._fleet()) is not None:
            self._usage.idle = fleet.idle.copy()

    def _on_announced(self, answer: Answer) -> None:
        if answer.refused is not None and answer.refused.code == "not-known":
            self.announce()

    def work(self) -> None:
        """Look again and again."""
        while not self.stopping.wait(self._every_s):
            try:
                self.once()
            except Exception:
                # Without figures nothing idles, and everything else goes on.
                _LOG.exception("what jobs use could not be measured")


def _may_idle(run: Run) -> bool:
    """Tell whether a job holds what others could use: GPUs, or a place as a session."""
    shape = run.job.shape
    return bool(shape.gpus or shape.milli or (run.job.terms or _PLAIN).kind == "interactive")
