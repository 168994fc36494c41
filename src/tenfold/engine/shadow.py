"""A shadow: a second decider that sees what the live one sees, and is only recorded.

It decides on the same view at the same moments, never acts and never wakes the loop, so a run
with a shadow is the same run. Its orders are never carried out, so it repeats them each cycle; a
difference is reported once, until it changes.
"""

from collections.abc import Sequence

from msgspec import Struct

from tenfold.engine.loop import Decider
from tenfold.fleet.fleet import FleetView
from tenfold.model.actions import Action, RefuseJob, StartJob, StopJob, same_decisions
from tenfold.model.decision import Decision
from tenfold.model.events import Event
from tenfold.model.ids import JobId
from tenfold.model.units import Millis


class ShadowDifference(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the two deciders would do differently in one cycle, by job."""

    at_ms: Millis
    started: tuple[JobId, ...] = ()
    """Only the shadow would start these."""
    held_back: tuple[JobId, ...] = ()
    """Only the live decider starts these."""
    elsewhere: tuple[JobId, ...] = ()
    """Both start these, on different slots."""
    stopped: tuple[JobId, ...] = ()
    """Only the shadow would stop these."""
    spared: tuple[JobId, ...] = ()
    """Only the live decider stops these."""
    refused: tuple[JobId, ...] = ()
    """Only one of the two refuses these."""


class ShadowComparison:
    """Compares a shadow with the live decider, cycle by cycle."""

    def __init__(self, shadow: Decider) -> None:
        self.name = shadow.name
        self.cycles = 0
        self.cycles_differing = 0
        self.would_start: dict[JobId, Millis] = {}
        """When the shadow would first have started a job that the live decider kept waiting."""
        self.would_stop: dict[JobId, Millis] = {}
        self.failure = ""
        """The error that ended the shadow."""
        self.last_actions: Sequence[Action] = ()
        """The shadow's last actions."""
        self._shadow = shadow
        self._in_step = False
        self._last: ShadowDifference | None = None

    def compare(
        self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None, live: Sequence[Action]
    ) -> ShadowDifference | None:
        """Ask the shadow; return what it would do differently, if not reported before."""
        if self.failure:
            return None
        try:
            # After orders that were not its own, a shadow must rebuild from the view.
            shadow = self._shadow.decide(view, now_ms, news if self._in_step else None)
        except Exception as error:
            # A policy under trial must not stop the fleet.
            self.failure = f"{type(error).__name__}: {error}"
            return None
        self.cycles += 1
        self.last_actions = shadow.actions
        self._in_step = same_decisions(shadow.actions, live)
        found = None if self._in_step else _difference(live, shadow.actions, now_ms)
        if found is None or not _is_different(found):
            self._last = None
            return None
        self.cycles_differing += 1
        for job_id in found.started:
            self.would_start.setdefault(job_id, now_ms)
        for job_id in found.stopped:
            self.would_stop.setdefault(job_id, now_ms)
        is_news = self._last is None or not _alike(found, self._last)
        self._last = found
        return found if is_news else None


class Shadowed:
    """A live decider with a shadow; to the loop it is the live one."""

    def __init__(self, live: Decider, shadow: Decider, *, most: int = 1_000) -> None:
        self.name = live.name
        self.shadow_name = shadow.name
        self.differences: list[ShadowDifference] = []
        """The first `most` differences, each noted when it first occurs."""
        self._live = live
        self._comparison = ShadowComparison(shadow)
        self._most = most

    @property
    def cycles(self) -> int:
        """Cycles in which both decided."""
        return self._comparison.cycles

    @property
    def cycles_differing(self) -> int:
        """Cycles in which they decided differently."""
        return self._comparison.cycles_differing

    @property
    def would_start(self) -> dict[JobId, Millis]:
        """When the shadow would first have started a job that the live decider kept waiting."""
        return self._comparison.would_start

    @property
    def would_stop(self) -> dict[JobId, Millis]:
        """When the shadow would first have stopped a job that the live decider kept running."""
        return self._comparison.would_stop

    @property
    def failure(self) -> str:
        """The error that ended the shadow; the live decider continues."""
        return self._comparison.failure

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return the live decider's decision."""
        decision = self._live.decide(view, now_ms, news)
        found = self._comparison.compare(view, now_ms, news, decision.actions)
        if found is not None and len(self.differences) < self._most:
            self.differences.append(found)
        return decision


def _difference(
    live: Sequence[Action], shadow: Sequence[Action], now_ms: Millis
) -> ShadowDifference:
    ours, theirs = _starts(live), _starts(shadow)
    live_stops, shadow_stops = _names(live, StopJob), _names(shadow, StopJob)
    live_refusals, shadow_refusals = _names(live, RefuseJob), _names(shadow, RefuseJob)
    return ShadowDifference(
        at_ms=now_ms,
        started=tuple(job_id for job_id in theirs if job_id not in ours),
        held_back=tuple(job_id for job_id in ours if job_id not in theirs),
        elsewhere=tuple(
            job_id for job_id, start in theirs.items() if ours.get(job_id, start) != start
        ),
        stopped=tuple(job_id for job_id in shadow_stops if job_id not in live_stops),
        spared=tuple(job_id for job_id in live_stops if job_id not in shadow_stops),
        refused=tuple(
            job_id
            for job_id in (live_refusals | shadow_refusals)
            if (job_id in live_refusals) != (job_id in shadow_refusals)
        ),
    )


def _starts(actions: Sequence[Action]) -> dict[JobId, StartJob]:
    return {action.job_id: action for action in actions if isinstance(action, StartJob)}


def _names(actions: Sequence[Action], kind: type[StopJob] | type[RefuseJob]) -> dict[JobId, None]:
    return {action.job_id: None for action in actions if isinstance(action, kind)}


def _jobs(found: ShadowDifference) -> tuple[tuple[JobId, ...], ...]:
    return (
        found.started,
        found.held_back,
        found.elsewhere,
        found.stopped,
        found.spared,
        found.refused,
    )


def _is_different(found: ShadowDifference) -> bool:
    """Whether more than the order of the same actions differs."""
    return any(_jobs(found))


def _alike(one: ShadowDifference, other: ShadowDifference) -> bool:
    return _jobs(one) == _jobs(other)
