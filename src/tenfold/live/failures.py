"""Derive what went wrong, and on which node, from the end of an attempt.

A node is named only if it is known: by the member that failed first, or because the whole attempt
was on it. Guessing would cordon healthy nodes.
"""

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from tenfold.live.executor import AttemptEnded, AttemptLost, OrderRefused
from tenfold.model.ids import NodeId
from tenfold.model.job.failures import AttemptFailure
from tenfold.model.job.job import Slot
from tenfold.model.units import Millis

_ENGINE = ("preempted-in-engine", "limited-in-engine")
NOT_THE_NODE = (
    *("node-lost", "site-lost", "attempt-unknown", "supervisor-told", "machine-restarted"),
    *_ENGINE,
)
"""Losses that do not implicate the node: it was lost as a whole, or was stopped."""
NOT_THE_JOB = (
    *("node-lost", "site-lost", "attempt-unknown", "machine-restarted"),
    "preempted-in-engine",
)
"""Losses that do not count against the job. In all others its supervisor died, or was terminated,
on a node that went on: a job can do that to itself, and would do it again."""
NOT_ITS_FAULT = (
    *("earlier-attempt-lives", "node-is-lost", "stale-order"),
    *("engine-refused", "engine-busy"),
)
"""Refusals that do not implicate the node."""


def crash_of(
    observed: AttemptEnded, slots: Sequence[Slot], saved_ms: Millis | None
) -> AttemptFailure:
    """Return the failure of an attempt that ended by itself."""
    assert observed.how != "stopped", "a requested stop is not a failure"
    return AttemptFailure(
        observed.attempt,
        observed.how,
        observed.at_ms if observed.last_alive_ms is None else observed.last_alive_ms,
        _node(slots, observed.member),
        UNSET if saved_ms is None else saved_ms,
        reason=UNSET if observed.reason is None else observed.reason,
    )


def loss_of(
    observed: AttemptLost, slots: Sequence[Slot], saved_ms: Millis | None, *, node_is_lost: bool
) -> AttemptFailure:
    """Return the failure of a lost attempt; it has a reason if it counts against the job."""
    code = observed.reason.code
    node = UNSET if code in NOT_THE_NODE else _node(slots, None)
    if node_is_lost or code in NOT_THE_JOB:
        return AttemptFailure(observed.attempt, "lost", observed.at_ms, node)
    return AttemptFailure(
        observed.attempt,
        "lost",
        observed.at_ms,
        node,
        UNSET if saved_ms is None else saved_ms,
        reason=observed.reason,
    )


def refusal_of(observed: OrderRefused, slots: Sequence[Slot]) -> AttemptFailure | UnsetType:
    """Return the failure of a start, if the node may have caused it."""
    if not observed.is_transient or observed.reason.code in NOT_ITS_FAULT:
        return UNSET
    return AttemptFailure(observed.attempt, "refused", observed.at_ms, _node(slots, None))


def _node(slots: Sequence[Slot], member: int | None) -> NodeId | UnsetType:
    if member is None:
        return slots[0].node if len(slots) == 1 else UNSET
    return slots[member].node if member < len(slots) else UNSET
