"""What each trainer does not support, and the error that names one that does.

Checked before any file is written: a plan is exported completely or not at all. Checked
against Megatron-LM core 0.15-0.16, DeepSpeed 0.19 and TorchTitan 0.2, the last release
line that reads TOML.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tenfold.model.errors import InputError
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

# In order of preference where another format is to be named.
_ORDER = ("torchrun", "megatron", "torchtitan", "deepspeed")
_TRAINER_FORMAT = {
    "example": "torchrun",
    "megatron": "megatron",
    "deepspeed": "deepspeed",
    "torchtitan": "torchtitan",
}


class Unsupported(NamedTuple):
    """A feature of a plan that a format does not support, as text for the error."""

    code: str
    sentence: str


def trainer_unsupported(plan: TrainPlan, trainer_format: str) -> list[Unsupported]:
    """Return why a trainer's format does not support this plan; empty if it does."""
    return [
        Unsupported(code, sentence)
        for rules in (_any_trainer, _RULES[trainer_format])
        for code, sentence in rules(plan)
    ]


def launcher_unsupported(plan: TrainPlan, job: LaunchJob) -> list[Unsupported]:
    """Return why a launcher cannot start this plan with the job's program."""
    if job.script and job.trainer == "example":
        return own_program_unsupported(plan)
    return trainer_unsupported(plan, _TRAINER_FORMAT[job.trainer])


def own_program_unsupported(plan: TrainPlan) -> list[Unsupported]:
    """Return why no launcher can start this plan, whatever the program."""
    return [Unsupported(code, sentence) for code, sentence in _any_launcher(plan)]


def refuse_unsupported(reasons: list[Unsupported], plan: TrainPlan, format_name: str) -> None:
    """Raise an input error for these reasons, naming a format that supports the plan."""
    if not reasons:
        return
    able = [name for name in _ORDER if not trainer_unsupported(plan, name)]
    hint = (
        f"export it as `{able[0]}`, or choose another plan"
        if able
        else "no format supports this plan; choose another one from the list"
    )
    sentences = "; ".join(one.sentence for one in reasons)
    raise InputError(
        "cannot-express", f"`{format_name}` does not support this plan: {sentences}", hint
    )


_Rules = Iterator[tuple[str, str]]


def _any_launcher(plan: TrainPlan) -> _Rules:
    product = plan.tp * plan.pp * plan.dp * plan.cp
    if plan.gpus != product:
        yield "gpus-not-product", f"{plan.gpus} GPUs, but tp x pp x dp x cp = {product}"
    if plan.nodes > 1 and plan.gpus % plan.gpus_per_node:
        yield (
            "nodes-not-full",
            f"{plan.gpus} GPUs do not fill nodes of {plan.gpus_per_node}, and every node must run "
            "the same number of processes",
        )


def _any_trainer(plan: TrainPlan) -> _Rules:
    shape = plan.shape
    yield from _any_launcher(plan)
    if plan.global_batch % (plan.dp * plan.micro_batch):
        yield (
            "batch-uneven",
            f"global batch {plan.global_batch} is not a multiple of dp {plan.dp} x "
            f"micro-batch {plan.micro_batch}",
        )
    if 0 < shape.learned_positions < plan.seq:
        yield (
            "sequence-too-long",
            f"the model has {shape.learned_positions} learned positions, the sequence {plan.seq}",
        )
    if plan.ep > 1 and (shape.experts % plan.ep or (plan.dp * plan.cp) % plan.ep):
        yield (
            "experts-uneven",
            f"ep {plan.ep} does not divide {shape.experts} experts and dp x cp {plan.dp * plan.cp}",
        )


def _example(plan: TrainPlan) -> _Rules:
    for degree in ("tp", "pp", "cp", "ep"):
        size: int = getattr(plan, degree)
        if size > 1:
            yield f"{degree}-over-one", f"plain PyTorch does not support {degree} {size}"
    if plan.precision in ("fp8", "fp4"):
        yield "precision", f"plain PyTorch does not train in {plan.precision}"


def _megatron(plan: TrainPlan) -> _Rules:
    shape = plan.shape
    if plan.shard in ("zero2", "zero3") and plan.pp > 1:
        yield "shard-with-pipeline", f"Megatron-FSDP ({plan.shard}) does not work with pp {plan.pp}"
    if plan.virtual_stages > 1 and plan.pp == 1:
        yield "stages-without-pipeline", "virtual stages need a pipeline"
    if plan.virtual_stages > 1 and plan.micro_batches % plan.pp:
        yield (
            "micro-batches-uneven",
            f"the interleaved schedule needs a multiple of pp {plan.pp} micro-batches, "
            f"but the plan has {plan.micro_batches}",
        )
    if plan.virtual_stages > 1 and megatron_stage_layers(plan) is None:
        yield (
            "layers-uneven",
            f"{shape.layers} layers do not split over {plan.pp} x {plan.virtual_stages} stages",
        )
    if shape.experts and plan.tp > 1 and not plan.sequence_parallel:
        yield "experts-need-sequence-parallel", "experts with tp require sequence parallelism"
    if plan.ep > 1 and plan.precision == "fp16":
        yield "precision", "expert parallelism does not support fp16"
    if plan.cp > 1 and plan.seq % (2 * plan.cp):
        yield "sequence-uneven", f"sequence {plan.seq} is not a multiple of 2 x cp {plan.cp}"


