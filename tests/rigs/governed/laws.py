"""The laws of governed placement, checked at every decision.

Wrap a decider, watched or not, in `Governing`: its decisions are passed on only if quotas,
racks and windows are kept, holes before promises are filled only by who is gone in time,
nobody starts before their terms let them, broken gangs go first, and nobody is stopped whom
the rules protect or whose going helps nobody. What is so is worked out anew each time.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.model.actions import ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.decision import Decision
from tenfold.model.events import ActionOrdered, Event
from tenfold.model.fleet.node import Node
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import BackfillReservation, Job, Run
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.units import DAY, Millis
from tests.rigs.broken import hold
from tests.rigs.governed.quota import Quotas, held_by_teams, is_in
from tests.rigs.governed.quota_state import PLAIN, QuotaState
from tests.rigs.governed.stops import StopLaws
from tests.rigs.governed.windows import barred_now, barred_soon, closed_now

BROKEN = ("node-lost", "moved", "start-failed")
"""Gangs that were stopped by these are put together again before queues are served."""


class Decides(Protocol):
    """A decider."""

    @property
    def name(self) -> str:
        """What the decision log calls it."""
        ...

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return what should be done at `now_ms`."""
        ...


class Governing:
    """A governed decider under watch.

    `every` thins out what costs most: whether somebody waits who is owed room.
    """

    def __init__(self, decider: Decides, govern: GovernanceRules, *, every: int = 1) -> None:
        self._decider = decider
        self.govern = govern
        self._every = every
        self._cycles = 0
        self._stops = StopLaws()

    @property
    def name(self) -> str:
        """That of the decider."""
        return self._decider.name

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return the decision, once it has passed."""
        decision = self._decider.decide(view, now_ms, news)
        assert isinstance(view, Fleet)
        self.judge(view, now_ms, decision, news or ())
        return decision

    def judge(
        self, view: Fleet, now_ms: Millis, decision: Decision, news: Sequence[Event] = ()
    ) -> None:
        """Raise `LawBroken` where a decision breaks a law."""
        self._cycles += 1
        self._stops.hear(self.govern, view, now_ms, news, decision)
        if decision.actions:
            after = view.fork()
            after.apply_all([ActionOrdered(now_ms, action) for action in decision.actions])
            starts = [one for one in decision.actions if isinstance(one, StartJob)]
            if starts or any(isinstance(one, ResizeJob) for one in decision.actions):
                _within_quotas(self.govern, view, after, now_ms)
                _fed(view, after)
            if starts:
                _out_of_windows(self.govern, view, starts, now_ms)
                _gone_in_time(view, after, starts, now_ms)
                _in_their_time(self.govern, view, after, starts, now_ms)
            if any(isinstance(one, StopJob) for one in decision.actions):
                self._stops.judge(QuotaState(self.govern, view, now_ms), decision)
        else:
            after = view
        _ends(after, decision)
        _broken_first(self.govern, view, decision, now_ms)
        if self._cycles % self._every == 0:
            self._stops.nobody_owed_waits(QuotaState(self.govern, after, now_ms), decision)


def index_of(govern: GovernanceRules, view: FleetView, now_ms: Millis) -> TopologyCapacity:
    """Return the index that a view makes: nodes of open windows and of promises are hidden."""
    index = TopologyCapacity.of(view)
    for node in closed_now(govern, view, now_ms):
        index.set_open(node, False)
    for reservation in view.reservations.values():
        for node in index.around(reservation.slots):
            index.hide(node)
    return index


def _ends(after: FleetView, decision: Decision) -> None:
    """Where nobody waits and nothing runs there is nothing to be woken for."""
    is_over = not (after.pending or after.orders or after.running)
    wake_ms = decision.wake_at_ms
    hold("nobody-is-woken-for-nothing", not is_over or wake_ms is None, f"at {wake_ms} ms")


def _within_quotas(govern: GovernanceRules, view: Fleet, after: Fleet, now_ms: Millis) -> None:
    """No start takes a team beyond its quota and what it may borrow, or what others lend."""
    quotas = Quotas(govern, view.nodes, now_ms)
    before = quotas.excess(held_by_teams(govern, view))
    over = [
        f"team `{team}` is {amount} of {name} beyond its limit at {now_ms} ms"
        for (team, name), amount in quotas.excess(held_by_teams(govern, after)).items()
        if amount > before.get((team, name), 0)
    ]
    hold("quotas-are-kept", not over, "; ".join(over))


def _fed(view: Fleet, after: Fleet) -> None:
    """No start draws more from a rack than it feeds."""
    before = _watts_over(view)
    for rack, watts in _watts_over(after).items():
        hold(
            "racks-keep-to-their-power",
            watts <= max(0, before[rack]),
            f"rack {rack} draws {watts} W too much",
        )


def _watts_over(view: FleetView) -> dict[tuple[str, str], int]:
    """Return by rack what it draws beyond its limit; less than 0 where some is left."""
    over: dict[tuple[str, str], int] = {}
    for node in view.nodes.values():
        if node.rack_watts:
            rack = _rack(node)
            busy = node.gpus - view.gpus_free[node.id]
            drawn = node.watts_idle + busy * node.watts_per_gpu
            over[rack] = over.get(rack, -node.rack_watts) + drawn
    return over


def _gone_in_time(
    view: FleetView, after: FleetView, starts: Sequence[StartJob], now_ms: Millis
) -> None:
    """Who starts on a node that is kept for another ends before that, or can be stopped."""
    kept = _kept(view.reservations, after.reservations)
    for start in starts if kept else ():
        job = view.pending[start.job_id]
        for slot in start.slots:
            if slot.node not in kept or not (slot.gpus or slot.milli):
                continue
            until_ms = kept[slot.node]
            if _stays_whole(after, slot.node, until_ms):
                continue
            if job.limit_ms is not None:
                is_gone = now_ms + job.limit_ms <= until_ms
            else:
                is_gone = (job.terms or PLAIN).preemptible and now_ms < until_ms
            hold(
                "who-fills-a-hole-is-gone-in-time",
                is_gone,
                f"`{job.id}` starts at {now_ms} ms on `{slot.node}`, kept until {until_ms} ms",
            )


def _stays_whole(after: FleetView, node_id: NodeId, until_ms: int) -> bool:
    """Return whether a node has what it is kept for beside all who stay till then, and is fed."""
    kept = after.nodes[node_id]
    if _wanted(after, node_id, until_ms) > kept.gpus:
        return False
    if not kept.rack_watts:
        return True
    rack = [node for node in after.nodes.values() if _rack(node) == _rack(kept)]
    drawn = sum(
        node.watts_idle + _wanted(after, node.id, until_ms) * node.watts_per_gpu for node in rack
    )
    return drawn <= kept.rack_watts


def _wanted(after: FleetView, node_id: NodeId, until_ms: int) -> int:
    """Return the GPUs of a node that are held by who stays, or kept for who is promised them."""
    stay = [
        run
        for run in after.running.values()
        if not run.stopping
        and (run.job.limit_ms is None or run.started_ms + run.job.limit_ms > until_ms)
        and not _must_go(after, run)
    ]
    here = [*stay, *after.orders.values(), *after.reservations.values()]
    slots = [slot for one in here for slot in one.slots if slot.node == node_id]
    shared = {slot.device for slot in slots if slot.milli}
    return sum(slot.gpus for slot in slots) + len(shared)


def _must_go(after: FleetView, run: Run) -> bool:
    """Return whether somebody is promised a start that only comes once a run is over."""
    held = {slot.node: slot.gpus for slot in run.slots}
    return any(
        after.nodes[slot.node].gpus - held.get(slot.node, 0) < slot.gpus
        for reservation in after.reservations.values()
        for slot in reservation.slots
    )


def _rack(node: Node) -> tuple[str, str]:
    return str(node.site), node.rack or node.id


def _out_of_windows(
    govern: GovernanceRules, view: FleetView, starts: Sequence[StartJob], now_ms: Millis
) -> None:
    """Nobody starts where a window is open for others, or would not be gone when one opens."""
    for start in starts if govern.windows else ():
        job = view.pending[start.job_id]
        stays = job.limit_ms is not None and not (job.terms or PLAIN).preemptible
        barred = (barred_soon if stays else barred_now)(govern, view, job, now_ms)
        inside = [slot.node for slot in start.slots if slot.node in barred]
        hold("windows-are-kept", not inside, f"`{job.id}` starts on {inside} at {now_ms} ms")


def _kept(
    before: Mapping[JobId, BackfillReservation], after: Mapping[JobId, BackfillReservation]
) -> dict[str, int]:
    """Return the nodes that were and are kept for somebody, and until when."""
    return {
        slot.node: max(reservation.start_ms, after[job_id].start_ms)
        for job_id, reservation in before.items()
        if job_id in after and after[job_id].slots == reservation.slots
        for slot in reservation.slots
    }


def _in_their_time(
    govern: GovernanceRules, view: Fleet, after: Fleet, starts: Sequence[StartJob], now_ms: Millis
) -> None:
    """Nobody starts before those they come after, out of hours, or beyond their array's most."""
    for start in starts:
        job = view.pending[start.job_id]
        terms = job.terms
        if terms is None:
            continue
        for earlier in terms.after:
            is_over = not any(earlier in kept for kept in (view.pending, view.orders, view.running))
            is_well = view.end_statuses.get(earlier, "completed") == "completed"
            hold("jobs-come-after-others", is_over and is_well, f"`{job.id}`, not `{earlier}`")
        if terms.off_peak and govern.off_peak:
            of_day = (now_ms + govern.timezone_ms) % DAY
            is_quiet = any(is_in(hours, of_day) for hours in govern.off_peak)
            hold("off-peak-jobs-wait-for-it", is_quiet, f"`{job.id}` starts at {now_ms} ms")
        if terms.array_most:
            count = sum(
                one.job.terms is not None and one.job.terms.array == terms.array
                for one in (*after.running.values(), *after.orders.values())
            )
            is_few = count <= terms.array_most
            hold("arrays-keep-to-their-most", is_few, f"{count} of `{terms.array}` at {now_ms} ms")


