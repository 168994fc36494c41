"""Plan a service: from a model and a fleet file to replicas."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from tenfold.compose.fleet import OpenFleet, OwnFacts, open_fleet
from tenfold.decide.layout.serve import ServeAnswer, ServeRequest, ServeTarget, plan_serve
from tenfold.model.errors import InputError
from tenfold.model.plan import ServiceDemand
from tenfold.model.reason import Misfit
from tenfold.physics.serving.engines import catalog_of, resolve
from tenfold.study.plan.target import serve_targets
from tenfold.study.plan.train import GIB, model_shape, tight_memory

GENERIC = "generic"
"""The profile for an engine that has none of its own."""


class ServeQuestion(ServiceDemand, frozen=True, kw_only=True):
    """The options of `plan serve`: a service, and where to run it."""

    fleet: Annotated[Path, Meta(description="Fleet file")]
    engine: Annotated[
        str | None, Meta(description="Serving engine and version (default: vllm)")
    ] = None
    facts: OwnFacts = None


class ServePlanResult(Struct, frozen=True, kw_only=True):
    """The request, the pools considered, and the plans found."""

    request: ServeRequest
    targets: tuple[ServeTarget, ...]
    answer: ServeAnswer | Misfit
    notes: tuple[str, ...]


def plan_serving(question: ServeQuestion) -> ServePlanResult:
    """Choose how to serve a model on the pools of a fleet."""
    fleet = open_fleet(question.fleet, question.facts)
    request = ServeRequest(service=question, shape=model_shape(question.model, fleet.catalogue))
    if question.engine is not None:
        _check_engine(question.engine, fleet)
    targets = tuple(serve_targets(fleet, engine=question.engine))
    answer = plan_serve(request, targets)
    return ServePlanResult(
        request=request, targets=targets, answer=answer, notes=_serve_notes(answer, fleet, targets)
    )


def _check_engine(engine: str, fleet: OpenFleet) -> None:
    """Refuse an engine without a profile: a plan with generic figures would hide a typo."""
    engines = catalog_of(fleet.catalogue.engines)
    if engine == GENERIC or resolve(engines, engine, "").family is not None:
        return
    known = ", ".join(f"`{family.name}`" for family in engines.families)
    raise InputError(
        "unknown-engine",
        f"unknown serving engine `{engine}`",
        f"use one of {known}, with a version such as `vllm 0.9`, or `{GENERIC}`",
        field="--engine",
    )


def _serve_notes(
    answer: ServeAnswer | Misfit, fleet: OpenFleet, targets: tuple[ServeTarget, ...]
) -> tuple[str, ...]:
    if isinstance(answer, Misfit):
        return ()
    best = answer.plans[0]
    part = fleet.catalogue.accelerators.get(best.accelerator)
    network = next(one.network for one in targets if one.pool == best.pool)
    across: tuple[str, ...] = ()
    if best.gpus_per_replica > network.domain:
        nodes = -(-best.gpus_per_replica // int(network.domain))
        rate = network.bytes_per_s / 1e9
        across = (f"a replica spans {nodes} nodes: its stages send at {rate:g} GB/s per GPU",)
    return (*across, *tight_memory(best.memory_gib, part.memory_bytes / GIB))
