"""Keep the journal of an attached cluster: reading after reading, through restarts."""

import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace
from sqlalchemy import func, select

from tenfold.clock.wall import now_ms
from tenfold.compose.live_journal import LiveJournal
from tenfold.compose.policies import placing_decider
from tenfold.engine.decision_log import OBSERVED
from tenfold.engine.loop import Decider
from tenfold.files.slurm.settings import read_setting
from tenfold.fleet.fleet import Fleet, FleetView
from tenfold.journal.read import JobFilter, jobs
from tenfold.journal.store import open_store
from tenfold.journal.tables import CYCLES, JOBS
from tenfold.live.slurm.attach.gather import AccountingLimits
from tenfold.live.slurm.attach.orders import SlurmOrders
from tenfold.live.slurm.attach.poll import PollCost, SlurmPoller
from tenfold.model.decision import NOTHING, Decision
from tenfold.model.errors import InputError, Unreachable
from tenfold.model.events import Event
from tenfold.model.ids import JobId
from tenfold.model.job.job import ENDED
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND, Millis
from tenfold.study.attach.act import ActCounts, Actor, ActScope
from tenfold.study.attach.observe import Memory, Observer, Reading, remembered
from tenfold.study.attach.readings import Readings
from tenfold.study.attach.recommend import (
    Recommender,
    append_recommendations,
    read_recommendations,
)

JOURNAL, STATUS, FLEET, HOME = "journal.db", "attach.json", "fleet.toml", "attach-id"
RESTS = 10.0
"""The pause is at least so many times as long as the controller took for a reading ..."""
RPC_SHARE = 0.01
"""... and the controller works for readings at most this share of the time."""
PAUSE_MOST_S = 300.0
CYCLE_EVERY_MS = 60 * SECOND
"""A reading without news is noted at least this often."""
OUTAGES_KEPT = 50
FORGOTTEN_AFTER_MS = 2 * 86_400 * SECOND
"""Ends older than this cannot be read again."""


class Outage(Struct, kw_only=True):
    """A time in which the controller did not answer."""

    from_s: float
    until_s: float | None = None
    message: str


class AttachStatus(Struct, kw_only=True):
    """What `tenfold attach status` shows."""

    cluster: str = ""
    source: str = ""
    mode: str = "observe"
    pid: int = 0
    started_s: float = 0.0
    reading_s: float = 0.0
    """When the last reading was made."""
    pause_s: float = 0.0
    events: int = 0
    """Events that were added since the start."""
    nodes: int = 0
    gpus: int = 0
    pending: int = 0
    held: int = 0
    running: int = 0
    recommended: int = 0
    """Starts that were recommended since the start."""
    acted: ActCounts = field(default_factory=ActCounts)
    """What --act did since the start."""
    clipped: int = 0
    """Allocations recorded with less than Slurm says: it shares GPUs or CPUs there."""
    cost: PollCost = field(default_factory=PollCost)
    outages: list[Outage] = field(default_factory=list)


class ObservedDecider:
    """The name that marks a reading in the decision log: another scheduler decided."""

    name = OBSERVED

    def decide(self, view: FleetView, now_ms: Millis, news: object) -> Decision:
        """Decide nothing."""
        return NOTHING