def _broken_first(govern: GovernanceRules, view: Fleet, decision: Decision, now_ms: Millis) -> None:
    """A gang that a failure broke does not wait while there is room for it."""
    broken = [
        job
        for job_id, past in view.past.items()
        if past.cause in BROKEN and (job := view.pending.get(job_id)) is not None
    ]
    if not broken or any(run.stopping or run.becoming for run in view.running.values()):
        return
    if any(isinstance(one, StopJob) for one in decision.actions):
        # It may have been given what others leave.
        return
    first = min(broken, key=lambda job: (job.submitted_ms, job.seq))
    acted = {one.job_id for one in decision.actions if not isinstance(one, ReserveStart)}
    if first.id not in acted and not is_held_back(govern, view, first, now_ms):
        hold(
            "broken-gangs-go-first",
            not QuotaState(govern, view, now_ms).fits(first),
            f"`{first.id}` waits at {now_ms} ms although it fits",
        )


def is_held_back(govern: GovernanceRules, view: FleetView, job: Job, now_ms: Millis) -> bool:
    """Return whether the terms of a job may keep it waiting, whatever room there is."""
    terms = job.terms
    if terms is None:
        return False
    of_day = (now_ms + govern.timezone_ms) % DAY
    is_loud = bool(govern.off_peak) and not any(is_in(hours, of_day) for hours in govern.off_peak)
    return bool(terms.after or terms.array_most) or (terms.off_peak and is_loud)
