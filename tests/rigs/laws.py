"""The laws of a placing decider, checked at every cycle of a run.

Wrap a decider in `Watched` and give `Sound` to the loop as a witness: a run that ends without
`LawBroken` has kept every law at every moment. What a decider keeps between cycles is compared
with what a fresh one makes of the view, so no cache can be wrong for long.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from tenfold.decide.place.indexed import IndexedDecider
from tenfold.decide.place.misfit import CODES
from tenfold.engine.loop import Decider
from tenfold.fleet.capacity import Capacity, FreeNodeIndex
from tenfold.fleet.check import check
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.fleet.topology.node_index import TopologyNodeIndex
from tenfold.model.actions import RefuseJob, ReserveStart, ResizeJob, StartJob, StopJob
from tenfold.model.decision import Decision
from tenfold.model.events import ActionOrdered, Event
from tenfold.model.job.job import Job, Slot
from tenfold.model.units import Millis
from tests.rigs.broken import hold
from tests.rigs.fits import admits, bound_to, fits_ever, fits_now, gang_on
from tests.rigs.ledger import Ledger

Leaves = Literal["nobody", "all-but-the-first", "all-but-one", "all"]
"""Who may wait although there is room: nobody, those behind a head that waits, all while
somebody holds room or a time to wake is set, or all."""

TURNS_MOST, CYCLES_MOST = 400, 100_000
"""Cycles of one moment, and of a small world, after which the loop is said to stand still."""


Build = Callable[[FleetView, Millis], Capacity]
"""Makes the index that a decider should have kept, from what is so."""


def _whole(view: FleetView, now_ms: Millis) -> Capacity:
    return Capacity.of(view)


class Watched:
    """A decider under watch: its decisions are passed on only if every law holds."""

    def __init__(
        self,
        make: Callable[[], IndexedDecider],
        *,
        leaves: Leaves = "all",
        key: Callable[[Job], int] | None = None,
        every: int = 1,
        build: Build = _whole,
    ) -> None:
        self._make = make
        self._build = build
        self._warm = make()
        self._leaves = leaves
        self._key = key or _alike
        self._every = every
        self.cycles = 0
        self._now_ms = -1
        self._turns = 0

    @property
    def name(self) -> str:
        """That of the decider."""
        return self._warm.name

    def decide(self, view: FleetView, now_ms: Millis, news: Sequence[Event] | None) -> Decision:
        """Return the decision, once it has passed."""
        assert isinstance(view, Fleet)
        self._time(now_ms)
        version, count = view.version, len(view.pending)
        decision = self._warm.decide(view, now_ms, news)
        unchanged = (version, count) == (view.version, len(view.pending))
        hold("deciding-changes-nothing", unchanged, "the fleet is another after `decide`")
        self.cycles += 1
        if self.cycles % self._every == 0:
            self._compare(view, now_ms, decision)
        for action in decision.actions:
            _lawful(view, action)
        after = view
        if decision.actions:
            _in_order(view, decision)
            after = view.fork()
            after.apply_all([ActionOrdered(now_ms, action) for action in decision.actions])
        self._index(after, now_ms)
        self._conserve(after, decision, now_ms)
        return decision

    def _time(self, now_ms: Millis) -> None:
        hold("time-goes-on", now_ms >= self._now_ms, f"{now_ms} ms came after {self._now_ms} ms")
        self._turns = self._turns + 1 if now_ms == self._now_ms else 0
        self._now_ms = now_ms
        goes_on = self._turns < TURNS_MOST and self.cycles < CYCLES_MOST
        hold("the-loop-goes-on", goes_on, f"it stands still at {now_ms} ms")

    def _compare(self, view: FleetView, now_ms: Millis, decision: Decision) -> None:
        fresh = self._make()
        # A second look is dear: where the first is thinned out, so is it again.
        is_dear = self._every > 1 and self.cycles // self._every % self._every
        laws = ("fresh-decides-as-warm", "deciding-twice-is-the-same")
        for law in laws[:1] if is_dear else laws:
            other = fresh.decide(view, now_ms, None)
            same = list(other.actions) == list(decision.actions)
            hold(
                law,
                same and other.wake_at_ms == decision.wake_at_ms,
                f"at {now_ms} ms {_words(decision)} but {_words(other)}",
            )

    def _index(self, after: FleetView, now_ms: Millis) -> None:
        """The index that was kept must be the one that would be built."""
        kept = self._warm.index
        if kept is None:
            return
        built = self._build(after, now_ms)
        wrong = [] if list(kept.node_indexes) == list(built.node_indexes) else ["kinds differ"]
        for kind, node_index in built.node_indexes.items() if not wrong else ():
            mine, theirs = _amounts(kept.node_indexes[kind]), _amounts(node_index)
            mine |= _tallies(kept.node_indexes[kind], kept.node_indexes[kind])
            theirs |= _tallies(node_index, kept.node_indexes[kind])
            wrong += [
                f"{what} of {kind}: kept {mine[what]}, built {amount}"
                for what, amount in theirs.items()
                if mine[what] != amount
            ]
        hold("kept-index-is-the-built-one", not wrong, "; ".join(wrong))

    def _conserve(self, after: Fleet, decision: Decision, now_ms: Millis) -> None:
        """Room does not stay empty while somebody who may take it waits."""
        wake_ms = decision.wake_at_ms
        hold("time-goes-on", wake_ms is None or wake_ms >= now_ms, f"to be woken at {wake_ms} ms")
        if self._leaves == "all" or any(run.stopping for run in after.running.values()):
            return
        held = len(after.orders) + len(after.running)
        waiting = [job for job in after.pending.values() if not _refused(decision, job)]
        if self._leaves == "all-but-the-first" and waiting:
            first = min(waiting, key=lambda job: (self._key(job), job.submitted_ms, job.seq))
            waiting = [first]
        elif self._leaves == "all-but-one" and (held or wake_ms is not None):
            return
        shapes = {job.shape.key: job for job in waiting}
        for job in shapes.values():
            hold(
                "room-is-used",
                not fits_now(after, job.shape),
                f"`{job.id}` ({job.shape.key}) waits at {now_ms} ms although it fits",
            )


class Sound:
    """A witness: every invariant of the fleet holds after every cycle."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def cycle(self, fleet: Fleet, now_ms: Millis, decider: Decider, decision: Decision) -> None:
        """Check the state that a cycle has left."""
        wrong = ""
        try:
            check(fleet)
        except AssertionError as error:
            wrong = f"at {now_ms} ms {error}"
        hold("the-state-is-sound", not wrong, wrong)
        count = len(self._ledger.events)
        hold(
            "the-version-counts-facts",
            fleet.version == count,
            f"{count} facts are in the journal, the fleet is at version {fleet.version}",
        )