class AttachedJournal:
    """The journal in a state folder, open for writing."""

    def __init__(self, folder: Path, policy: Policy) -> None:
        self.folder = folder
        self._journal = LiveJournal(str(folder / JOURNAL), "attach", now_ms(), policy)
        restored = self._journal.restore()
        self.observer = Observer(restored.fleet, self._memory(restored.fleet))
        self._witnesses = self._journal.witnesses()
        self._decider: Decider = ObservedDecider()
        self._noted_ms = 0
        self.events = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def fleet(self) -> Fleet:
        """The state of the journal."""
        return self.observer.fleet

    def record(self, reading: Reading) -> list[Event]:
        """Append what a reading adds, and return it."""
        observer, fleet = self.observer, self.observer.fleet.fork()
        trial = Observer(fleet, observer.memory.copy())
        events = trial.events(reading)
        self._journal.append(events)
        self.observer = trial
        self.events += len(events)
        at_ms = Millis(round(reading.now_s * SECOND))
        if events or at_ms - self._noted_ms >= CYCLE_EVERY_MS:
            for witness in self._witnesses:
                witness.cycle(fleet, at_ms, self._decider, NOTHING)
            self._noted_ms = at_ms
        self._forget(at_ms)
        return events

    def act(self, events: Sequence[Event]) -> None:
        """Append events of our own, and return once they are on disk."""
        self.observer.fleet.apply_all(events)
        self._journal.append(events)
        self._journal.flush()
        self.events += len(events)

    def flush(self) -> None:
        """Write what is buffered, so that readers see it."""
        self._journal.flush()

    def close(self) -> None:
        """Write what is buffered, and close."""
        self._journal.close()

    def _memory(self, fleet: Fleet) -> Memory:
        store = self._journal.store
        with store.reading() as connection:
            seq = connection.execute(select(func.max(JOBS.c.number))).scalar() or 0
        holds: dict[JobId, Reason] = {}
        names = list(fleet.held)
        for at in range(0, len(names), 500):
            for row in jobs(store, limit=500, within=JobFilter(named=names[at : at + 500])):
                holds[row.id] = Reason(row.reason, row.fields)
        memory = remembered(fleet, holds, seq)
        since = now_ms() - FORGOTTEN_AFTER_MS
        query = select(JOBS.c.id, JOBS.c.changed_ms).where(
            JOBS.c.state.in_(ENDED), JOBS.c.changed_ms >= since
        )
        with store.reading() as connection:
            for job_id, changed_ms in connection.execute(query):
                memory.over_ms[JobId(job_id)] = Millis(changed_ms)
        return memory

    def _forget(self, at_ms: int) -> None:
        over = self.observer.memory.over_ms
        if len(over) > 20_000:
            kept = {job: end for job, end in over.items() if end > at_ms - FORGOTTEN_AFTER_MS}
            self.observer.memory.over_ms = kept


def last_reading_s(folder: Path) -> float | None:
    """Return when the last reading was noted in the journal of a folder."""
    if not (folder / JOURNAL).is_file():
        return None
    with closing(open_store(folder / JOURNAL)) as store, store.reading() as connection:
        found = connection.execute(select(func.max(CYCLES.c.at_ms))).scalar()
    return None if found is None else found / SECOND


def read_status(folder: Path) -> AttachStatus:
    """Return the status of an attached cluster."""
    try:
        return msgspec.json.decode((folder / STATUS).read_bytes(), type=AttachStatus)
    except FileNotFoundError:
        raise InputError(
            "not-attached",
            f"`{folder}` contains no attached cluster",
            "run `tenfold attach slurm` first, or name its folder with --state-dir",
            file=str(folder),
        ) from None
    except msgspec.DecodeError as error:
        raise InputError(
            "syntax", f"`{folder / STATUS}`: {error}", "delete it", file=str(folder / STATUS)
        ) from None


def write_status(folder: Path, status: AttachStatus) -> None:
    """Replace the status in a folder."""
    fresh = folder / f"{STATUS}.new"
    fresh.write_bytes(msgspec.json.format(msgspec.json.encode(status)))
    fresh.replace(folder / STATUS)


class Acting(Struct, frozen=True, kw_only=True):
    """What an attachment does beyond recording: nothing, by default."""

    recommends: Policy | None = None
    """Also record what this policy would have started."""
    places: Policy | None = None
    """Place held jobs by this policy."""
    scope: ActScope = ActScope()
    orders: SlurmOrders | None = None


OBSERVES = Acting()


