"""Which demand changes a plan first: model, data, concurrency, latency or cost.

One driver is raised at a time (deadlines and budgets are lowered) until the plan changes:
another family of layouts, twice the GPUs, or nothing fits.
"""

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.layout.families import family_of
from tenfold.decide.layout.outcome import Outcome
from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.serve import ServeRequest, ServeTarget, plan_serve
from tenfold.decide.layout.train import plan_train
from tenfold.model.facts.shape import ModelShape
from tenfold.model.reason import Misfit
from tenfold.report.figures import count
from tenfold.report.reasons.plans import FAMILIES
from tenfold.report.reasons.render import render

DriverName = Literal["model", "data", "concurrency", "latency", "cost"]
StepName = Literal["none", "family-changes", "gpus-double", "nothing-fits"]
SEVERITY: tuple[StepName, ...] = ("nothing-fits", "gpus-double", "family-changes", "none")
DOUBLE = 2.0
NEARLY_DOUBLE = 1.75
"""Replicas are whole, so twice the load takes a little more or less than twice the GPUs."""
BELOW = (1.25, 1.5)
ABOVE = (4.0, 8.0)
TRIED = (1.0, *BELOW, DOUBLE, *ABOVE)
BLOCK_LAYERS = 8
"""Layers come in blocks of this many, so that a deeper model divides as well as before."""

LOWERED = ("latency", "cost")
"""Drivers that become harder to meet as they get smaller."""

_SENSITIVE_TO: dict[DriverName, str] = {
    "model": "model size",
    "data": "the number of tokens",
    "concurrency": "the number of concurrent runs",
    "latency": "the deadline",
    "cost": "the budget",
}
_SERVICE_SENSITIVE_TO: dict[DriverName, str] = {
    **_SENSITIVE_TO,
    "data": "the number of tokens per request",
    "concurrency": "the request rate",
    "latency": "the latency targets",
}
_NOT_SET: dict[DriverName, str] = {
    "model": "no model set",
    "data": "no deadline or budget set",
    "concurrency": "no load set",
    "latency": "no deadline set",
    "cost": "no budget set",
}


class Requirement(Struct, frozen=True, kw_only=True):
    """What a demand needs: GPUs and a family of layouts, or why nothing fits."""

    gpus: int
    family: str
    misfit: str = ""


class Driver(Struct, frozen=True, kw_only=True):
    """One driver raised alone.

    `factor` is the least of those tried at which a step comes, `holds_to` the largest below it.
    """

    driver: DriverName
    stated: bool
    holds_to: float | None
    factor: float | None
    step: StepName
    at_double: StepName
    sentence: str


class SensitivityAnswer(Struct, frozen=True, kw_only=True):
    """Drivers, sorted by how soon they change the plan."""

    base: Requirement
    trigger: DriverName | None
    sentence: str
    drivers: tuple[Driver, ...]


Raised = Callable[[float], Requirement]
OnDriver = Callable[[DriverName], None]


def _ignore(_: DriverName) -> None:
    """Report progress to no one."""


def train_sensitivity(
    request: TrainRequest,
    target: PlanningTarget,
    *,
    concurrent_runs: int = 1,
    begun: OnDriver = _ignore,
) -> SensitivityAnswer:
    """Return which driver of a training demand changes the plan first.

    `begun` is called with each driver before it is tried, since each takes a while.
    """

    def requirement(
        changed_request: TrainRequest, runs: float = float(concurrent_runs)
    ) -> Requirement:
        return _train_requirement(changed_request, _run_target(target, runs))

    job = request.job
    tokens, deadline, budget = job.tokens, job.deadline_s, job.budget_usd

    def changed(**limits: float) -> Requirement:
        return requirement(replace(request, job=replace(job, **limits)))

    drivers: dict[DriverName, Raised | None] = {
        "model": lambda factor: requirement(replace(request, shape=deeper(request.shape, factor))),
        # Without a deadline or a budget, no amount of data needs more GPUs.
        "data": None
        if tokens is None or not (deadline or budget)
        else lambda factor: changed(tokens=tokens * factor),
        "concurrency": lambda factor: requirement(request, concurrent_runs * factor),
        "latency": None
        if deadline is None
        else lambda factor: changed(deadline_s=deadline / factor),
        "cost": None if budget is None else lambda factor: changed(budget_usd=budget / factor),
    }
    return _answer(requirement(request), drivers, begun)


