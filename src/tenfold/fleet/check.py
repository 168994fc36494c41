"""Every invariant of the running fleet, recomputed from its records."""

from collections.abc import Mapping

from tenfold.fleet.fleet import Fleet, more_than
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.job import WHOLE, Order, Run, Slot, per_member


def check(fleet: Fleet) -> None:
    """Assert that free amounts match the records, and that every job is in one state."""
    _one_place(fleet)
    _free_amounts(fleet)
    for job_id, run in fleet.running.items():
        for slot in run.slots:
            assert fleet.states[slot.node] != "down", (
                f"job `{job_id}` runs on node `{slot.node}`, which is down"
            )


def _one_place(fleet: Fleet) -> None:
    places: list[tuple[str, Mapping[JobId, object]]] = [
        ("pending", fleet.pending),
        ("held", fleet.held),
        ("ordered", fleet.orders),
        ("running", fleet.running),
    ]
    seen: dict[JobId, str] = {}
    for name, jobs in places:
        for job_id in jobs:
            assert job_id not in seen, f"job `{job_id}` is both {seen[job_id]} and {name}"
            seen[job_id] = name
    for job_id in fleet.reservations:
        assert job_id in fleet.pending, f"job `{job_id}` has a reserved start but is not pending"
    for job_id in fleet.idle:
        assert job_id in fleet.running, f"job `{job_id}` is idle but not running"
    for job_id in fleet.cancel_requests:
        assert seen.get(job_id) in ("ordered", "running"), (
            f"job `{job_id}` is being cancelled but has no attempt"
        )
    for job_id in fleet.past:
        assert job_id in seen, f"job `{job_id}` has earlier runs but is in no state"


def _free_amounts(fleet: Fleet) -> None:
    whole: dict[NodeId, int] = {}
    shares: dict[NodeId, dict[int, int]] = {}
    cpus: dict[NodeId, int] = {}
    memory: dict[NodeId, int] = {}
    for held in (*fleet.orders.values(), *fleet.running.values()):
        _sound_gang(held)
        each_cpus, each_memory = per_member(held.job.shape, len(held.slots))
        for slot in held.slots:
            if slot.milli:
                given = shares.setdefault(slot.node, {})
                given[slot.device] = given.get(slot.device, 0) + slot.milli
            else:
                whole[slot.node] = whole.get(slot.node, 0) + slot.gpus
            cpus[slot.node] = cpus.get(slot.node, 0) + each_cpus
            memory[slot.node] = memory.get(slot.node, 0) + each_memory
        if isinstance(held, Run) and held.becoming is not None:
            for slot in more_than(held.becoming, held.slots):
                whole[slot.node] = whole.get(slot.node, 0) + slot.gpus
    for node_id, node in fleet.nodes.items():
        given = shares.get(node_id, {})
        assert all(0 < milli <= WHOLE for milli in given.values()), f"`{node_id}` is over-shared"
        assert dict(fleet.shares.get(node_id, ())) == given, f"shares of `{node_id}` are wrong"
        free = node.gpus - whole.get(node_id, 0) - len(given)
        assert free >= 0, f"node `{node_id}` is over-allocated by {-free} gpus"
        assert fleet.gpus_free[node_id] == free, (
            f"node `{node_id}` has {free} gpus free, the fleet says {fleet.gpus_free[node_id]}"
        )
        if node.cpus_milli:
            left = node.cpus_milli - cpus.get(node_id, 0)
            assert fleet.cpus_milli_free[node_id] == left >= 0, f"cpus of `{node_id}` are wrong"
        if node.memory_mib:
            left = node.memory_mib - memory.get(node_id, 0)
            assert fleet.memory_mib_free[node_id] == left >= 0, f"memory of `{node_id}` is wrong"


def _sound_gang(held: Order | Run) -> None:
    shape, slots = held.job.shape, held.slots
    nodes = [slot.node for slot in slots]
    assert len(set(nodes)) == len(nodes), f"gang `{held.job.id}` has two members on one node"
    terms = held.job.terms
    least = terms.least_gpus if terms and terms.least_gpus else shape.gpus
    assert _given(slots) >= (shape.milli or least * WHOLE), f"gang `{held.job.id}` is split"


def _given(slots: tuple[Slot, ...]) -> int:
    return sum(slot.milli or slot.gpus * WHOLE for slot in slots)
