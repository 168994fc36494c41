"""A world of chance for the control plane: stores, executors and clocks that fail by a seed.

Whatever is called may fail before or after it took effect, and the controller may be killed
between any two calls.
"""

from collections.abc import Callable, Sequence
from random import Random

from tenfold.compose.control_plane import Restored
from tenfold.fleet.fleet import Fleet
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    AttemptState,
    EndKind,
    Launch,
    MemberLog,
    NodeReachable,
    NodeUnreachable,
    Observation,
    OrderRefused,
    ShellRequest,
)
from tenfold.live.inbox import Answer, Cancel, Inbox, Submit
from tenfold.live.job_registry import JobEntry
from tenfold.model.actions import ResizeJob, StartJob
from tenfold.model.events import (
    ActionOrdered,
    Event,
    JobCancelled,
    JobEnded,
    JobRefused,
    JobSubmitted,
)
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.job import shape_of
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.model.job.submission import Submission
from tenfold.model.job.terms import Terms
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND, Millis

START_MS = 1_800_000_000_000
JOBS, NODES, GPUS = 12, 3, 4
STEPS_MOST = 20_000


class Killed(BaseException):
    """The controller was killed: nothing of it goes on."""


class Broken(AssertionError):
    """A law of the live world does not hold."""


class Chance:
    """All that is left to chance, from one seed; trouble ends, so that the work can."""

    def __init__(self, seed: int) -> None:
        self._dice = Random(seed)
        self.share = self._dice.choice((0.0, 0.01, 0.05, 0.15))
        self.now_ms = START_MS
        self.steps = 0
        self.kills = self.faults = self.resizes = self.blamed = 0

    def strike(self, what: str) -> None:
        """Kill the controller or fail the call, seldom."""
        self.steps += 1
        if self.steps > STEPS_MOST:
            raise Broken(f"no end after {STEPS_MOST} steps")
        if self.steps > STEPS_MOST // 4:
            return
        draw = self._dice.random()
        if draw < self.share / 2:
            self.kills += 1
            raise Killed
        if draw < self.share:
            self.faults += 1
            raise OSError(f"{what} failed")

    def pick(self, low: int, high: int) -> int:
        return self._dice.randint(low, high)

    def happens(self, share: float) -> bool:
        return self._dice.random() < share


class Disk:
    """What survives a kill: events that were written, whether or not anybody was told."""

    def __init__(self) -> None:
        self.events: list[Event] = []


class ChanceStore:
    """A journal that may fail before it wrote or after."""

    def __init__(self, disk: Disk, chance: Chance) -> None:
        self._disk, self._chance = disk, chance
        chance.strike("opening the journal")

    def restore(self) -> Restored:
        self._chance.strike("reading the journal")
        return restored(self._disk.events)

    def append(self, events: Sequence[Event]) -> None:
        self._chance.strike("writing")
        self._disk.events += events
        self._chance.strike("syncing")

    def close(self) -> None:
        pass


def restored(events: Sequence[Event]) -> Restored:
    """Return what events say: the plain way, which a real journal must match."""
    fleet = Fleet()
    entries: dict[JobId, JobEntry] = {}
    number, last_ms = 1, START_MS
    for event in events:
        fleet.apply(event)
        last_ms = max(last_ms, event.at_ms)
        match event:
            case JobSubmitted(_, job, work):
                assert work is not None
                entries[job.id] = JobEntry(work)
                number = max(number, job.seq + 1)
            case ActionOrdered(_, StartJob(job_id) | ResizeJob(job_id)):
                entries[job_id].attempts += 1
            case JobEnded(_, job_id) | JobRefused(_, job_id) | JobCancelled(_, job_id):
                entries.pop(job_id, None)
            case _:
                pass
    return Restored(fleet, entries, number, Millis(last_ms))


class _Attempt:
    """An attempt as the executor's own records have it."""

    def __init__(
        self, launch: Launch, now_ms: int, starts_ms: int, ends_ms: int, how: EndKind
    ) -> None:
        self.launch = launch
        self.ordered_ms, self.starts_ms, self.ends_ms = now_ms, starts_ms, ends_ms
        self.how: EndKind = how
        self.exit_code = 0
        self.end: AttemptEnded | AttemptLost | None = None
        self.is_started = self.is_settled = False


