"""Choose the size to recommend: by a deadline, by a budget, or the knee of the scaling curve."""

from collections.abc import Sequence

from tenfold.decide.layout.outcome import Outcome, outcome_at
from tenfold.decide.layout.request import TrainRequest
from tenfold.decide.layout.scaling import ScalingCurve
from tenfold.decide.layout.search import Timed
from tenfold.model.plan import TrainingJob
from tenfold.model.reason import Reason, Value

SECONDS_PER_DAY = 86_400

Head = tuple[Timed, Outcome]
"""A size with its best layout."""


def choose_size(
    request: TrainRequest, found: Sequence[Timed], made: ScalingCurve
) -> tuple[Timed, list[Reason]]:
    """Return the size to recommend and why that one, with every limit that it misses.

    Sizes that keep the requested batch come first; the others count only if none of those meets
    the limits.
    """
    job = request.job
    if job.gpus is not None:
        exact = [timed for timed in found if timed.gpus == job.gpus]
        chosen = (exact or found)[-1]
        return chosen, _missed_at(job, outcome_at(chosen, 0))
    if job.tokens is not None and (job.deadline_s is not None or job.budget_usd is not None):
        return _by_limits(job, [(timed, outcome_at(timed, 0)) for timed in found], made)
    knee = next(timed for timed in found if timed.gpus == made.knee)
    if made.scales_throughout:
        return knee, [Reason("at-the-top", {"gpus": knee.gpus})]
    return knee, [Reason("at-the-knee", {"gpus": knee.gpus})]


def _by_limits(
    job: TrainingJob, heads: Sequence[Head], made: ScalingCurve
) -> tuple[Timed, list[Reason]]:
    kept = [head for head in heads if head[0].gpus in made.judged]
    for among in (kept, heads):
        within = [head for head in among if _in_time(job, head) and _affordable(job, head)]
        if within:
            best = _best(job, within)
            everywhere = [head for head in heads if _in_time(job, head) and _affordable(job, head)]
            # A better size with another batch: the sentence then names the condition.
            is_narrowed = _best(job, everywhere)[0] is not best[0]
            return best[0], [_met(job, best[1], made.global_batch if is_narrowed else 0)]
    in_time = [head for head in heads if _in_time(job, head)]
    if job.deadline_s is None:
        best = min(heads, key=_by_cost)
    elif in_time:
        best = min(in_time, key=_by_cost)
    else:
        best = min(heads, key=_by_time)
    return best[0], _missed(job, best, heads, is_in_time=bool(in_time))


def _missed(
    job: TrainingJob, best: Head, heads: Sequence[Head], *, is_in_time: bool
) -> list[Reason]:
    """Return each limit that no size meets, or that the chosen one does not meet."""
    reasons: list[Reason] = []
    if job.deadline_s is not None and is_in_time:
        reasons.append(_met(job, best[1], 0))
    elif job.deadline_s is not None:
        days = job.deadline_s / SECONDS_PER_DAY
        reasons.append(Reason("deadline-missed", _compared(days, best[1])))
    if job.budget_usd is None:
        return reasons
    if not any(_affordable(job, head) for head in heads):
        cheapest = min(heads, key=_by_cost)[1]
        reasons.append(Reason("budget-missed", _compared(job.budget_usd, cheapest)))
    elif not _affordable(job, best):
        reasons.append(Reason("size-budget-missed", _compared(job.budget_usd, best[1])))
    return reasons


def _missed_at(job: TrainingJob, outcome: Outcome) -> list[Reason]:
    """Return the limits that the requested size does not meet."""
    reasons: list[Reason] = []
    if outcome.run is None:
        return reasons
    if job.deadline_s is not None and outcome.run.days > job.deadline_s / SECONDS_PER_DAY:
        days = job.deadline_s / SECONDS_PER_DAY
        reasons.append(Reason("size-deadline-missed", _compared(days, outcome)))
    if job.budget_usd is not None and outcome.run.usd > job.budget_usd:
        reasons.append(Reason("size-budget-missed", _compared(job.budget_usd, outcome)))
    return reasons


def _best(job: TrainingJob, heads: Sequence[Head]) -> Head:
    return min(heads, key=_by_time if job.deadline_s is None else _by_cost)


def _met(job: TrainingJob, outcome: Outcome, batch: int) -> Reason:
    if job.deadline_s is not None:
        limit = job.deadline_s / SECONDS_PER_DAY
        return Reason("deadline-met", _compared(limit, outcome) | {"batch": batch})
    limit = job.budget_usd or 0.0
    return Reason("budget-met", _compared(limit, outcome) | {"batch": batch})


def _in_time(job: TrainingJob, head: Head) -> bool:
    return job.deadline_s is None or _days(head[1]) <= job.deadline_s / SECONDS_PER_DAY


def _affordable(job: TrainingJob, head: Head) -> bool:
    return job.budget_usd is None or _usd(head[1]) <= job.budget_usd


def _by_cost(head: Head) -> tuple[float, int]:
    return _usd(head[1]), head[0].gpus


def _by_time(head: Head) -> tuple[float, int]:
    return _days(head[1]), head[0].gpus


def _usd(outcome: Outcome) -> float:
    return outcome.run.usd if outcome.run else outcome.usd_per_step


def _days(outcome: Outcome) -> float:
    return outcome.run.days if outcome.run else outcome.step_s


def _compared(limit: float, outcome: Outcome) -> dict[str, Value]:
    days, usd = float(_days(outcome)), float(_usd(outcome))
    return {"limit": limit, "gpus": outcome.plan.gpus, "days": days, "usd": usd}
