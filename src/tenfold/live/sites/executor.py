"""Several executors as one: orders go to the engine of a job's nodes, and sightings are merged.

Each engine has a thread of its own (`site.py`), so one that hangs or fails delays no other. If it
owes an answer for longer than its site allows, the site is lost: its nodes are unreachable and its
attempts are lost, so that their jobs start elsewhere. What was given up is stopped as soon as the
engine answers again, and only then are its nodes back.
"""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Event, Thread
from time import monotonic

from msgspec.structs import replace

from tenfold.clock.wall import now_ms
from tenfold.live.executor import (
    LOG_TAIL_BYTES,
    AttemptEnded,
    AttemptLost,
    AttemptState,
    Launch,
    MemberLog,
    NodeClosed,
    NodeOpened,
    NodeReachable,
    NodeUnreachable,
    Observation,
    OrderRefused,
    Shell,
    ShellRequest,
)
from tenfold.live.local.attempt import logs
from tenfold.live.local.attempt.reports import recorded_state
from tenfold.live.local.shells import open_shell
from tenfold.live.sites.given_up import Key, LossRecord
from tenfold.live.sites.site import END_S, AnsweringExecutor, SiteSettings, SiteThread
from tenfold.model.errors import TenfoldError
from tenfold.model.ids import JobId, NodeId, SiteId
from tenfold.model.reason import NodeRef, Reason, Text
from tenfold.model.units import Millis

SITE_LOST = "site-lost"
"""The code of attempts, and the cause of nodes, that were lost with their site."""
ANSWER_S = 5.0
"""How long each of two questions at a start may take, at most; then the folders of a site answer.
An assumption."""
TRANSIENT = ("node-is-lost", "earlier-attempt-lives")
NOW_MS = Millis(0)
_LOG = logging.getLogger("tenfold.live")


