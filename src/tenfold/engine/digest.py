"""A short text that is the same for the same state, and for no other."""

from collections.abc import Iterable
from hashlib import blake2b

import msgspec

from tenfold.fleet.fleet import Fleet
from tenfold.model.node import Node


def fleet_digest(fleet: Fleet) -> str:
    """Return the digest of everything a fleet holds, the order of its records included."""
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
        )
    )


def nodes_digest(nodes: Iterable[Node]) -> str:
    """Return the digest of nodes, in order."""
    return _digest(list(nodes))


def _digest(value: object) -> str:
    return blake2b(msgspec.json.encode(value), digest_size=16).hexdigest()
