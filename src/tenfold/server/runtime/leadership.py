"""Which of the control planes that share a PostgreSQL journal leads: this one's side of it.

The loop waits here until it may take the lease. A thread renews the lease, and shows that this
control plane is there. A leader whose lease was taken ends its loop at once; even if that comes
late, the journal and the executor refuse whatever it still wants to write or order.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from sqlalchemy import Connection

from tenfold.clock.steady import boot_s
from tenfold.journal.leadership.control_planes import (
    ControlPlaneRow,
    forget,
    note_seen,
    shared_by,
)
from tenfold.journal.leadership.lease import (
    LOST,
    Claim,
    LeaseState,
    check_epoch,
    check_executor,
    lease_of,
    release,
    renew,
)
from tenfold.journal.store import Store, open_store
from tenfold.live.executor import STALE_ORDERS as STALE
from tenfold.live.inbox import Inbox
from tenfold.model.errors import Refused, TenfoldError
from tenfold.model.reason import Reason
from tenfold.model.units import SECOND
from tenfold.server.problems import Problem

FAILOVER_LEASES, FAILOVER_MORE_S = 3, 5.0
OTHERS_LEASES = 3
"""A control plane that was seen within so many leases may lead next."""
RENEWALS = 4
"""In the length of a lease."""
MARGIN = 0.2
"""Share of a lease before its end at which this control plane stops giving orders."""
LOOKS = 16
"""Looks of a standby at the lease, in its length."""
LOOK_S_MAX = 0.5
END_S = 10.0
LEADER_HEADER = "Tenfold-Leader"
"""The URL of the control plane that leads, in a refusal."""
HINT = "nothing was changed; send it to the control plane that leads"
JOURNAL, EXECUTOR, CLOCK, REQUEST = "journal", "executor", "own-clock", "api"
STANDBY = "standby"
"""The code of a control plane that does not lead."""
TAKEN = "another control plane took the lease"
"""Found by the renewal: nothing was refused yet."""
_LOG = logging.getLogger("tenfold.server")

Role = Literal["leader", "standby"]


class Sharing(Struct, frozen=True, kw_only=True):
    """How this control plane shares its journal with others."""

    claim: Claim
    name: str = ""
    version: str = ""
    is_dead: Callable[[LeaseState], bool] = lambda _: False
    """Whether the process that leads is known to be gone."""


class Leadership:
    """The lease of this control plane, while it has it; thread-safe."""

    def __init__(
        self, journal: str, sharing: Sharing, holder: str, inbox: Inbox, url: Callable[[], str]
    ) -> None:
        assert sharing.claim.lease_ms is not None, "a shared journal has a lease that expires"
        self.lease_ms = sharing.claim.lease_ms
        self._sharing, self._holder, self._inbox, self._url = sharing, holder, inbox, url
        # Its own connections: a busy pool must not delay a renewal.
        self._store: Store = open_store(journal)
        self._others = False
        self.on_others: Callable[[], None] = _nothing
        """Called when the first other control plane comes, or the last one goes."""
        self._lock = Lock()
        self._epoch: int | None = None
        self._ends_s = 0.0
        """When to stop giving orders, on the boot-time clock."""
        self._leader_url = ""
        self._claim = sharing.claim
        self._stopping, self._wake = Event(), Event()
        self._thread = Thread(target=self._keep, name="tenfold-lease", daemon=True)
        self.takeovers = 0
        """How often this control plane took the lease."""
        self.losses = 0
        """How often another one took it, or orders came too late."""
        self.refused = dict.fromkeys((JOURNAL, EXECUTOR, CLOCK, REQUEST), 0)
        """Writes, orders and requests refused because another one leads, by what refused them."""
        self.renewed_s = 0.0
        """How long the last renewal took."""

    @property
    def role(self) -> Role:
        """Whether it leads."""
        return "standby" if self._epoch is None else "leader"

    @property
    def epoch(self) -> int | None:
        """The epoch in which it leads; None if it does not."""
        return self._epoch

    @property
    def leader_url(self) -> str:
        """The URL of the control plane that leads, as far as known."""
        return self._leader_url

    @property
    def control_plane(self) -> str:
        """The identity of this control plane."""
        return self._claim.control_plane

    @property
    def failover_s(self) -> float:
        """How long clients should wait for another leader."""
        return FAILOVER_LEASES * self.lease_ms / SECOND + FAILOVER_MORE_S

    def has_others(self) -> bool:
        """Tell whether another control plane is there, as of the last renewal."""
        return self._others

    def still_has_others(self) -> bool:
        """Look again whether another control plane is there: it may just have stopped."""
        with suppress(TenfoldError):
            self._others = self._sees_others()
        return self._others

    def left_s(self) -> float:
        """Return how long it may still give orders; 0 if it may not."""
        return 0.0 if self._epoch is None else max(0.0, self._ends_s - boot_s())

    def claim(self) -> Claim:
        """Return the claim with which the loop opens the journal."""
        return replace(self._claim, url=self._url())

    def trouble(self) -> Reason | None:
        """Return why it accepts no changes, if it does not lead."""
        if self._epoch is not None:
            return None
        return Reason(STANDBY, {"url": self._leader_url} if self._leader_url else {})

    def start(self) -> None:
        """Start to renew the lease; raise if this control plane could never lead."""
        lease = lease_of(self._store)
        if lease is not None and lease.control_plane != self.control_plane:
            with self._store.reading() as connection:
                check_executor(connection, self._claim, lease)
        self._thread.start()

    def wait(self) -> None:
        """Return once it may take the lease, or the inbox is closed."""
        look_s = min(LOOK_S_MAX, self.lease_ms / SECOND / LOOKS)
        was_down = False
        with self._lock:
            # A loop that begins again takes a new epoch: the old one is not renewed any more.
            self._epoch = None
        while not self._inbox.is_closed:
            try:
                lease = lease_of(self._store)
                if lease is None or self._may_take(lease):
                    return
                self._leader_url = lease.url
                was_down = False
            except TenfoldError as error:
                if not was_down:
                    _LOG.warning("cannot read the lease: %s", error.message)
                was_down = True
            self._stopping.wait(look_s)

    def taken(self, epoch: int, since_s: float) -> None:
        """Note that the loop took the lease, which was asked for at `since_s`."""
        with self._lock:
            self._epoch, self._ends_s = epoch, self._end_after(since_s)
            self._leader_url = self._url()
            self.takeovers += 1
        self._inbox.forget_interrupt()
        self._wake.set()
        _LOG.info("this control plane leads, in epoch %d", epoch)

    def check(self) -> None:
        """Raise if the lease has ended by the clock of this machine."""
        if self.left_s() <= 0:
            self.refused[CLOCK] += 1
            raise Refused(
                "lease-expired",
                "the lease on the journal was not renewed in time",
                "another control plane may lead by now; the order is in the journal",
            )

    def check_write(self, connection: Connection) -> None:
        """Raise if this control plane does not lead; the check holds until the commit."""
        epoch = self._epoch
        if epoch is None:
            raise Refused("not-leader", "this control plane does not lead", "use the one that does")
        try:
            check_epoch(connection, epoch)
        except Refused:
            self.refused[JOURNAL] += 1
            raise

    def lost(self, refused: Refused) -> None:
        """Note that another control plane is the leader, or may."""
        if refused.code == STALE:
            self.refused[EXECUTOR] += 1
        elif refused.code == LOST and refused.message != TAKEN:
            self.refused[JOURNAL] += 1
        with self._lock:
            was_leader, self._epoch = self._epoch is not None, None
            self.losses += was_leader
        self._inbox.forget_interrupt()
        if was_leader:
            _LOG.warning("this control plane is on standby: %s", refused.message)

    def hand_over(self) -> None:
        """Release the lease once the loop has ended: a standby takes it at once."""
        with self._lock:
            epoch, self._epoch, self._leader_url = self._epoch, None, ""
        if epoch is not None:
            try:
                release(self._store, epoch, self.lease_ms)
                _LOG.info("released the lease of epoch %d", epoch)
            except TenfoldError as error:
                _LOG.warning("the lease was not released, and expires: %s", error.message)

    def stop(self) -> None:
        """Stop renewing, and forget this control plane."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(END_S)
        try:
            forget(self._store, self.control_plane)
        except TenfoldError as error:
            _LOG.warning("the list of control planes was not changed: %s", error.message)
        self._store.close()

    def _may_take(self, lease: LeaseState) -> bool:
        if not lease.may_take(self._claim) and self._sharing.is_dead(lease):
            self._claim = replace(self._claim, dead_epoch=lease.epoch)
        return lease.may_take(self._claim)

    def _keep(self) -> None:
        """Renew the lease, and show that this control plane is there."""
        was_down = False
        while not self._stopping.is_set():
            try:
                self._renew_once()
                row = ControlPlaneRow(
                    id=self.control_plane,
                    name=self._sharing.name,
                    url=self._url(),
                    holder=self._holder,
                    version=self._sharing.version,
                )
                note_seen(self._store, row, self.lease_ms)
                self._look_for_others()
                was_down = False
            except TenfoldError as error:
                # The database's answer counts when it is back; until then the lease runs out.
                if not was_down:
                    _LOG.warning("cannot renew the lease: %s", error.message)
                was_down = True
            self._wake.wait(self.lease_ms / SECOND / RENEWALS)
            self._wake.clear()

    def _sees_others(self) -> bool:
        shared = shared_by(self._store)
        since_ms = shared.now_ms - OTHERS_LEASES * self.lease_ms
        return any(row.id != self.control_plane and row.seen_ms >= since_ms for row in shared.rows)

    def _look_for_others(self) -> None:
        others = self._sees_others()
        changed, self._others = others != self._others, others
        if changed and self._epoch is not None:
            try:
                self.on_others()
            except OSError as error:
                _LOG.warning("cannot write the address file: %s", error)

    def _renew_once(self) -> None:
        epoch, since_s = self._epoch, boot_s()
        if epoch is None:
            return
        is_ours = renew(self._store, epoch, self.lease_ms)
        self.renewed_s = boot_s() - since_s
        with self._lock:
            if self._epoch != epoch:
                return
            if is_ours:
                self._ends_s = self._end_after(since_s)
                return
        refused = Refused(LOST, TAKEN, "use the control plane that leads")
        self.lost(refused)
        self._inbox.interrupt(refused)

    def _end_after(self, since_s: float) -> float:
        return since_s + (1 - MARGIN) * self.lease_ms / SECOND


def _nothing() -> None:
    """Do nothing."""


def not_leader(leadership: Leadership | None) -> Problem | None:
    """Return the answer to a request for a change, if another control plane is the leader."""
    if leadership is None or leadership.epoch is not None:
        return None
    leadership.refused[REQUEST] += 1
    url = leadership.leader_url
    reason = Reason("not-leader", {"url": url} if url else {})
    return Problem(503, reason, HINT, headers={LEADER_HEADER: url} if url else {})
