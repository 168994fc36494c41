"""Serving: requests against what the GPUs of a pool can answer within their latency targets.

Services of one pool share its GPUs, so each pool has one constraint over all of its services. The
throughput of a replica is the planner's estimate for the best one that meets its targets;
fractions of a replica count, as the factor is a real number. Requests arrive by chance, so some
capacity is kept for those that come together: enough for `attainment_least` of the requests. A
replica limit is a constraint of its own.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import inf
from typing import NamedTuple

from msgspec.msgpack import decode, encode
from msgspec.structs import replace

from tenfold.decide.layout.serve import (
    ServeAnswer,
    ServePlan,
    ServeRequest,
    ServeTarget,
    plan_serve,
)
from tenfold.model.growth.growth import Axis, ServiceLoad, grown_by
from tenfold.model.plan import ServiceDemand
from tenfold.physics.growth.breaking import DEFAULTED
from tenfold.physics.growth.occupancy import mean_within, slots_for
from tenfold.study.grow.layer import ComputedLayer, Constraint
from tenfold.study.grow.layers.compute.nodes import more_nodes
from tenfold.study.grow.relief import Relief, round_up_to, with_relief
from tenfold.study.grow.state import State
from tenfold.study.plan.target import serve_targets
from tenfold.study.plan.train import model_shape

PLANS_KEPT = 64


class Served(NamedTuple):
    """A service with the replica of the highest throughput per GPU."""

    load: ServiceLoad
    pool: str
    pool_gpus: int
    replica: ServePlan

    def gpus(self, factor: float) -> float:
        """Return the GPUs that a multiple of its requests keeps busy."""
        requests = self.load.qps * factor / self.replica.qps_per_replica_max
        return requests * self.replica.gpus_per_replica

    @property
    def slots(self) -> float:
        """Requests that a replica has in progress at its highest throughput, by Little's law."""
        length_s = (self.load.ttft_s or 0.0) + (self.load.tpot_s or 0.0) * self.load.output_tokens
        return self.replica.qps_per_replica_max * length_s

    def usable(self, replicas: float, attainment: float) -> float:
        """Return the share of some replicas that may be busy on average."""
        slots = max(replicas * self.slots, 1e-9)
        return mean_within(slots, attainment) / slots

    def needed(self, busy: float, attainment: float) -> float:
        """Return the replicas for so many busy ones, on average."""
        return slots_for(busy * self.slots, attainment) / self.slots