def _lawful(view: FleetView, action: object) -> None:
    """An order must be possible in the view it was made from."""
    if isinstance(action, StartJob):
        is_free = action.job_id in view.pending
        hold("an-order-is-not-repeated", is_free, f"`{action.job_id}` does not wait: {action}")
        _whole_gang(view, view.pending[action.job_id], action)
    elif isinstance(action, StopJob):
        run = view.running.get(action.job_id)
        hold(
            "an-order-is-not-repeated",
            run is not None and not run.stopping,
            f"`{action.job_id}` does not run, or is being stopped: {action}",
        )
        terms = run.job.terms if run is not None else None
        may = terms is None or terms.preemptible or action.cause == "idle"
        hold("who-may-not-be-stopped-is-not", may, f"its terms forbid: {action}")
    elif isinstance(action, ResizeJob):
        _lawful_resize(view, action)
    elif isinstance(action, ReserveStart):
        waits = action.job_id in view.pending
        hold("only-who-waits-is-promised", waits, f"`{action.job_id}` does not wait: {action}")
    elif isinstance(action, RefuseJob):
        job = view.pending.get(action.job_id)
        hold("an-order-is-not-repeated", job is not None, f"`{action.job_id}` does not wait")
        codes = {reason.code for reason in action.reasons}
        is_true = bool(codes)
        if job is not None and not codes.isdisjoint(CODES) and not _is_balanced(job):
            is_true = not fits_ever(view, job.shape)
        hold("a-refusal-is-true", is_true, f"`{action.job_id}` would fit: {action}")


def _is_balanced(job: Job) -> bool:
    """Return whether a gang asks for equal parts, which `fits_ever` does not look at."""
    where = job.shape.where
    return where is not None and bool(where.within) and where.how == "balanced"


def _whole_gang(view: FleetView, job: Job, action: StartJob) -> None:
    """Members are all there, each on its own node, up and of a kind that will do."""
    shape = job.shape
    seated = sorted(slot.milli or slot.gpus for slot in action.slots)
    gang = gang_on(view.nodes[action.slots[0].node], shape) if action.slots else None
    asked: list[int] = []
    if gang is not None:
        asked = sorted([*[shape.milli or gang[1]] * gang[0], *([gang[2]] if gang[2] else [])])
    least, most = _bounds(job)
    is_whole = seated == asked or 0 < least <= sum(seated) <= most
    hold("gangs-are-whole", is_whole, f"shape `{shape.key}` asks for {asked}: {action}")
    _well_placed(view, job, action.slots, action)


