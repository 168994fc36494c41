"""Sample the usage of jobs and report idle ones to the loop, in its own thread.

The journal records which jobs are idle, and every sample is compared with it. A restarted loop
therefore receives the report again, and this thread only keeps the time since usage has been low.
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
"""Between two samples. An assumption: short compared to the minutes until a job counts as idle."""
SAMPLES_MIN = 4
"""Samples within the time after which a job counts as idle."""
END_S = 15.0
_PLAIN = Terms()
_LOG = logging.getLogger("tenfold.server")


class UsageSampler(BackgroundTask):
    """Samples usage while it runs."""

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
        """Report, before the loop starts, that there are no samples yet."""
        self._inbox.put(ReportActivity(is_first_report=True), self._on_announced)

    def once(self) -> tuple[JobActivity, ...]:
        """Take one sample, and report changes to the loop."""
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
        """Update listings at once; what is reported here is on disk."""
        if answer.refused is not None:
            _LOG.warning("idle jobs were not recorded: %s", render(answer.refused))
        elif (fleet := self._fleet()) is not None:
            self._usage.idle = fleet.idle.copy()

    def _on_announced(self, answer: Answer) -> None:
        if answer.refused is not None and answer.refused.code == "not-known":
            self.announce()

    def work(self) -> None:
        """Sample again and again."""
        while not self.stopping.wait(self._every_s):
            try:
                self.once()
            except Exception:
                # Without samples no job counts as idle, and everything else continues.
                _LOG.exception("could not measure the usage of jobs")


def _may_idle(run: Run) -> bool:
    """Tell whether a job holds what others could use: GPUs, or an interactive session."""
    shape = run.job.shape
    return bool(shape.gpus or shape.milli or (run.job.terms or _PLAIN).kind == "interactive")
