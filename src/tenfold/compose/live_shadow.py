"""A shadow of a live fleet: it reads the journal behind the loop, and is only written down.

It is asked what it would do at each cycle that was recorded, with the facts that were known
then, and its answer is held against the orders that were given. It never meets the loop: it may
be slow, fall behind or break, and the loop does not notice.
"""

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import func, select

from tenfold.compose.policies import placing_decider
from tenfold.engine.decision_log import Cycle
from tenfold.engine.obstacle import obstacle_of
from tenfold.engine.replay import describe
from tenfold.engine.shadow import ShadowComparison, ShadowDifference
from tenfold.files.records.shadow_log import Kind, ShadowEntry, ShadowLog, last_entry
from tenfold.fleet.fleet import Fleet
from tenfold.journal.policies import policy_at
from tenfold.journal.read import cycles_after, event_pages
from tenfold.journal.record import fleet_after
from tenfold.journal.snapshots import restore
from tenfold.journal.store import Store, last_seq
from tenfold.journal.tables import CYCLES
from tenfold.model.actions import Action
from tenfold.model.errors import InputError
from tenfold.model.events import ActionOrdered, Event
from tenfold.model.ids import JobId
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.report.reasons.render import render

EVENTS_BEHIND_MAX = 50_000
"""Events that a shadow may be behind; beyond that it passes over them and goes on from now."""
CHECKPOINT_CYCLES = 500
"""Cycles from one mark to the next: so many are asked again after a crash."""
SENTENCES_MAX = 5
"""Jobs of one difference that are described in the log."""
TRACKED_JOBS_MAX = 10_000
"""Jobs in whose favour a shadow spoke that are kept in mind, so that each counts once."""


class ShadowStatus(Struct, frozen=True, kw_only=True):
    """Progress of a shadow policy."""

    cycles: int = 0
    cycles_differing: int = 0
    events_behind: int = 0
    failure: str = ""