class Attachment:
    """An attached cluster: its commands, its journal and its status."""

    def __init__(
        self,
        folder: Path,
        poller: SlurmPoller,
        readings: Readings,
        limits: AccountingLimits,
        pause_s: float,
        acting: Acting = OBSERVES,
    ) -> None:
        """`acting` says what it does beyond recording."""
        self.folder = folder
        self._acting = acting
        self._actor: Actor | None = None
        self._recommender: Recommender | None = None
        self.journal: AttachedJournal | None = None
        """Open once the first reading said under which policy the cluster runs."""
        self.status = AttachStatus(started_s=now_ms() / SECOND, source="live", pid=os.getpid())
        if (folder / STATUS).is_file():
            self.status.outages = read_status(folder).outages
        self._poller = poller
        self._readings = readings
        self._limits = limits
        self._pause_s = pause_s

    @property
    def is_begun(self) -> bool:
        """Whether there is a journal: from then on, the controller may be away for a while."""
        return (self.folder / JOURNAL).is_file()

    def read(self, progress: Callable[[str], None]) -> Reading:
        """Make one reading and record it."""
        printed = self._poller.read(now_ms() / SECOND, self._limits, progress)
        reading = self._readings.of(printed)
        if self.journal is None:
            policy = self._readings.policy_of(printed.config, printed.partitions)
            self.journal = AttachedJournal(self.folder, policy)
            self.status.cluster = read_setting(printed.config, "ClusterName")
            toml = self._readings.fleet_toml(f"the Slurm cluster `{self.status.cluster}`")
            (self.folder / FLEET).write_text(toml)
            self._begin_recommending(policy)
            self._begin_acting(self.journal)
        if missing := self.journal.observer.missing(reading):
            more = self._poller.look_up(missing)
            known = (*reading.accounting, *more.jobs)
            reading = replace(reading, accounting=known, accounting_lag_s=more.lag_s)
        self.journal.record(reading)
        self.journal.flush()
        self._recommend(reading)
        try:
            if self._actor is not None:
                self._actor.after(self.journal.fleet, reading, Millis(now_ms()))
        finally:
            self._note(reading)
        return reading

    def _begin_acting(self, journal: AttachedJournal) -> None:
        policy, orders = self._acting.places, self._acting.orders
        if policy is not None and orders is not None:
            self.status.mode = "act"
            self._actor = Actor(
                _home_of(self.folder),
                self._acting.scope,
                lambda: placing_decider(policy),
                orders,
                journal.act,
            )
            self.status.acted = self._actor.counts

    def _begin_recommending(self, slurm: Policy) -> None:
        chosen = self._acting.recommends
        if chosen is not None:
            self.status.mode = "recommend"
            self._recommender = Recommender(
                chosen.name,
                lambda: placing_decider(chosen),
                lambda: placing_decider(slurm),
                [one.job_id for one in read_recommendations(self.folder)],
            )

    def _recommend(self, reading: Reading) -> None:
        if self._recommender is None or self.journal is None:
            return
        partitions = {one.name: one for one in reading.settings.partitions}
        at_ms = Millis(round(reading.now_s * SECOND))
        found = self._recommender.after(self.journal.fleet, partitions, at_ms)
        append_recommendations(self.folder, found)
        self.status.recommended += len(found)

    def failed(self, error: Unreachable) -> None:
        """Note that the controller did not answer."""
        outages = self.status.outages
        if not outages or outages[-1].until_s is not None:
            outages.append(Outage(from_s=now_ms() / SECOND, message=error.message))
            del outages[:-OUTAGES_KEPT]
        self.status.pause_s = max(self._pause_s, min(PAUSE_MOST_S, 2 * self.status.pause_s))
        write_status(self.folder, self.status)

    def close(self) -> None:
        """Close the journal."""
        if self.journal is not None:
            self.journal.close()

    def _note(self, reading: Reading) -> None:
        assert self.journal is not None, "a reading opens it"
        status, fleet = self.status, self.journal.fleet
        if status.outages and status.outages[-1].until_s is None:
            status.outages[-1].until_s = reading.now_s
        status.reading_s = reading.now_s
        status.pause_s = pause_after(
            self._pause_s, self._poller.controller_s, self._poller.rpc_s_per_reading
        )
        status.events = self.journal.events
        status.nodes = len(fleet.nodes)
        status.gpus = sum(node.gpus for node in fleet.nodes.values())
        status.pending, status.held = len(fleet.pending), len(fleet.held)
        status.running = len(fleet.running)
        status.clipped = self.journal.observer.memory.clipped
        status.cost = self._poller.cost
        write_status(self.folder, status)


def _home_of(folder: Path) -> str:
    """Return the name of this attachment in comments of jobs."""
    path = folder / HOME
    if not path.is_file():
        path.write_text(secrets.token_hex(6))
    return path.read_text().strip()


def pause_after(least_s: float, took_s: float, rpc_s: float) -> float:
    """Return how long to rest after a reading that took so long, here and in the controller."""
    return min(PAUSE_MOST_S, max(least_s, RESTS * took_s, rpc_s / RPC_SHARE))


def record_saved(folder: Path, reading: Reading, readings: Readings, policy: Policy) -> int:
    """Record one reading of saved files; return the number of events that it added."""
    with AttachedJournal(folder, policy) as journal:
        journal.record(reading)
        (folder / FLEET).write_text(readings.fleet_toml("saved output of Slurm"))
        status = AttachStatus(
            source="saved files",
            started_s=now_ms() / SECOND,
            reading_s=reading.now_s,
            events=journal.events,
            nodes=len(journal.fleet.nodes),
            gpus=sum(node.gpus for node in journal.fleet.nodes.values()),
            pending=len(journal.fleet.pending),
            held=len(journal.fleet.held),
            running=len(journal.fleet.running),
            clipped=journal.observer.memory.clipped,
        )
        write_status(folder, status)
        return journal.events
