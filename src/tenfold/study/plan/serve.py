"""Answer `plan serve`: from names and a fleet file to replicas."""

from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from tenfold.compose.fleet import OpenFleet, OwnFacts, open_fleet
from tenfold.decide.layout.serve import ServeAnswer, ServeAsk, ServeGround, plan_serve
from tenfold.model.plan import ServiceDemand
from tenfold.model.reason import Misfit
from tenfold.study.plan.target import serve_grounds
from tenfold.study.plan.train import GIB, model_shape, tight_memory


class ServeQuestion(ServiceDemand, frozen=True, kw_only=True):
    """What a user asks of `plan serve`: a service, and where it is to run."""

    fleet: Annotated[Path, Meta(description="A fleet file.")]
    engine: Annotated[str | None, Meta(description="Serving engine and version.")] = None
    facts: OwnFacts = None


class ServePlanned(Struct, frozen=True, kw_only=True):
    """What was asked, on what grounds, and what was found."""

    ask: ServeAsk
    grounds: tuple[ServeGround, ...]
    answer: ServeAnswer | Misfit
    notes: tuple[str, ...]


def plan_serving(question: ServeQuestion) -> ServePlanned:
    """Choose how to serve a model on the pools of a fleet."""
    fleet = open_fleet(question.fleet, question.facts)
    ask = ServeAsk(service=question, shape=model_shape(question.model, fleet.catalogue))
    grounds = tuple(serve_grounds(fleet, engine=question.engine))
    answer = plan_serve(ask, grounds)
    return ServePlanned(ask=ask, grounds=grounds, answer=answer, notes=_serve_notes(answer, fleet))


def _serve_notes(answer: ServeAnswer | Misfit, fleet: OpenFleet) -> tuple[str, ...]:
    if isinstance(answer, Misfit):
        return ()
    best = answer.plans[0]
    part = fleet.catalogue.accelerators.get(best.accelerator)
    return tight_memory(best.memory_gib, part.memory_bytes / GIB)