class LiveShadow:
    """One shadow policy and its position in the journal."""

    def __init__(self, store: Store, policy: Policy, log: ShadowLog) -> None:
        self._store, self._policy, self._log = store, policy, log
        self._totals = _Counts()
        self._news: list[Event] = []
        self._is_whole = False
        """Whether the next cycle is seen from its first fact."""
        self._marked = 0
        self._at_ms = Millis(0)
        self._live = Policy()
        self._comparison = ShadowComparison(placing_decider(policy))
        self._fleet, self._cycle = Fleet(), 0
        self._resume()

    @property
    def failure(self) -> str:
        """What ended it; empty while it goes on."""
        return self._comparison.failure

    def status(self) -> ShadowStatus:
        """Return how far it has come."""
        with self._store.reading() as connection:
            last = last_seq(connection)
        return ShadowStatus(
            cycles=self._totals.cycles + self._comparison.cycles,
            cycles_differing=self._totals.differing + self._comparison.cycles_differing,
            events_behind=max(0, last - self._fleet.version),
            failure=self.failure,
        )

    def step(self) -> bool:
        """Ask about the next cycle; False where none is recorded yet, or the shadow broke."""
        if self.failure:
            return False
        rows = cycles_after(self._store, self._cycle, 1)
        if not rows:
            return False
        number, after_seq, cycle = rows[0]
        if after_seq - self._fleet.version > EVENTS_BEHIND_MAX:
            self._skip_to_now()
            return True
        # Where events are moved away the cycles go with them, whatever facts stay behind.
        is_next = number == self._cycle + 1 or not self._is_whole
        events = self._events(after_seq) if is_next else None
        if events is None:
            self._skip_to_now()
            return True
        self._cycle = number
        with self._store.reading() as connection:
            self._live = policy_at(connection, number) or self._live
        self._compare_cycle(cycle, events)
        if self.failure:
            self.note("failed")
        elif self._comparison.cycles - self._marked >= CHECKPOINT_CYCLES:
            self.mark()
        return True

    def mark(self) -> None:
        """Write down how far it has come, so that a restart goes on from here."""
        if self._comparison.cycles != self._marked and not self.failure:
            self._marked = self._comparison.cycles
            self.note("mark")

    def end(self, why: str) -> None:
        """Leave the shadow out from now on, and say why."""
        self._comparison.failure = why
        self.note("failed")

    def note(
        self, kind: Kind, found: ShadowDifference | None = None, said: Sequence[str] = ()
    ) -> None:
        """Add a line to the log."""
        totals, now = self._totals, self._comparison
        self._log.write(
            ShadowEntry(
                kind=kind,
                at_ms=self._at_ms,
                seq=self._fleet.version,
                cycle=self._cycle,
                policy=self._policy,
                live=self._live.name,
                cycles=totals.cycles + now.cycles,
                cycles_differing=totals.differing + now.cycles_differing,
                would_start=totals.would_start + len(now.would_start),
                would_stop=totals.would_stop + len(now.would_stop),
                passed_over=totals.passed_over,
                difference=found,
                said=tuple(said),
                failure=now.failure,
            )
        )

    def _resume(self) -> None:
        last = last_entry(self._log.path)
        if last is None or last.policy != self._policy:
            self._sync()
            self.note("begun")
            return
        self._totals = _Counts.of(last)
        self._at_ms = last.at_ms
        try:
            self._fleet, self._cycle = fleet_after(self._store, last.seq), last.cycle
            self._is_whole = last.kind != "failed" and self._fleet.version == last.seq
        except InputError:
            self._is_whole = False
        if not self._is_whole:
            self._skip_to_now()

    def _skip_to_now(self) -> None:
        """Leave out what lies between, where it is too much or gone."""
        before = self._fleet.version
        self._sync()
        self._totals.passed_over += max(0, self._fleet.version - before)
        self.note("mark")

    def _sync(self) -> None:
        self._fleet = restore(self._store).fleet
        query = select(func.max(CYCLES.c.number)).where(CYCLES.c.after_seq <= self._fleet.version)
        with self._store.reading() as connection:
            self._cycle = connection.execute(query).scalar() or 0
            self._live = policy_at(connection, self._cycle + 1) or self._live
        self._news, self._is_whole = [], False

    def _events(self, after_seq: int) -> list[Event] | None:
        """Return the events up to a cycle; None where some are not in the journal any more."""
        known, found = self._fleet.version, list[Event]()
        if after_seq <= known:
            return []
        for page in event_pages(self._store, known, after_seq):
            found += [event for _, event in page]
        return found if len(found) == after_seq - known else None

    def _compare_cycle(self, cycle: Cycle, events: Sequence[Event]) -> None:
        split = next(
            (at for at, event in enumerate(events) if isinstance(event, ActionOrdered)), len(events)
        )
        facts, rest = events[:split], events[split:]
        self._fleet.apply_all(facts)
        self._at_ms = cycle.at_ms
        found, said = None, ()
        if self._is_whole:
            orders = tuple(event.action for event in rest if isinstance(event, ActionOrdered))
            news = [*self._news, *facts]
            found = self._comparison.compare(self._fleet, cycle.at_ms, news, orders)
            said = () if found is None else self._sentences(found, cycle.at_ms, orders)
        self._is_whole = True
        self._fleet.apply_all(rest)
        self._news = list(rest)
        if found is not None:
            self._marked = self._comparison.cycles
            self._fold_counts()
            self.note("differs", found, said)

    def _sentences(
        self, found: ShadowDifference, now_ms: Millis, orders: Sequence[Action]
    ) -> tuple[str, ...]:
        """Say what the shadow would do, and what keeps the live policy or it from doing so."""
        shadow_actions: dict[JobId, Action] = {
            action.job_id: action for action in self._comparison.last_actions
        }
        changed_jobs = dict.fromkeys(
            (*found.started, *found.elsewhere, *found.stopped, *found.refused)
        )
        said = [
            f"it would {describe(shadow_actions[name])}"
            for name in changed_jobs
            if name in shadow_actions
        ][:SENTENCES_MAX]
        live_orders = {order.job_id: order for order in orders if order.job_id in found.elsewhere}
        said += [f"the live policy would {describe(order)}" for order in live_orders.values()][
            :SENTENCES_MAX
        ]
        said += [f"it would keep `{name}` running" for name in found.spared[:SENTENCES_MAX]]
        try:
            for name, policy in self._waiting_jobs(found):
                job = self._fleet.pending.get(name)
                if job is not None:
                    decider = placing_decider(policy)
                    why = obstacle_of(self._fleet, job, now_ms, decider).reason
                    said.append(f"`{name}` waits under `{policy.name}`: {render(why)}")
        except Exception as error:
            # A reason that cannot be found is no reason to end.
            said.append(f"the reason for a wait could not be determined: {type(error).__name__}")
        return tuple(said)

    def _waiting_jobs(self, found: ShadowDifference) -> list[tuple[JobId, Policy]]:
        """Return the first job that only one of the two lets wait, each with who does."""
        return [
            *((name, self._live) for name in found.started[:1]),
            *((name, self._policy) for name in found.held_back[:1]),
        ]

    def _fold_counts(self) -> None:
        """Keep in mind only so many jobs; those that are over may count no second time."""
        now = self._comparison
        if len(now.would_start) + len(now.would_stop) > TRACKED_JOBS_MAX:
            self._totals.would_start += len(now.would_start)
            self._totals.would_stop += len(now.would_stop)
            now.would_start.clear()
            now.would_stop.clear()


class _Counts:
    """What was counted before this start."""

    def __init__(self) -> None:
        self.cycles = self.differing = self.would_start = self.would_stop = self.passed_over = 0

    @classmethod
    def of(cls, last: ShadowEntry) -> "_Counts":
        made = cls()
        made.cycles, made.differing = last.cycles, last.cycles_differing
        made.would_start, made.would_stop = last.would_start, last.would_stop
        made.passed_over = last.passed_over
        return made
