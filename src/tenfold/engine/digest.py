"""A short text that is the same for the same state, and for no other.

Digests stand in snapshots, exports and bundles, and must come out the same for as long as these are
read: the names below and the fields of the records, their order included, are those of the wire.
"""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from tenfold.fleet.fleet import Fleet
from tenfold.model.fleet.node import Node


def fleet_digest(fleet: Fleet) -> str:
    """Return the digest of everything a fleet holds, the order of its records included."""
    seldom = {
        "promises": fleet.reservations,
        "idle": fleet.idle,
        "evictions": list(fleet.evictions),
        "fates": fleet.fates,
        "failures": fleet.failure_log.failures,
        "succeeded": fleet.failure_log.succeeded,
        "blamed": fleet.failure_log.blamed,
        "crashes": fleet.failure_log.crashes,
    }
    # What is empty is left out, so that records from before it was counted still verify.
    held = {name: value for name, value in seldom.items() if value}
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
