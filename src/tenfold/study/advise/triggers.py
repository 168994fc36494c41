"""The three triggers that end scaling up: each one alone calls for more nodes."""

from msgspec import Struct

from tenfold.decide.layout.serve import ServeAnswer
from tenfold.model.reason import Misfit
from tenfold.report.reasons.render import render
from tenfold.study.advise.answers import AdviseQuestion, FourAnswers
from tenfold.study.ceiling.design import Design


class Trigger(Struct, frozen=True, kw_only=True):
    """One reason to scale out. `fired` is None if its figures are missing."""

    code: str
    fired: bool | None
    sentence: str


def triggers(
    question: AdviseQuestion,
    answers: FourAnswers,
    design: Design | None,
    service: ServeAnswer | Misfit | None,
) -> tuple[Trigger, ...]:
    """Return model over node, dataset over local storage, concurrency over one replica."""
    return (
        _model_over_node(question, answers, design),
        _dataset_over_local(question, design),
        _concurrency_over_replica(question, service),
    )


def _model_over_node(
    question: AdviseQuestion, answers: FourAnswers, design: Design | None
) -> Trigger:
    code = "model-over-node"
    size = answers.model_size
    if size is None:
        return Trigger(code=code, fired=None, sentence="the size of the model is unknown")
    gpu, node, name = "GPU", "node", question.model or "the model"
    if design is not None:
        wide = max(design.target.gpus_per_node, design.target.scaleup_gpus)
        gpu, node = design.target.accelerator, f"node of {wide} x {design.target.accelerator}"
        name = design.request.job.model if design.request else name
    where = {
        "gpu": f"fits on one {gpu}",
        "node": f"fits in one {node}",
        "larger": f"does not fit in one {node}",
    }
    return Trigger(code=code, fired=size == "larger", sentence=f"{name} {where[size]}")


def _dataset_over_local(question: AdviseQuestion, design: Design | None) -> Trigger:
    code = "dataset-over-local-storage"
    local_tb = None if design is None else local_storage_tb(design)
    if question.dataset_tb is None or local_tb is None:
        missing = "the dataset" if question.dataset_tb is None else "the local storage of a node"
        return Trigger(code=code, fired=None, sentence=f"the size of {missing} is not given")
    fired = question.dataset_tb > local_tb
    fits = "does not fit on" if fired else "fits on"
    text = f"a {question.dataset_tb:g} TB dataset {fits} a node's {local_tb:g} TB of storage"
    return Trigger(code=code, fired=fired, sentence=text)


def local_storage_tb(design: Design) -> float | None:
    """Return the local drives of one node in TB, if its shape says so."""
    shape = design.fleet.catalogue.nodes.find(design.pools[0].shape or "")
    return shape.nvme_tb if shape is not None and shape.nvme_tb else None


def _concurrency_over_replica(
    question: AdviseQuestion, service: ServeAnswer | Misfit | None
) -> Trigger:
    code = "concurrency-over-replica"
    if service is None:
        text = (
            "no load (`--qps`) given"
            if question.kind == "inference"
            else "not applicable to training"
        )
        fired = None if question.kind == "inference" else False
        return Trigger(code=code, fired=fired, sentence=text)
    if isinstance(service, Misfit):
        return Trigger(code=code, fired=True, sentence=render(service.reasons[0]))
    best = service.plans[0]
    fired = best.replicas > 1
    most = best.qps_per_replica_max
    enough = f"so {best.replicas:,} are needed for" if fired else "enough for"
    text = (
        f"one replica ({best.gpus_per_replica} x {best.accelerator}) handles "
        f"{f'{most:,.0f}' if most >= 100 else f'{most:.3g}'} requests/s, {enough} "
        f"{question.qps:,g}"
    )
    return Trigger(code=code, fired=fired, sentence=text)
