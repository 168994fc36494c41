"""What is to be planned, a training job or a service, and a plan: one layout of a model."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tenfold.model.facts.shape import ModelShape

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
Shard = Literal["none", "zero1", "zero2", "zero3"]
Recompute = Literal["none", "selective", "full"]


Model = Annotated[str, Meta(description="A model of the facts, or its config.json.")]
Degree = Annotated[int, Meta(ge=1, description="Fix this degree instead of searching it.")]
Tokens = Annotated[int, Meta(ge=1)]
Positive = Annotated[float, Meta(gt=0, le=1e9)]


class TrainingJob(Struct, frozen=True, kw_only=True):
    """A training job to lay out. What is None is free to be chosen.

    `tokens` is the length of the run; deadline and budget are for the whole of it.
    """

    model: Model
    gpus: Annotated[int, Meta(ge=1, description="How many GPUs; else the best number.")] | None = (
        None
    )
    tokens: Annotated[float | None, Meta(description="Length of the run in tokens: 1e12, 15T.")] = (
        None
    )
    deadline_s: Annotated[float | None, Meta(description="The run must end within: 30d.")] = None
    budget_usd: Annotated[float | None, Meta(description="The run may cost, in dollars: 2e6.")] = (
        None
    )
    seq: Annotated[Tokens, Meta(description="Tokens a sequence.")] | None = None
    global_batch: Annotated[int, Meta(ge=1, description="Sequences a step.")] | None = None
    precision: Annotated[Precision, Meta(description="Of matrix products.")] = "bf16"
    tp: Degree | None = None
    pp: Degree | None = None
    cp: Degree | None = None
    ep: Degree | None = None
    micro_batch: Degree | None = None
    shard: Annotated[Shard | None, Meta(description="Fix the sharding.")] = None
    recompute: Annotated[Recompute | None, Meta(description="Fix the recomputation.")] = None


class ServiceDemand(Struct, frozen=True, kw_only=True):
    """A service: its load, the lengths of its requests, and what its users may wait."""

    model: Model
    qps: Annotated[Positive, Meta(description="Requests a second.")]
    input_tokens: Annotated[Tokens, Meta(description="Tokens of a prompt.")]
    output_tokens: Annotated[Tokens, Meta(description="Tokens of an answer.")]
    ttft_s: Annotated[Positive, Meta(description="Seconds to the first token, at most.")]
    tpot_s: Annotated[Positive, Meta(description="Seconds a token, at most.")]
    precisions: Annotated[
        tuple[Precision, ...], Meta(description="Which to try; may be given several times.")
    ] = ("bf16", "fp8")


class TrainPlan(Struct, frozen=True, kw_only=True):
    """How a model is trained on a number of accelerators.

    `gpus = tp * pp * dp * cp`; expert parallelism divides the data-parallel group.
    Batches count sequences. `virtual_stages` is 1 where the pipeline does not interleave.
    """

    model: str
    shape: ModelShape
    seq: int
    micro_batch: int
    global_batch: int
    accelerator: str
    gpus: int
    gpus_per_node: int
    tp: int = 1
    pp: int = 1
    dp: int = 1
    cp: int = 1
    ep: int = 1
    virtual_stages: int = 1
    shard: Shard = "none"
    recompute: Recompute = "none"
    sequence_parallel: bool = False
    precision: Precision = "bf16"
    stack: str = ""
    nic_gbps_per_gpu: float = 0.0

    @property
    def nodes(self) -> int:
        """Nodes that the plan fills."""
        return -(-self.gpus // self.gpus_per_node)

    @property
    def micro_batches(self) -> int:
        """Micro-batches that each data-parallel rank runs through in one step."""
        return max(1, self.global_batch // (self.dp * self.micro_batch))
