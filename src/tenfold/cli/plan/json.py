"""A training plan for programs, and as a page for people who were not there."""

from collections.abc import Sequence

from msgspec import structs

from tenfold.cli.plan.render import assumed
from tenfold.clock import Stopwatch
from tenfold.decide.layout.outcome import Outcome
from tenfold.model.estimate import ShapeRow, TrainEstimate, TrainRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.plan import TrainPlan
from tenfold.model.reason import Misfit
from tenfold.report.pages.html import Section
from tenfold.report.pages.plan.figures import memory_parts
from tenfold.report.pages.plan.plan import train_report
from tenfold.study.plan.requirements import requirements
from tenfold.study.plan.train import TrainPlanResult, best_memory


def train_json(planned: TrainPlanResult, watch: Stopwatch) -> dict[str, object]:
    """Return what `plan train --json` prints."""
    answer = planned.answer
    assert not isinstance(answer, Misfit), "a misfit has been reported by now"
    return {
        "searched": answer.curve.searched,
        "seconds": watch.wall_s(),
        "plans": [
            _plan_json(one, estimate)
            for one, estimate in zip(answer.plans, planned.estimates, strict=True)
        ],
        "front": [
            {
                "gpus": one.plan.gpus,
                "step_s": one.step_s,
                "usd_per_step": one.usd_per_step or None,
                "failures_per_day": one.failures_per_day,
                "tp": one.plan.tp,
                "pp": one.plan.pp,
                "dp": one.plan.dp,
            }
            for one in answer.front
        ],
        "scaling": [
            {
                "gpus": point.gpus,
                "global_batch": point.plan.global_batch,
                "step_s": point.step_s,
                "tokens_per_s": point.tokens_per_s,
                "efficiency": point.efficiency,
            }
            for point in answer.curve.points
        ],
        "requirements": requirements(answer.plans[0], planned.chosen.target),
        "knee": answer.curve.knee,
        "turns_at": answer.curve.slower_from,
        "usd_by_kind": planned.usd_by_kind,
        "why": answer.why,
        "notes": planned.notes,
    }


def _plan_json(one: Outcome, estimate: TrainEstimate) -> dict[str, object]:
    """Return a plan as a row that `estimate train` reads, with its estimate and its costs."""
    known = structs.asdict(one.plan)
    named = [field for field in TrainRow.__struct_fields__ if field in known]
    return {
        "id": estimate.id,
        **{field: known[field] for field in named},
        "model": _model_json(one.plan),
        "stack": one.plan.stack or None,
        "nic_gbps_per_gpu": one.plan.nic_gbps_per_gpu or None,
        **structs.asdict(estimate),
        "usd_per_step": one.usd_per_step or None,
        "usd_per_million_tokens": one.usd_per_million_tokens or None,
        "effective_share": one.effective_share,
        "checkpoint_interval_s": one.checkpoint_interval_s,
        "failures_per_day": one.failures_per_day,
        "kwh_per_million_tokens": one.kwh_per_million_tokens,
        "run": one.run,
    }


def _model_json(plan: TrainPlan) -> str | dict[str, object]:
    """Return a preset by name, and a model read from a file by its shape."""
    if not plan.model.endswith(".json"):
        return plan.model
    known = {**structs.asdict(plan.shape), "topk": plan.shape.experts_per_token}
    return {field: known[field] for field in ShapeRow.__struct_fields__}


def train_page(planned: TrainPlanResult, catalogue: Catalogue, more: Sequence[Section] = ()) -> str:
    """Return the HTML report of a plan, with further sections."""
    assert not isinstance(planned.answer, Misfit), "a misfit has been reported by now"
    return train_report(
        planned.answer,
        planned.request,
        planned.chosen.target,
        memory_bytes=memory_parts(best_memory(planned, catalogue)),
        assumptions=assumed(planned),
        more=more,
    )
