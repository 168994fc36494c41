"""A short text that identifies a state.

Digests are stored in snapshots, exports and bundles, and must stay the same as long as these are
read: the names below, and the fields of the records and their order, are wire names.
"""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from tenfold.fleet.fleet import Fleet
from tenfold.model.fleet.node import Node


def fleet_digest(fleet: Fleet) -> str:
    """Return the digest of everything a fleet holds, including the order of its records."""
    optional = {
        "promises": fleet.reservations,
        "idle": fleet.idle,
        "cancel_requests": fleet.cancel_requests,
        "evictions": list(fleet.evictions),
        "fates": fleet.end_statuses,
        "failures": fleet.failure_log.failures,
        "succeeded": fleet.failure_log.succeeded,
        "blamed": fleet.failure_log.blamed,
        "crashes": fleet.failure_log.crashes,
        "held": fleet.held,
    }
    # Empty parts are left out, so that records from before they existed still verify.
    held = {name: value for name, value in optional.items() if value}
    return _digest(
        (
            fleet.version,
            fleet.ended,
            list(fleet.nodes.values()),
            fleet.states,
            fleet.gpus_free,
            fleet.cpus_milli_free,
            fleet.memory_mib_free,
            fleet.shares,
            fleet.pending,
            fleet.orders,
            fleet.running,
            fleet.past,
            list(fleet.history),
            *([held] if held else []),
        )
    )


def nodes_digest(nodes: Iterable[Node]) -> str:
    """Return the digest of nodes, in order."""
    return _digest(list(nodes))


def _digest(value: object) -> str:
    return blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()