def serve_sensitivity(
    request: ServeRequest,
    targets: Sequence[ServeTarget],
    *,
    usd_per_hour_max: float | None = None,
    begun: OnDriver = _ignore,
) -> SensitivityAnswer:
    """Return which driver of a service changes the plan first; data means tokens per request."""

    def requirement(
        changed_request: ServeRequest, budget: float | None = usd_per_hour_max
    ) -> Requirement:
        return _serve_requirement(changed_request, targets, budget)

    service = request.service

    def changed(**demand: float) -> Requirement:
        return requirement(replace(request, service=replace(service, **demand)))

    def longer(factor: float) -> Requirement:
        prompt, answer = round(service.input_tokens * factor), round(service.output_tokens * factor)
        return changed(input_tokens=prompt, output_tokens=answer)

    def faster(factor: float) -> Requirement:
        return changed(ttft_s=service.ttft_s / factor, tpot_s=service.tpot_s / factor)

    budget = usd_per_hour_max
    drivers: dict[DriverName, Raised | None] = {
        "model": lambda factor: requirement(replace(request, shape=deeper(request.shape, factor))),
        "data": longer,
        "concurrency": lambda factor: changed(qps=service.qps * factor),
        "latency": faster,
        "cost": None if budget is None else lambda factor: requirement(request, budget / factor),
    }
    return _answer(requirement(request), drivers, begun, service=True)


def deeper(shape: ModelShape, factor: float) -> ModelShape:
    """Return a model of about `factor` times the weights: more layers of the same width."""
    # Models of 126 layers count embedding and head as two more, so that 128 divide.
    ends = 2 if (shape.layers + 2) % BLOCK_LAYERS == 0 else 0
    blocks = max(1, round((shape.layers + ends) * factor / BLOCK_LAYERS))
    layers = max(shape.layers, blocks * BLOCK_LAYERS - ends)

    def times(some: int) -> int:
        return round(some * layers / shape.layers)

    return replace(
        shape,
        layers=layers,
        dense_layers=times(shape.dense_layers),
        window_layers=times(shape.window_layers),
        attention_layers=None if shape.attention_layers is None else times(shape.attention_layers),
    )


def _run_target(target: PlanningTarget, runs: float) -> PlanningTarget:
    """Return the share of the GPUs that each of some concurrent runs gets, in whole nodes."""
    share = int(target.gpus / runs)
    whole = share // target.gpus_per_node * target.gpus_per_node
    return replace(target, gpus=whole or max(1, share))


def _best(request: TrainRequest, target: PlanningTarget) -> Outcome | str:
    answer = plan_train(request, target, keep=1)
    if isinstance(answer, Misfit):
        return render(answer.reasons[0])
    missed = next((one for one in answer.why if one.code.endswith("-missed")), None)
    if missed is not None:
        return render(missed)
    best = answer.plans[0]
    budget = request.job.budget_usd
    if best.run and budget is not None and best.run.usd > budget:
        return f"the run costs ${best.run.usd:,.0f}, over the ${budget:,.0f} budget"
    return best


def _train_requirement(request: TrainRequest, target: PlanningTarget) -> Requirement:
    best = _best(request, target)
    if isinstance(best, str):
        return Requirement(gpus=0, family="", misfit=best)
    return Requirement(gpus=best.plan.gpus, family=FAMILIES[family_of(best.plan).code])


def _serve_requirement(
    request: ServeRequest, targets: Sequence[ServeTarget], budget: float | None
) -> Requirement:
    answer = plan_serve(request, targets, keep=1)
    if isinstance(answer, Misfit):
        text = "; ".join(render(one) for one in answer.reasons)
        return Requirement(gpus=0, family="", misfit=text)
    best = answer.plans[0]
    if budget is not None and best.usd_per_hour > budget:
        text = f"the cheapest plan costs ${best.usd_per_hour:,.2f}/h, over ${budget:,.2f}/h"
        return Requirement(gpus=0, family="", misfit=text)
    family = f"{best.gpus_per_replica} x {best.accelerator} per replica"
    return Requirement(gpus=best.gpus, family=family)


