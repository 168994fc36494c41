"""Scale up, out, elastically or across sites: advice from four questions and three triggers.

Scaling up comes first, because it needs no coordination; a trigger ends it. The advice always shows
the price of scaling up: its blast radius.
"""

from typing import Literal

from msgspec import Struct

from tenfold.compose.fleet import OpenFleet
from tenfold.model.reason import Misfit
from tenfold.report.reasons.render import render
from tenfold.study.advise.answers import AdviseQuestion, FourAnswers, four_answers, served
from tenfold.study.advise.triggers import Trigger, triggers
from tenfold.study.ceiling.design import CeilingQuestion, Design, design_of
from tenfold.study.ceiling.upgrade import ASSUMED_PRICE, FabricPrice, UpgradeAnswer, upgrade_of
from tenfold.study.ceiling.vertical import NodeBlast, VerticalOption, node_blast, vertical_options

__all__ = ["Advice", "AdviseQuestion", "Step", "advise", "answers_to"]

StepName = Literal["vertical", "fabric", "horizontal", "elastic", "distributed"]


class Step(Struct, frozen=True, kw_only=True):
    """One thing to do, and why."""

    step: StepName
    sentence: str


class Advice(Struct, frozen=True, kw_only=True):
    """What to do first, what follows, and why."""

    choice: StepName
    steps: tuple[Step, ...]
    answers: FourAnswers
    triggers: tuple[Trigger, ...]
    blast: NodeBlast | None
    vertical_options: tuple[VerticalOption, ...]
    upgrade: UpgradeAnswer | None
    notes: tuple[str, ...]


def answers_to(question: AdviseQuestion, fleet: OpenFleet | None) -> FourAnswers:
    """Return the four answers, as far as they are given or can be derived."""
    return four_answers(question, _design(question, fleet))


def advise(
    question: AdviseQuestion,
    fleet: OpenFleet | None = None,
    price: FabricPrice = ASSUMED_PRICE,
) -> Advice:
    """Return vertical, horizontal, elastic or distributed scaling, with reasons."""
    design = _design(question, fleet)
    answers = four_answers(question, design)
    service = None if fleet is None else served(question, fleet)
    fired = triggers(question, answers, design, service)
    better = None
    if design is not None and design.request is not None and question.kind == "training":
        better = upgrade_of(design, price)
    notes = [f"{name.replace('_', ' ')} is unknown" for name in answers.missing]
    if isinstance(better, Misfit):
        notes.extend(render(one) for one in better.reasons)
    if question.real_time and question.kind == "training":
        notes.append("real time has no effect on training: no user waits for a step")
    upgrade = None if isinstance(better, Misfit) else better
    steps = tuple(_steps(question, answers, fired, upgrade))
    return Advice(
        choice=steps[0].step,
        steps=steps,
        answers=answers,
        triggers=fired,
        blast=None if design is None else node_blast(design),
        vertical_options=() if design is None else vertical_options(design),
        upgrade=upgrade,
        notes=tuple(notes),
    )


def _design(question: AdviseQuestion, fleet: OpenFleet | None) -> Design | None:
    if fleet is None:
        return None
    return design_of(fleet, CeilingQuestion(model=question.model))


def _steps(
    question: AdviseQuestion,
    answers: FourAnswers,
    fired: tuple[Trigger, ...],
    upgrade: UpgradeAnswer | None,
) -> list[Step]:
    if answers.bandwidth == "thin":
        return [_distributed(question)]
    if answers.bound_by == "cpu":
        return [
            _scale_out(
                question, "the work is CPU-bound, and CPU nodes scale out without a fast network"
            )
        ]
    if question.kind == "inference":
        return _serving(question, answers, fired)
    return _training(answers, fired, upgrade)


def _distributed(question: AdviseQuestion) -> Step:
    work = (
        "train where the data is and exchange updates"
        if question.kind == "training"
        else "serve where the requests are"
    )
    text = f"links between sites are too slow for data or gradients: {work}"
    return Step(step="distributed", sentence=text)


def _scale_out(question: AdviseQuestion, why: str) -> Step:
    if question.bursty:
        return Step(step="elastic", sentence=f"{why}; the load is bursty, so autoscale")
    return Step(step="horizontal", sentence=why)


def _serving(
    question: AdviseQuestion, answers: FourAnswers, fired: tuple[Trigger, ...]
) -> list[Step]:
    """Replicas stay inside a node; their number scales."""
    crowded = _fired(fired, "concurrency-over-replica")
    steps: list[Step] = []
    if answers.model_size == "larger":
        text = (
            "a replica does not fit in a node: prefer a larger scale-up domain to splitting the "
            "replica across nodes"
        )
        steps.append(Step(step="vertical", sentence=text))
        text = "the network limits a replica that spans nodes: keep the fabric non-blocking"
        steps.append(Step(step="fabric", sentence=text))
    if crowded is not None and crowded.fired:
        steps.append(_scale_out(question, f"add replicas: {crowded.sentence}"))
    elif answers.model_size != "larger" and answers.real_time and crowded is None:
        why = "real-time requests are independent: add replicas, which also adds redundancy"
        steps.append(_scale_out(question, why))
    elif question.bursty and not steps:
        steps.append(_scale_out(question, "one replica handles the usual load"))
    if not steps:
        text = "one replica handles the load; a larger GPU or node lowers its tail latency"
        if answers.real_time is False:
            text = "no user waits: queue requests and fill one replica before you add another"
        steps.append(Step(step="vertical", sentence=text))
    return steps


def _training(
    answers: FourAnswers, fired: tuple[Trigger, ...], upgrade: UpgradeAnswer | None
) -> list[Step]:
    steps: list[Step] = []
    over = _fired(fired, "model-over-node")
    larger = over is not None and over.fired is True
    if larger:
        text = "the model does not fit in one node: use a larger scale-up domain"
    else:
        text = "the job fits in one node, so the network does not matter"
    steps.append(Step(step="vertical", sentence=text))
    pays = upgrade is not None and upgrade.verdict == "fabric"
    if larger or answers.bound_by == "network" or pays:
        steps.append(Step(step="fabric", sentence=_fabric_words(upgrade)))
    steps.extend(
        Step(step="horizontal", sentence=f"then scale out: {trigger.sentence}")
        for trigger in fired
        if trigger.fired
    )
    return steps


def _fabric_words(upgrade: UpgradeAnswer | None) -> str:
    if upgrade is None:
        return "multi-node jobs depend on the network: keep the fabric non-blocking"
    if upgrade.verdict == "fabric":
        return upgrade.sentence
    return f"keep the network non-blocking; it is not the limit today: {upgrade.sentence}"


def _fired(fired: tuple[Trigger, ...], code: str) -> Trigger | None:
    """Return a trigger, or None if its figures are unknown."""
    found = next(one for one in fired if one.code == code)
    return None if found.fired is None else found
