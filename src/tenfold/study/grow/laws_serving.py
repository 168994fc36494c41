"""Laws of serving: requests against what the GPUs of a pool answer within their promises.

Services of one pool share its GPUs, so each pool has one law over all of its services. What a
replica answers is the planner's estimate of the best one that keeps its promise; part of a
replica counts, for the factor is a real number. A most of replicas is a law of its own.
"""

from functools import lru_cache
from math import inf
from typing import NamedTuple

from msgspec.msgpack import decode, encode

from tenfold.compose.ground import serve_grounds
from tenfold.compose.planning import model_shape
from tenfold.decide.layout.serve import ServeAnswer, ServeAsk, ServeGround, ServePlan, plan_serve
from tenfold.model.growth import Axis, ServiceLoad, grown_by, moves
from tenfold.physics.growth.law import SUPPOSED, Law, Named
from tenfold.study.grow.state import State

SERVING = 45
LAYER = "serving"
PLANS_KEPT = 64
NO_SERVICES = "`[[service]]`s of the grow file"


class Served(NamedTuple):
    """A service with the replica that answers most requests a GPU."""

    load: ServiceLoad
    pool: str
    pool_gpus: int
    replica: ServePlan

    def gpus(self, factor: float) -> float:
        """Return the GPUs that so many times its requests keep busy."""
        requests = self.load.qps * factor / self.replica.qps_per_replica_max
        return requests * self.replica.gpus_per_replica


def serving_laws(state: State, axis: Axis) -> list[Law]:
    """Return the laws of pools that serve, and of services that may have so many replicas."""
    if not moves(axis, "traffic"):
        return []
    if not state.grow.services:
        return [Named(LAYER, "services", SERVING).unknown(NO_SERVICES)]
    grounds = serve_grounds(state.fleet)
    found = [_served(state, service, grounds) for service in state.grow.services]
    known = [one for one in found if isinstance(one, Served)]
    pools = dict.fromkeys(one.pool for one in known)
    return [
        *(one for one in found if isinstance(one, Law)),
        *(_pool(axis, pool, [one for one in known if one.pool == pool]) for pool in pools),
        *(_capped(axis, one, one.load.replicas_most) for one in known if one.load.replicas_most),
    ]


def _served(state: State, load: ServiceLoad, grounds: list[ServeGround]) -> Served | Law:
    name = Named(LAYER, f"service {load.name}", SERVING)
    if load.ttft_s is None or load.tpot_s is None:
        key = "ttft_s" if load.ttft_s is None else "tpot_s"
        return name.unknown(f"`{key}` of service `{load.name}`")
    fit = [ground for ground in grounds if load.pool in ("", ground.pool)]
    if not fit:
        return name.unknown(f"a `pool` with known GPUs for service `{load.name}`")
    ground = max(fit, key=lambda one: one.gpus)
    ask = ServeAsk(
        model=load.model,
        shape=model_shape(load.model, state.inputs.fleet.catalogue),
        # The least load: what one replica answers does not depend on it, and all plans fit.
        qps=1e-3,
        input_tokens=load.input_tokens,
        output_tokens=load.output_tokens,
        ttft_s=load.ttft_s,
        tpot_s=load.tpot_s,
    )
    best = _best(encode((ask, ground)))
    if best is None:
        said = f"no replica on pool {ground.pool} keeps the promise of {load.name}"
        return name.law(lambda _: inf, 1.0, SUPPOSED, lambda _: said)
    return Served(load, ground.pool, ground.gpus, best)


@lru_cache(maxsize=256)
def _best(asked: bytes) -> ServePlan | None:
    """Return the replica that answers most requests a GPU, or None where none keeps its promise.

    The planner takes a second and is asked the same at every step of a ladder.
    """
    ask, ground = decode(asked, type=tuple[ServeAsk, ServeGround])
    answer = plan_serve(ask, [ground], keep=PLANS_KEPT)
    if not isinstance(answer, ServeAnswer):
        return None
    return max(answer.plans, key=lambda one: one.qps_per_replica_max / one.gpus_per_replica)


def _pool(axis: Axis, pool: str, served: list[Served]) -> Law:
    """Nodes that grow with the traffic bring GPUs for it."""
    there = served[0].pool_gpus

    def wanted(factor: float) -> float:
        requests = grown_by(axis, "traffic", factor)
        return sum(one.gpus(requests) for one in served) / grown_by(axis, "nodes", factor)

    def seen(factor: float) -> str:
        names = ", ".join(one.load.name for one in served)
        share = wanted(factor) / there
        return f"{names} keep {share:.0%} of the {there:,} GPUs of pool {pool} busy"

    return Named(LAYER, f"pool {pool}", SERVING).law(wanted, float(there), SUPPOSED, seen)


def _capped(axis: Axis, served: Served, most: int) -> Law:
    each = served.replica.qps_per_replica_max

    def wanted(factor: float) -> float:
        return served.load.qps * grown_by(axis, "traffic", factor) / each

    def seen(factor: float) -> str:
        return f"{served.load.name} wants {wanted(factor):,.1f} replicas of at most {most:,}"

    name = Named(LAYER, f"service {served.load.name}", SERVING)
    return name.law(wanted, float(most), SUPPOSED, seen)
