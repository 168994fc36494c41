"""Answer `plan serve`: from names and a fleet file to replicas."""

from pathlib import Path

from msgspec import Struct

from tenfold.compose.fleet import OpenFleet, open_fleet
from tenfold.compose.ground import serve_grounds
from tenfold.compose.planning import GIB, model_shape, tight_memory
from tenfold.decide.layout.serve import ServeAnswer, ServeAsk, ServeGround, plan_serve
from tenfold.model.plan import Precision
from tenfold.model.reason import Misfit


class ServeQuestion(Struct, frozen=True, kw_only=True):
    """What a user asks of `plan serve`."""

    model: str
    fleet: Path
    qps: float
    input_tokens: int
    output_tokens: int
    ttft_s: float
    tpot_s: float
    precisions: tuple[Precision, ...] = ("bf16", "fp8")
    engine: str | None = None
    facts: Path | None = None


class ServePlanned(Struct, frozen=True, kw_only=True):
    """What was asked, on what grounds, and what was found."""

    ask: ServeAsk
    grounds: tuple[ServeGround, ...]
    answer: ServeAnswer | Misfit
    notes: tuple[str, ...]


def plan_serving(question: ServeQuestion) -> ServePlanned:
    """Choose how to serve a model on the pools of a fleet."""
    fleet = open_fleet(question.fleet, question.facts)
    ask = ServeAsk(
        model=question.model,
        shape=model_shape(question.model, fleet.catalogue),
        qps=question.qps,
        input_tokens=question.input_tokens,
        output_tokens=question.output_tokens,
        ttft_s=question.ttft_s,
        tpot_s=question.tpot_s,
        precisions=question.precisions,
    )
    grounds = tuple(serve_grounds(fleet, engine=question.engine))
    answer = plan_serve(ask, grounds)
    return ServePlanned(ask=ask, grounds=grounds, answer=answer, notes=_serve_notes(answer, fleet))


def _serve_notes(answer: ServeAnswer | Misfit, fleet: OpenFleet) -> tuple[str, ...]:
    if isinstance(answer, Misfit):
        return ()
    best = answer.plans[0]
    part = fleet.catalogue.accelerators.get(best.accelerator)
    return tight_memory(best.memory_gib, part.memory_bytes / GIB)