class Serving(ComputedLayer):
    """Pools with services, and services with a replica limit."""

    name = "serving"
    breaks = "services need more GPUs than their pool has, or more replicas than `replicas_most`"
    cause_rank = 45
    grows_with = ("traffic",)
    grows_by = "requests; `replicas_most` stays the same"
    capacity_grows_with = ("nodes",)
    needs = "`[[service]]` in the grow file"
    fixed_by = "more nodes in the pool, or a higher replica limit"
    always_listed = True
    shown_when_constant = False

    def constraints(self, state: State, axis: Axis) -> Iterable[Constraint]:
        """Return services that cannot be evaluated, then pools, then services with a limit."""
        if not state.grow.services:
            return [self.unknown("services")]
        targets = serve_targets(state.fleet)
        found = [self._served(state, service, targets) for service in state.grow.services]
        known = [one for one in found if isinstance(one, Served)]
        pools = dict.fromkeys(one.pool for one in known)
        return [
            *(one for one in found if isinstance(one, Constraint)),
            *(
                self._pool(state, axis, pool, [one for one in known if one.pool == pool])
                for pool in pools
            ),
            *(
                self._capped(state, axis, one, one.load.replicas_most)
                for one in known
                if one.load.replicas_most
            ),
        ]

    def _served(
        self, state: State, load: ServiceLoad, targets: list[ServeTarget]
    ) -> Served | Constraint:
        resource = _resource(load)
        if load.ttft_s is None or load.tpot_s is None:
            key = "ttft_s" if load.ttft_s is None else "tpot_s"
            return self.unknown(resource, f"`{key}` for service `{load.name}`")
        fit = [target for target in targets if load.pool in ("", target.pool)]
        if not fit:
            return self.unknown(resource, f"a `pool` with known GPUs for service `{load.name}`")
        target = max(fit, key=lambda one: one.gpus)
        service = ServiceDemand(
            model=load.model,
            # A minimal load: replica throughput does not depend on it, and all plans fit.
            qps=1e-3,
            input_tokens=load.input_tokens,
            output_tokens=load.output_tokens,
            ttft_s=load.ttft_s,
            tpot_s=load.tpot_s,
            # This layer keeps its own reserve for requests that come together.
            attainment=0.5,
            spare_replicas=0,
            headroom=0.0,
        )
        shape = model_shape(load.model, state.inputs.fleet.catalogue)
        request = ServeRequest(service=service, shape=shape)
        best = _best(encode((request, target)))
        if best is None:
            said = f"no replica on pool {target.pool} meets the latency targets of {load.name}"
            return self.constraint(resource, lambda _: inf, 1.0, DEFAULTED, lambda _: said)
        return Served(load, target.pool, target.gpus, best)

    def _pool(self, state: State, axis: Axis, pool: str, served: Sequence[Served]) -> Constraint:
        """Nodes that grow with the traffic bring GPUs for it."""
        there, attainment = served[0].pool_gpus, state.grow.limits.attainment_least
        today = sum(one.gpus(1.0) for one in served)
        # Each service has a part of the pool in proportion to its load.
        parts = [there * one.gpus(1.0) / today for one in served]
        usable = [
            one.usable(part / one.replica.gpus_per_replica, attainment)
            for one, part in zip(served, parts, strict=True)
        ]

        def demand(factor: float) -> float:
            requests = grown_by(axis, "traffic", factor)
            needed = (one.gpus(requests) / share for one, share in zip(served, usable, strict=True))
            return sum(needed) / grown_by(axis, "nodes", factor)

        def symptom(factor: float) -> str:
            names = ", ".join(one.load.name for one in served)
            share = demand(factor) / there
            on_time = f"to serve {attainment * 100:g}% of requests on time"
            return f"{names}: {share:.0%} of the {there:,} GPUs in pool {pool} needed {on_time}"

        def relieve(multiple: float) -> list[Relief]:
            # A larger pool needs a smaller reserve.
            needed = sum(
                one.needed(multiple * part * share / each, attainment) * each
                for one, part, share in zip(served, parts, usable, strict=True)
                for each in [one.replica.gpus_per_replica]
            )
            return more_nodes(state, needed / there, pool)

        return self.constraint(
            f"pool {pool}",
            demand,
            float(there),
            DEFAULTED,
            symptom,
            relieve,
        )

    def _capped(self, state: State, axis: Axis, served: Served, most: int) -> Constraint:
        load, each = served.load, served.replica.qps_per_replica_max
        attainment = state.grow.limits.attainment_least
        usable = served.usable(most, attainment)

        def demand(factor: float) -> float:
            return load.qps * grown_by(axis, "traffic", factor) / each / usable

        def symptom(factor: float) -> str:
            return f"{load.name} needs {demand(factor):,.1f} replicas (limit {most:,})"

        def relieve(multiple: float) -> list[Relief]:
            needed = served.needed(multiple * most * usable, attainment)
            return [_more_replicas(load, most, needed)]

        return self.constraint(_resource(load), demand, float(most), DEFAULTED, symptom, relieve)


def _resource(load: ServiceLoad) -> str:
    return f"service {load.name}"


@lru_cache(maxsize=256)
def _best(requested: bytes) -> ServePlan | None:
    """Return the replica of the highest throughput per GPU, or None if none meets its targets.

    Cached: the planner takes a second and gets the same request at every step of an analysis.
    """
    request, target = decode(requested, type=tuple[ServeRequest, ServeTarget])
    answer = plan_serve(request, [target], keep=PLANS_KEPT)
    if not isinstance(answer, ServeAnswer):
        return None
    return max(answer.plans, key=lambda one: one.qps_per_replica_max / one.gpus_per_replica)


def _more_replicas(load: ServiceLoad, most: int, needed: float) -> Relief:
    required = round_up_to(needed, 1)

    def apply(now: State) -> State:
        services = tuple(
            replace(one, replicas_most=required) if one.name == load.name else one
            for one in now.grow.services
        )
        return replace(with_relief(now, "replicas"), grow=replace(now.grow, services=services))

    text = f"raise the replica limit of {load.name} to {required:,} (up from {most:,})"
    return Relief("replicas", text, 0.0, 0.0, apply)