class Hands:
    """The executor's side: survives every kill of the controller."""

    def __init__(self, chance: Chance) -> None:
        self._chance = chance
        self.attempts: dict[tuple[JobId, int], _Attempt] = {}
        self.down: dict[NodeId, int] = {}
        self.launched = 0

    def advance(self) -> list[Observation]:
        """Let time do its work; return what is to be seen."""
        now = Millis(self._chance.now_ms)
        seen: list[Observation] = []
        for (job_id, number), one in self.attempts.items():
            if one.end is None and not one.is_started and one.starts_ms <= now:
                one.is_started = True
                seen.append(AttemptStarted(now, job_id, number))
            if one.end is None and one.ends_ms <= now:
                one.end = self._end(job_id, number, one, now)
                seen.append(one.end)
        for node, until_ms in list(self.down.items()):
            if until_ms <= now:
                del self.down[node]
                seen.append(NodeReachable(now, node))
        return seen

    def _end(
        self, job_id: JobId, number: int, one: _Attempt, now: Millis
    ) -> AttemptEnded | AttemptLost:
        if self._chance.happens(0.03):
            return AttemptLost(
                now, job_id, number, Reason("supervisor-lost", sentence="it was killed")
            )
        code = one.exit_code if one.how == "exited" else None
        return AttemptEnded(at_ms=now, job_id=job_id, attempt=number, how=one.how, exit_code=code)

    def lose(self, node: NodeId) -> list[Observation]:
        """A node goes, and what lies on it."""
        now = Millis(self._chance.now_ms)
        self.down[node] = now + self._chance.pick(1, 60) * SECOND
        seen: list[Observation] = [NodeUnreachable(now, node)]
        for (job_id, number), one in self.attempts.items():
            lies = any(member.node == node for member in one.launch.members)
            if lies and one.end is None:
                one.end = AttemptLost(
                    now, job_id, number, Reason("node-lost", sentence="its node went")
                )
                seen.append(one.end)
        return seen

    def next_ms(self) -> int | None:
        """Return when something will be seen next."""
        moments = list(self.down.values())
        for one in self.attempts.values():
            if one.end is None:
                moments.append(one.ends_ms if one.is_started else one.starts_ms)
        return min(moments, default=None)

    def check(self) -> None:
        """No job twice at once, no device twice."""
        jobs: dict[JobId, int] = {}
        devices: dict[tuple[NodeId, int], JobId] = {}
        for (job_id, number), one in self.attempts.items():
            if one.end is not None:
                continue
            if job_id in jobs:
                raise Broken(f"attempts {jobs[job_id]} and {number} of `{job_id}` at once")
            jobs[job_id] = number
            for member in one.launch.members:
                for gpu in member.gpus:
                    if (member.node, gpu) in devices:
                        raise Broken(f"device {gpu} of `{member.node}` is given twice")
                    devices[member.node, gpu] = job_id


