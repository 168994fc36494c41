"""A training plan for programs, and as a page for people who were not there."""

from collections.abc import Sequence

from tenfold.cli.plan_show import assumed
from tenfold.clock import Stopwatch
from tenfold.compose.planning import TrainPlanned, best_memory
from tenfold.model.catalogue import Catalogue
from tenfold.model.reason import Misfit
from tenfold.report.html import Section
from tenfold.report.plan_figures import memory_parts
from tenfold.report.plan_report import train_report


def train_json(planned: TrainPlanned, watch: Stopwatch) -> dict[str, object]:
    """Return what `plan train --json` prints."""
    answer = planned.answer
    assert not isinstance(answer, Misfit), "a misfit has been told by now"
    return {
        "searched": answer.curve.searched,
        "seconds": watch.wall_s(),
        "plans": planned.rows,
        "front": [
            {
                "gpus": one.plan.gpus,
                "step_s": one.step_s,
                "usd_per_step": one.usd_per_step,
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
                "step_s": point.step_s,
                "tokens_per_s": point.tokens_per_s,
                "efficiency": point.efficiency,
            }
            for point in answer.curve.points
        ],
        "knee": answer.curve.knee,
        "turns_at": answer.curve.turns_at,
        "usd_by_kind": planned.usd_by_kind,
        "why": answer.why,
        "notes": planned.notes,
    }


def train_page(planned: TrainPlanned, catalogue: Catalogue, more: Sequence[Section] = ()) -> str:
    """Return the HTML report of a plan, with further sections."""
    assert not isinstance(planned.answer, Misfit), "a misfit has been told by now"
    return train_report(
        planned.answer,
        planned.ask,
        planned.ground.ground,
        memory_bytes=memory_parts(best_memory(planned, catalogue)),
        assumptions=assumed(planned),
        more=more,
    )
