"""A fleet as one value that can be stored and restored.

What can be derived is left out: dependencies are in the terms of unfinished jobs. Everything
else is kept, including the order of records, because deciders may see it.
"""

from collections.abc import Iterator

from msgspec import Struct, field

from tenfold.fleet.dependents import Dependents
from tenfold.fleet.fleet import Fleet
from tenfold.model.fleet.node import Node, NodeState
from tenfold.model.ids import JobId, NodeId
from tenfold.model.job.failures import Crashes, NodeFailure
from tenfold.model.job.job import (
    BackfillReservation,
    EndedJob,
    Job,
    JobStatus,
    Order,
    PriorRuns,
    Run,
)
from tenfold.model.reason import Reason
from tenfold.model.service.state import ServiceState
from tenfold.model.units import Millis


class FleetImage(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True):
    """Everything that a fleet holds; fields that are often empty come last."""

    version: int
    ended: int
    nodes: tuple[Node, ...] = ()
    states: dict[NodeId, NodeState] = {}
    gpus_free: dict[NodeId, int] = {}
    cpus_milli_free: dict[NodeId, int] = {}
    memory_mib_free: dict[NodeId, int] = {}
    shares: dict[NodeId, tuple[tuple[int, int], ...]] = {}
    pending: tuple[Job, ...] = ()
    orders: tuple[Order, ...] = ()
    running: tuple[Run, ...] = ()
    past: dict[JobId, PriorRuns] = {}
    history: tuple[EndedJob, ...] = ()
    reservations: dict[JobId, BackfillReservation] = field(default_factory=dict, name="promises")
    idle: dict[JobId, Millis] = {}
    cancel_requests: dict[JobId, str] = {}
    evictions: tuple[Millis, ...] = ()
    end_statuses: dict[JobId, JobStatus] = field(default_factory=dict, name="fates")
    failures: dict[NodeId, tuple[NodeFailure, ...]] = {}
    succeeded: dict[NodeId, Millis] = {}
    blamed: dict[NodeId, Reason] = {}
    crashes: dict[JobId, Crashes] = {}
    held: tuple[Job, ...] = ()
    services: tuple[ServiceState, ...] = ()


def image_of(fleet: Fleet) -> FleetImage:
    """Return what a fleet holds now; records are shared, containers are not."""
    return FleetImage(
        version=fleet.version,
        ended=fleet.ended,
        nodes=tuple(fleet.nodes.values()),
        states=fleet.states.copy(),
        gpus_free=fleet.gpus_free.copy(),
        cpus_milli_free=fleet.cpus_milli_free.copy(),
        memory_mib_free=fleet.memory_mib_free.copy(),
        shares=fleet.shares.copy(),
        pending=tuple(fleet.pending.values()),
        orders=tuple(fleet.orders.values()),
        running=tuple(fleet.running.values()),
        past=fleet.past.copy(),
        history=tuple(fleet.history),
        reservations=fleet.reservations.copy(),
        idle=fleet.idle.copy(),
        cancel_requests=fleet.cancel_requests.copy(),
        evictions=tuple(fleet.evictions),
        end_statuses=dict(fleet.end_statuses),
        failures=fleet.failure_log.failures.copy(),
        succeeded=fleet.failure_log.succeeded.copy(),
        blamed=fleet.failure_log.blamed.copy(),
        crashes=fleet.failure_log.crashes.copy(),
        held=tuple(fleet.held.values()),
        services=tuple(fleet.services.values()),
    )


def fleet_from(image: FleetImage) -> Fleet:
    """Return the fleet of an image; it continues as the original would."""
    fleet = Fleet()
    fleet.version, fleet.ended = image.version, image.ended
    fleet.nodes = {node.id: node for node in image.nodes}
    fleet.states = image.states.copy()
    fleet.gpus_free = image.gpus_free.copy()
    fleet.cpus_milli_free = image.cpus_milli_free.copy()
    fleet.memory_mib_free = image.memory_mib_free.copy()
    fleet.shares, fleet.past = image.shares.copy(), image.past.copy()
    fleet.pending = {job.id: job for job in image.pending}
    fleet.held = {job.id: job for job in image.held}
    fleet.orders = {order.job.id: order for order in image.orders}
    fleet.running = {run.job.id: run for run in image.running}
    fleet.reservations, fleet.idle = image.reservations.copy(), image.idle.copy()
    fleet.cancel_requests = image.cancel_requests.copy()
    fleet.evictions.extend(image.evictions)
    fleet.history.extend(image.history)
    failure_log = fleet.failure_log
    failure_log.failures, failure_log.succeeded = image.failures.copy(), image.succeeded.copy()
    failure_log.blamed, failure_log.crashes = image.blamed.copy(), image.crashes.copy()
    dependents = Dependents()
    for job in _not_over(image):
        dependents.add(job)
    dependents.end_statuses.update(image.end_statuses)
    fleet._dependents = dependents  # pyright: ignore[reportPrivateUsage]
    services = {state.name: state for state in image.services}
    fleet._services.load(services)  # pyright: ignore[reportPrivateUsage]
    return fleet


def _not_over(image: FleetImage) -> Iterator[Job]:
    yield from image.pending
    yield from image.held
    for held in (*image.orders, *image.running):
        yield held.job