class ChanceExecutor:
    """A client of the hands; one that is new is told everything by `attempts`."""

    def __init__(self, hands: Hands, chance: Chance) -> None:
        chance.strike("reaching the executor")
        self._hands, self._chance = hands, chance
        # A new client learns which nodes are there; what another one saw died with it.
        now, names = Millis(chance.now_ms), [NodeId(f"n{one}") for one in range(1, NODES + 1)]
        self._unseen: list[Observation] = [
            NodeUnreachable(now, name) if name in hands.down else NodeReachable(now, name)
            for name in names
        ]

    def fileno(self) -> int:
        return -1

    def start(self, launch: Launch) -> None:
        self._chance.strike("a start")
        key, now = (launch.job_id, launch.attempt), self._chance.now_ms
        newer = [number for job, number in self._hands.attempts if job == launch.job_id]
        if key in self._hands.attempts:
            return
        if newer and max(newer) > launch.attempt:
            said = Reason("stale-order", sentence="a newer attempt is known")
            self._unseen.append(OrderRefused(Millis(now), *key, said))
            return
        starts = now + self._chance.pick(0, 2_000)
        one = _Attempt(launch, now, starts, starts + self._chance.pick(0, 300_000), "exited")
        one.exit_code = 1 if self._chance.happens(0.15) else 0
        self._hands.attempts[key] = one
        self._hands.launched += 1
        self._hands.check()
        self._chance.strike("answering a start")

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        self._chance.strike("a stop")
        one = self._hands.attempts.get((job_id, attempt))
        if one is not None and one.end is None and one.how != "stopped":
            soon = self._chance.now_ms + self._chance.pick(0, grace_ms)
            if soon < one.ends_ms:
                one.ends_ms, one.how = max(soon, one.starts_ms), "stopped"

    def observations(self) -> list[Observation]:
        self._chance.strike("looking")
        seen, self._unseen = self._unseen, []
        seen += self._hands.advance()
        if self._chance.happens(0.01):
            seen += self._hands.lose(NodeId(f"n{self._chance.pick(1, NODES)}"))
        return seen

    def attempts(self) -> list[AttemptState]:
        self._chance.strike("asking for attempts")
        self._hands.advance()
        return [
            AttemptState(
                job_id=job_id,
                attempt=number,
                phase="ended" if one.end else "running" if one.is_started else "starting",
                members=one.launch.members,
                ordered_ms=Millis(one.ordered_ms),
                started_ms=Millis(one.starts_ms) if one.is_started else None,
                end=one.end,
            )
            for (job_id, number), one in self._hands.attempts.items()
            if not one.is_settled
        ]

    def settle(self, attempts: Sequence[tuple[JobId, int]]) -> None:
        self._chance.strike("settling")
        for key in attempts:
            if key in self._hands.attempts:
                self._hands.attempts[key].is_settled = True

    def open_shell(self, job_id: JobId, attempt: int, request: ShellRequest) -> Reason:
        return Reason("shell-unsupported")

    def logs(self, job_id: JobId, attempt: int, member: int, bytes_most: int = 0) -> MemberLog:
        return MemberLog(tail=b"", paths=(), bytes_kept=0)

    def close(self) -> None:
        pass


class ChanceClock:
    """Time that jumps to the next thing that happens; the wall's may go back, this does not."""

    def __init__(self, chance: Chance, hands: Hands, least_ms: Millis, idle: Callable[[], None]):
        self._chance, self._hands, self._idle = chance, hands, idle
        chance.now_ms = max(chance.now_ms, least_ms)

    def now_ms(self) -> Millis:
        return Millis(self._chance.now_ms)

    def wait(self, descriptors: Sequence[int], timeout_ms: int | None) -> None:
        self._chance.strike("waiting")
        after = self._hands.next_ms()
        moments = [] if after is None else [after]
        if timeout_ms is not None:
            moments.append(self._chance.now_ms + timeout_ms)
        if not moments:
            self._idle()
            return
        self._chance.now_ms = max(self._chance.now_ms + 1, min(moments))
        if self._chance.happens(0.3):
            self._idle()


class Users:
    """People who submit and cancel, and remember what they were told."""

    def __init__(self, chance: Chance, inbox: Inbox) -> None:
        self._chance, self._inbox = chance, inbox
        self.left = JOBS
        self.told: list[JobId] = []
        self.refused = 0

    def act(self) -> None:
        """Ask for something, or close when nothing is left to ask."""
        if not self.left:
            return
        if self.told and self._chance.happens(0.15):
            self._inbox.put(Cancel(self.told[self._chance.pick(0, len(self.told) - 1)]), self._nod)
            return
        self.left -= 1
        self._inbox.put(Submit((self._submission(),)), self._receive)

    def _receive(self, answer: Answer) -> None:
        if answer.refused is not None:
            self.refused += 1
        self.told += answer.jobs

    def _nod(self, answer: Answer) -> None:
        self.refused += answer.refused is not None

    def _submission(self) -> Submission:
        gpus = self._chance.pick(0, 2 * GPUS)
        saves = CheckpointSpec(folder="saves") if self._chance.happens(0.5) else None
        elastic = gpus in range(1, GPUS + 1) and self._chance.happens(0.3)
        return Submission(
            team=TeamId(f"team-{self._chance.pick(1, 2)}"),
            shape=shape_of(gpus, cpus=0.0 if elastic else 1.0 if gpus <= GPUS else 2.0),
            terms=Terms(least_gpus=1, most_gpus=GPUS) if elastic else None,
            run_spec=RunSpec(
                name="job", command=("true",), checkpoint=saves, grace_ms=Millis(5 * SECOND)
            ),
            limit_ms=Millis(self._chance.pick(60, 600) * SECOND),
            array=self._chance.pick(2, 4) if self._chance.happens(0.1) else 0,
        )