def _deepspeed(plan: TrainPlan) -> _Rules:
    for degree in ("pp", "cp", "ep"):
        size: int = getattr(plan, degree)
        if size > 1:
            yield f"{degree}-over-one", f"DeepSpeed sets {degree} {size} in code, not in its JSON"
    if plan.tp > 1 and plan.shard == "zero3":
        yield "tp-with-zero3", f"AutoTP {plan.tp} does not work with ZeRO-3"
    if plan.tp > 1 and plan.sequence_parallel:
        yield "sequence-parallel", "AutoTP has no sequence parallelism"
    if plan.precision in ("fp8", "fp4"):
        yield "precision", f"DeepSpeed's JSON has no {plan.precision}"
    if plan.recompute == "selective":
        yield "recompute-selective", "DeepSpeed's JSON has no selective recompute"


def _torchtitan(plan: TrainPlan) -> _Rules:
    shape = plan.shape
    if plan.shard == "zero1" and plan.dp > 1:
        yield "shard", "TorchTitan shards all states or none, not the optimizer alone"
    if plan.shard == "none" and (plan.cp > 1 or (plan.dp > 1 and plan.tp * plan.pp > 1)):
        yield "shard", "TorchTitan replicates weights only in plain data parallelism"
    if plan.tp > 1 and not plan.sequence_parallel:
        yield "sequence-parallel", "TorchTitan's tp always uses sequence parallelism"
    if plan.precision in ("fp16", "fp4"):
        yield "precision", f"TorchTitan does not train in {plan.precision}"
    if plan.seq % (plan.tp * 2 * plan.cp if plan.cp > 1 else plan.tp):
        yield "sequence-uneven", f"sequence {plan.seq} is not divisible by tp and 2 x cp"
    if plan.pp > 1 and torchtitan_stage_layers(plan) is None:
        yield (
            "layers-uneven",
            f"{shape.layers} layers do not split over {plan.pp} x {plan.virtual_stages} stages",
        )
    yield from _torchtitan_shape(plan)


def _torchtitan_shape(plan: TrainPlan) -> _Rules:
    """Yield what its Llama 3, Qwen 3 and DeepSeek V3 models do not support."""
    shape = plan.shape
    if not shape.gated or shape.learned_positions or shape.attention_bias:
        yield "shape", "TorchTitan's models have gated MLPs, rotary positions and no biases"
    if shape.experts and shape.moe_every > 1:
        yield "shape", "TorchTitan has no dense layers between MoE layers"
    if shape.shared_experts and (shape.shared_ffn or shape.ffn) != shape.ffn:
        yield "shape", "TorchTitan's shared experts have the same width as the others"
    if shape.mla is not None:
        if shape.tied:
            yield "shape", "TorchTitan's latent attention does not tie embeddings"
    elif shape.experts and shape.dense_layers:
        yield "shape", "TorchTitan has dense first layers only with latent attention"
    if plan.pp > 1 and torchtitan_base(plan) == "qwen3":
        yield "pp-over-one", "TorchTitan does not support pipeline parallelism for this model shape"


_RULES: dict[str, Callable[[TrainPlan], _Rules]] = {
    "torchrun": _example,
    "megatron": _megatron,
    "deepspeed": _deepspeed,
    "torchtitan": _torchtitan,
}


def megatron_stage_layers(plan: TrainPlan) -> tuple[int, bool] | None:
    """Return the layers per virtual stage, and whether embedding and loss count as layers.

    Llama 3's 126 layers over 16 stages are the known case of the second.
    """
    stages = plan.pp * plan.virtual_stages
    if plan.shape.layers % stages == 0:
        return plan.shape.layers // stages, False
    if (plan.shape.layers + 2) % stages == 0:
        return (plan.shape.layers + 2) // stages, True
    return None


def megatron_uneven_layout(plan: TrainPlan) -> str:
    """Return stages that differ by a layer, as Megatron's layout: embedding, layers and loss.

    The stages at the two ends, which also hold embedding and loss, are the short ones.
    """
    few, longer = divmod(plan.shape.layers, plan.pp)
    before = (plan.pp - longer + 1) // 2
    stages = ["t" * (few + (before <= at < before + longer)) for at in range(plan.pp)]
    return "E" + "|".join(stages) + "L"


def torchtitan_stage_layers(plan: TrainPlan) -> tuple[int, int] | None:
    """Return the layers per virtual stage, and how many fewer the first and last stage have."""
    stages = plan.pp * plan.virtual_stages
    for less in (0, 1):
        total = plan.shape.layers + 2 * less
        per_stage = -(-total // stages)
        if -(-total // per_stage) == stages and (less or total % stages == 0):
            return per_stage, less
    return None


def torchtitan_base(plan: TrainPlan) -> str:
    """Return which of TorchTitan's models fits the plan's shape."""
    shape = plan.shape
    if shape.mla is not None:
        return "deepseek_v3"
    square = shape.heads * shape.head_dim == shape.hidden
    plain = not shape.experts and not shape.tied and square and not shape.qk_norm
    return "llama3" if plain else "qwen3"