def _answer(
    base: Requirement,
    drivers: dict[DriverName, Raised | None],
    begun: OnDriver,
    *,
    service: bool = False,
) -> SensitivityAnswer:
    if base.misfit:
        text = f"no plan even at today's demand: {base.misfit}"
        return SensitivityAnswer(base=base, trigger=None, sentence=text, drivers=())
    rows: list[Driver] = []
    for name, raised in drivers.items():
        begun(name)
        rows.append(_driver(name, raised, base, service))
    rows.sort(key=lambda row: (row.factor or float("inf"), SEVERITY.index(row.step)))
    first = rows[0] if rows[0].factor is not None else None
    words = _SERVICE_SENSITIVE_TO if service else _SENSITIVE_TO
    text = (
        f"no single input changes the plan, even by a factor of {ABOVE[-1]:g}"
        if first is None
        else f"most sensitive to {words[first.driver]}: {first.sentence}"
    )
    return SensitivityAnswer(
        base=base,
        trigger=first.driver if first else None,
        sentence=text,
        drivers=tuple(rows),
    )


def _driver(name: DriverName, raised: Raised | None, base: Requirement, service: bool) -> Driver:
    if raised is None:
        return Driver(
            driver=name,
            stated=False,
            holds_to=None,
            factor=None,
            step="none",
            at_double="none",
            sentence=_NOT_SET[name],
        )
    doubled = raised(DOUBLE)
    at_double = _step(base, doubled)
    found = _first(base, raised, doubled)
    if found is None:
        most = ABOVE[-1]
        text = (
            f"same plan down to {1 / most:g}x" if name in LOWERED else f"same plan up to {most:g}x"
        )
        factor, step = None, at_double
    else:
        factor, after = found
        step = _step(base, after)
        text = _words(_changed(name, factor, service), step, base, after)
    return Driver(
        driver=name,
        stated=True,
        holds_to=max(one for one in TRIED if factor is None or one < factor),
        factor=factor,
        step=step,
        at_double=at_double,
        sentence=text,
    )


def _first(
    base: Requirement, raised: Raised, doubled: Requirement
) -> tuple[float, Requirement] | None:
    """Return the smallest factor tried that changes the plan; below 2x only if 2x does."""
    if _step(base, doubled) == "none":
        tried = ((factor, raised(factor)) for factor in ABOVE)
        return next((one for one in tried if _step(base, one[1]) != "none"), None)
    tried = ((factor, raised(factor)) for factor in BELOW)
    first = next((one for one in tried if _step(base, one[1]) != "none"), None)
    return first or (DOUBLE, doubled)


def _step(base: Requirement, after: Requirement) -> StepName:
    if after.misfit:
        return "nothing-fits"
    if after.gpus > NEARLY_DOUBLE * base.gpus:
        return "gpus-double"
    return "family-changes" if after.family != base.family else "none"


def _changed(name: DriverName, factor: float, service: bool) -> str:
    less = f"{1 - 1 / factor:.0%}"
    return {
        "model": f"a model {factor:g}x the size",
        "data": f"{factor:g}x the tokens{' per request' if service else ''}",
        "concurrency": f"{factor:g}x {'the requests/s' if service else 'as many concurrent runs'}",
        "latency": f"latency targets {less} lower" if service else f"a deadline {less} shorter",
        "cost": f"a budget {less} smaller",
    }[name]


def _words(changed: str, step: StepName, base: Requirement, after: Requirement) -> str:
    if step == "nothing-fits":
        return f"with {changed}, there is no plan: {after.misfit}"
    if step == "gpus-double":
        return f"with {changed}, the plan needs {count(after.gpus, 'GPU')} instead of {base.gpus:,}"
    return f"with {changed}, the plan changes from {base.family} to {after.family}"