def _lawful_resize(view: FleetView, action: ResizeJob) -> None:
    run = view.running.get(action.job_id)
    is_free = run is not None and not run.stopping and run.becoming is None
    hold("an-order-is-not-repeated", is_free, f"`{action.job_id}` is not free to: {action}")
    if run is None:
        return
    least, most = _bounds(run.job)
    gpus = sum(slot.gpus for slot in action.slots)
    hold("a-resize-keeps-its-bounds", 0 < least <= gpus <= most, f"{least} to {most}: {action}")
    _well_placed(view, run.job, action.slots, action, kept=run.slots)


def _well_placed(
    view: FleetView,
    job: Job,
    slots: Sequence[Slot],
    action: object,
    *,
    kept: Sequence[Slot] = (),
) -> None:
    """Members stand on nodes of their own, alike, where their shape lets them, and up.

    What a run holds already it may keep, whatever has become of the node.
    """
    members = [view.nodes[slot.node] for slot in slots]
    alike = {(node.site, node.accelerator, node.gpus) for node in members}
    is_apart = len({node.id for node in members}) == len(members)
    hold("gangs-are-whole", len(alike) == 1 and is_apart, f"`{job.shape.key}`: {action}")
    had = {slot.node for slot in kept}
    down = [one.id for one in members if view.states[one.id] != "up" and one.id not in had]
    hold("no-start-on-a-lost-node", not down, f"{down} are not up: {action}")
    may = all(admits(node, job.shape) for node in members)
    together = len({bound_to(node, job.shape) for node in members}) == 1
    hold("gangs-stand-where-they-may", may and together, f"`{job.shape.key}`: {action}")


def _bounds(job: Job) -> tuple[int, int]:
    """Return the GPUs between which a job is elastic; zeros where it is not."""
    return (job.terms.least_gpus, job.terms.most_gpus) if job.terms else (0, 0)


def _in_order(view: FleetView, decision: Decision) -> None:
    """Of jobs alike in all but their number, the later never starts before the earlier.

    Unless room is being given up: the earlier may wait for that, and leave what there is.
    """
    if any(run.stopping for run in view.running.values()):
        return
    if any(isinstance(action, StopJob) for action in decision.actions):
        return
    ids = [action.job_id for action in decision.actions if isinstance(action, StartJob)]
    place = {job_id: number for number, job_id in enumerate(ids)}
    first: dict[object, Job] = {}
    for job in sorted(view.pending.values(), key=lambda job: job.seq, reverse=True):
        if job.id in view.past:
            continue
        asks = (job.shape.key, job.team, job.user, job.qos, job.priority, job.limit_ms, job.terms)
        alike = (asks, job.submitted_ms, job.duration_ms, job.deadline_ms, job.seq // 16)
        later = first.get(alike)
        if later is not None and later.id in place:
            hold(
                "alike-jobs-keep-their-order",
                job.id in place and place[job.id] < place[later.id],
                f"`{later.id}` starts before `{job.id}`, which came first",
            )
        first[alike] = job


def _amounts(node_index: FreeNodeIndex) -> dict[str, object]:
    return {
        "free GPUs": node_index.free,
        "open nodes": node_index.is_open,
        "words": node_index.exact,
        "summaries": node_index.summary,
        "counts": node_index.counts,
        "CPUs": node_index.cpus,
        "memory": node_index.memory,
        "shares": node_index.given,
    }


def _tallies(node_index: FreeNodeIndex, asked_of: FreeNodeIndex) -> dict[str, object]:
    """Return what is counted by domain and shown by rack, where the kept bank was asked."""
    if not isinstance(node_index, TopologyNodeIndex) or not isinstance(asked_of, TopologyNodeIndex):
        return {}
    tallies = {
        f"{level} with {gpus} free": (tally.counts, tally.buckets, tally.filled)
        for level, gpus in asked_of.tallies
        if (tally := node_index.tally(level, gpus))
    }
    return {"fed GPUs": node_index.shown, **tallies}


def _refused(decision: Decision, job: Job) -> bool:
    return any(isinstance(one, RefuseJob) and one.job_id == job.id for one in decision.actions)


def _words(decision: Decision) -> str:
    acts = [f"{type(one).__name__} {one.job_id}" for one in decision.actions]
    return f"{acts} until {decision.wake_at_ms}"


def _alike(job: Job) -> int:
    return 0