class SitesExecutor:
    """Runs each gang through the engine of its site. `close` leaves them running."""

    def __init__(self, home: str, sites: Sequence[SiteSettings]) -> None:
        """`home` holds the record of losses; each site has a folder of its own."""
        self._losses = LossRecord(home)
        self._wake = os.eventfd(1, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._refused: list[OrderRefused] = []
        self._closing = Event()
        self._sites = {one.name: SiteThread(one, self._tell) for one in sites}
        self._by_node: dict[NodeId, SiteThread] = {
            node: self._sites[one.name] for one in sites for node in one.nodes
        }
        self._alive: dict[Key, SiteThread] = {}
        """Attempts that have not ended, as far as is known."""
        self._nodes_lost: dict[NodeId, None] = {}
        """Nodes that their engine reported as unreachable."""
        self._closed: dict[NodeId, NodeClosed] = {}
        self._lost: dict[SiteId, None] = dict(self._losses.lost)
        self._is_new = True
        for key, one in self._losses.given_up.items():
            if one.site in self._sites:
                self._sites[one.site].put(_stop_of(key))
        patience_s = min((one.lost_after_s for one in sites), default=1.0)
        self._watch = Thread(
            target=self._watch_silence, args=(patience_s / 5,), name="sites", daemon=True
        )
        self._watch.start()

    def fence(self, epoch: int) -> None:
        """Send this epoch with every order; a site that does not answer gets it first of all."""
        until_s = monotonic() + ANSWER_S
        for site in self._sites.values():
            site.fence(epoch)
        for site in self._sites.values():
            while not site.fenced() and not site.is_silent and monotonic() < until_s:
                self._closing.wait(0.01)
        self._raise_if_stale()

    def fileno(self) -> int:
        """Return a descriptor that is readable while `observations` has something to return."""
        return self._wake

    def start(self, launch: Launch) -> None:
        """Order a start at the site of its nodes. Repeating an order has no effect."""
        self._begin()
        site, reason = self._site_for(launch)
        key = (launch.job_id, launch.attempt)
        if site is None or reason is not None:
            assert reason is not None, "a start without a site is refused"
            self._refuse(key, reason)
            return
        self._alive.setdefault(key, site)

        def start(executor: AnsweringExecutor) -> None:
            try:
                executor.start(launch)
            except (TenfoldError, OSError):
                raise
            except Exception as error:
                said = {"said": Text(f"cannot start: {type(error).__name__}: {error}"[:300])}
                site.report(_refusal(key, Reason("start-failed", said)))

        site.put(start)

    def stop(self, job_id: JobId, attempt: int, grace_ms: Millis) -> None:
        """Send SIGTERM to all members, and kill what is left after `grace_ms`."""
        self._begin()
        key = (job_id, attempt)
        if key in self._losses.given_up:
            return
        site = self._alive.get(key) or self._site_of(job_id, attempt)
        if site is None:
            said = Text(f"attempt {attempt} of `{job_id}` never started here")
            self._refuse(key, Reason("no-such-attempt", {"said": said}))
            return
        site.put(lambda executor: executor.stop(job_id, attempt, grace_ms))

    def observations(self) -> list[Observation]:
        """Return new observations in order, without waiting."""
        self._raise_if_stale()
        self._begin()
        with suppress(BlockingIOError):
            os.eventfd_read(self._wake)
        found: list[Observation] = list(self._refused)
        self._refused.clear()
        if self._is_new:
            self._is_new = False
            for name in [name for name in self._lost if name in self._sites]:
                found += self._nodes(self._sites[name], is_lost=True)
        for site in self._sites.values():
            for one in site.take():
                found += self._on(site, one)
            found += self._check(site)
        return found

    def attempts(self) -> list[AttemptState]:
        """Return every unsettled attempt; what it contains is not reported again.

        A site that does not answer in time is represented by what is in its folders.
        """
        self._begin()
        until_s = monotonic() + ANSWER_S
        questions = [(site, site.attempts()) for site in self._sites.values()]
        found: list[AttemptState] = []
        for site, awaited in questions:
            ends_s = min(until_s, monotonic() + site.settings.lost_after_s)
            states = awaited.get(ends_s)
            for state in _in_folders(site) if states is None else states:
                found.append(self._adopted(site, state))
        self._raise_if_stale()
        return found

    def settle(self, attempts: Sequence[Key]) -> None:
        """Remove these from `attempts`: their ends are in the journal."""
        given_up = self._losses.given_up
        for site in self._sites.values():
            own = [
                key
                for key in attempts
                if key not in given_up and os.path.isdir(site.home.attempt(*key).path)
            ]
            if own:
                site.put(partial(_settle, own))

    def logs(
        self, job_id: JobId, attempt: int, member: int, bytes_most: int = LOG_TAIL_BYTES
    ) -> MemberLog:
        """Return the tail of a member's log; empty if it wrote nothing."""
        site = self._site_of(job_id, attempt)
        if site is None:
            return MemberLog(tail=b"", paths=(), bytes_kept=0)
        folder = site.home.attempt(job_id, attempt)
        paths = logs.segments(folder.path, member)
        return MemberLog(
            tail=logs.tail(paths, bytes_most),
            paths=tuple(paths),
            bytes_kept=sum(os.path.getsize(path) for path in paths if os.path.exists(path)),
            segments=tuple(logs.segment_offsets(folder.path, member)),
        )

    def open_shell(self, job_id: JobId, attempt: int, request: ShellRequest) -> Shell | Reason:
        """Run a command beside a member of a running attempt; return why not if it cannot."""
        here = [site for site in self._sites.values() if site.settings.opens_shells]
        site = self._site_of(job_id, attempt) or next(iter(here), None)
        if site is None or not site.settings.opens_shells:
            return Reason("shell-unsupported")
        return open_shell(site.home, job_id, attempt, request)

    def close(self) -> None:
        """Disconnect from all engines. Running jobs continue."""
        if self._closing.is_set():
            return
        self._closing.set()
        for site in self._sites.values():
            site.close()
        until_s = monotonic() + END_S
        for site in self._sites.values():
            if not site.is_silent:
                site.join(until_s)
        self._watch.join()
        os.close(self._wake)
        self._wake = -1

    def _tell(self) -> None:
        with suppress(OSError):
            os.eventfd_write(self._wake, 1)

    def _watch_silence(self, period_s: float) -> None:
        """Wake the caller, in a thread, while a site is to be lost or found."""
        while not self._closing.wait(period_s):
            if any(site.is_silent != (name in self._lost) for name, site in self._sites.items()):
                self._tell()

    def _begin(self) -> None:
        for site in self._sites.values():
            site.begin()

    def _raise_if_stale(self) -> None:
        for site in self._sites.values():
            if site.stale is not None:
                raise site.stale

    def _refuse(self, key: Key, reason: Reason) -> None:
        self._refused.append(_refusal(key, reason))
        self._tell()

    def _site_for(self, launch: Launch) -> tuple[SiteThread | None, Reason | None]:
        """Return the site of a launch, and why it must not start there, if so."""
        site = self._by_node.get(launch.members[0].node)
        strange = [one.node for one in launch.members if self._by_node.get(one.node) is not site]
        if site is None or strange:
            node = strange[0] if strange else launch.members[0].node
            return None, Reason("not-at-one-site", {"node": NodeRef(node)})
        if site.name in self._lost:
            said = Text(f"site `{site.name}` does not answer")
            return None, Reason("node-is-lost", {"said": said})
        return site, self._why_elsewhere(launch, site)

    def _why_elsewhere(self, launch: Launch, site: SiteThread) -> Reason | None:
        """Return why an attempt at another site forbids this one; its own site knows its own."""
        job, attempt = launch.job_id, launch.attempt
        for other in self._sites.values():
            numbers = [] if other is site else other.home.numbers(job)
            if not numbers:
                continue
            last = numbers[-1]
            if last > attempt:
                said = (
                    f"attempt {attempt} of `{job}` is older than attempt {last} at `{other.name}`"
                )
                return Reason("stale-order", {"said": Text(said)})
            if (job, last) not in self._losses.given_up and (job, last) in self._alive:
                said = f"attempt {last} of `{job}` has not ended yet at `{other.name}`"
                return Reason("earlier-attempt-lives", {"said": Text(said)})
        return None

    def _site_of(self, job_id: JobId, attempt: int) -> SiteThread | None:
        """Return the site that has the folder of an attempt."""
        for site in self._sites.values():
            if os.path.isdir(site.home.attempt(job_id, attempt).path):
                return site
        return None

    def _adopted(self, site: SiteThread, state: AttemptState) -> AttemptState:
        """Return the state of an attempt; one that was given up is lost, whatever it does."""
        key = (state.job_id, state.attempt)
        given_up = self._losses.given_up.get(key)
        if given_up is None:
            if state.end is None:
                self._alive[key] = site
            return state
        if state.end is not None:
            self._losses.over([key])
        return replace(state, phase="lost", end=_loss(key, site.name, given_up.at_ms))

    def _on(self, site: SiteThread, one: Observation) -> list[Observation]:
        if isinstance(one, NodeUnreachable | NodeReachable | NodeClosed | NodeOpened):
            return self._on_node(site, one)
        key = (one.job_id, one.attempt)
        is_over = isinstance(one, AttemptEnded | AttemptLost | OrderRefused)
        if key in self._losses.given_up:
            if is_over:
                self._losses.over([key])
                site.put(partial(_settle, [key]))
            return []
        if is_over:
            self._alive.pop(key, None)
        return [one]

    def _on_node(
        self, site: SiteThread, one: NodeUnreachable | NodeReachable | NodeClosed | NodeOpened
    ) -> list[Observation]:
        if self._by_node.get(one.node) is not site:
            # A node of the engine that is not in the fleet, or has the name of one elsewhere.
            return []
        if isinstance(one, NodeUnreachable):
            self._nodes_lost[one.node] = None
        elif isinstance(one, NodeReachable):
            self._nodes_lost.pop(one.node, None)
        elif isinstance(one, NodeClosed):
            self._closed[one.node] = one
        else:
            self._closed.pop(one.node, None)
        return [] if site.name in self._lost else [one]

    def _check(self, site: SiteThread) -> list[Observation]:
        """Return what follows if a site is lost now, or back."""
        is_lost = site.name in self._lost
        if site.is_silent and not is_lost:
            return self._lose(site)
        if is_lost and site.answers and not self._losses.of(site.name):
            return self._find(site)
        return []

    def _lose(self, site: SiteThread) -> list[Observation]:
        at_ms = Millis(now_ms())
        keys = [key for key, there in self._alive.items() if there is site]
        self._lost[site.name] = None
        site.answers = False
        _LOG.warning("site `%s` is lost, and %d attempts with it", site.name, len(keys))
        try:
            self._losses.lose(site.name, keys, at_ms)
        except OSError as error:
            _LOG.error("the loss of site `%s` cannot be recorded: %s", site.name, error)
        for key in keys:
            del self._alive[key]
            site.put(_stop_of(key))
        return [*self._nodes(site, is_lost=True), *(_loss(key, site.name, at_ms) for key in keys)]

    def _find(self, site: SiteThread) -> list[Observation]:
        """Bring a site back: it answers, and nothing is left there of what was given up."""
        del self._lost[site.name]
        _LOG.info("site `%s` answers again", site.name)
        self._losses.found(site.name)
        closed = [one for node, one in self._closed.items() if self._by_node[node] is site]
        for one in closed:
            # With the next observations: a node is open before it is closed.
            site.report(one)
        return self._nodes(site, is_lost=False)

    def _nodes(self, site: SiteThread, *, is_lost: bool) -> list[Observation]:
        at_ms = Millis(now_ms())
        nodes = [node for node in site.settings.nodes if node not in self._nodes_lost]
        if is_lost:
            return [NodeUnreachable(at_ms, node, SITE_LOST) for node in nodes]
        return [NodeReachable(at_ms, node) for node in nodes]


def _refusal(key: Key, reason: Reason) -> OrderRefused:
    is_transient = reason.code in TRANSIENT
    return OrderRefused(Millis(now_ms()), *key, reason, is_transient)


def _loss(key: Key, site: SiteId, at_ms: Millis) -> AttemptLost:
    return AttemptLost(at_ms, *key, Reason(SITE_LOST, {"site": site}))


def _stop_of(key: Key) -> Callable[[AnsweringExecutor], None]:
    return lambda executor: executor.stop(*key, NOW_MS)


def _settle(keys: Sequence[Key], executor: AnsweringExecutor) -> None:
    executor.settle(keys)


def _in_folders(site: SiteThread) -> list[AttemptState]:
    """Return the attempts of a site whose engine does not answer, as its folders have them."""
    with suppress(OSError):
        return [recorded_state(folder) for folder in site.home.unsettled()]
    return []
