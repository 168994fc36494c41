"""The inputs of the planner (a training job or a service) and its output, a training plan."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tenfold.model.facts.shape import ModelShape

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
Shard = Literal["none", "zero1", "zero2", "zero3"]
Recompute = Literal["none", "selective", "full"]


Model = Annotated[str, Meta(description="Name of a known model, or path to its config.json")]
Degree = Annotated[int, Meta(ge=1)]
Tokens = Annotated[int, Meta(ge=1)]
Positive = Annotated[float, Meta(gt=0, le=1e9)]


class TrainingJob(Struct, frozen=True, kw_only=True):
    """A training job to plan. Fields that are None are chosen by the search.

    `tokens` is the length of the run; deadline and budget apply to the whole run.
    """

    model: Model
    gpus: (
        Annotated[int, Meta(ge=1, description="Number of GPUs (default: the best size)")] | None
    ) = None
    tokens: Annotated[
        float | None, Meta(description="Length of the run in tokens, such as 1e12 or 15T")
    ] = None
    deadline_s: Annotated[
        float | None, Meta(description="Finish the run within this time, such as 30d")
    ] = None
    budget_usd: Annotated[
        float | None, Meta(description="Maximum cost of the run in dollars, such as 2e6")
    ] = None
    seq: Annotated[Tokens, Meta(description="Sequence length in tokens (default: 4096)")] | None = (
        None
    )
    global_batch: (
        Annotated[
            int, Meta(ge=1, description="Sequences per step (default: typical for the model size)")
        ]
        | None
    ) = None
    precision: Annotated[
        Precision, Meta(description="Precision of matrix multiplies (default: bf16)")
    ] = "bf16"
    tp: Annotated[Degree, Meta(description="Tensor parallelism (default: best found)")] | None = (
        None
    )
    pp: Annotated[Degree, Meta(description="Pipeline parallelism (default: best found)")] | None = (
        None
    )
    cp: Annotated[Degree, Meta(description="Context parallelism (default: best found)")] | None = (
        None
    )
    ep: Annotated[Degree, Meta(description="Expert parallelism (default: best found)")] | None = (
        None
    )
    micro_batch: (
        Annotated[Degree, Meta(description="Micro-batch size (default: best found)")] | None
    ) = None
    shard: Annotated[
        Shard | None, Meta(description="Data-parallel sharding (default: best found)")
    ] = None
    recompute: Annotated[
        Recompute | None, Meta(description="Activation recomputation (default: best found)")
    ] = None


class ServiceDemand(Struct, frozen=True, kw_only=True):
    """A service: its load, the length of its requests, and its latency targets."""

    model: Model
    qps: Annotated[Positive, Meta(description="Requests per second")]
    input_tokens: Annotated[Tokens, Meta(description="Prompt length in tokens")]
    output_tokens: Annotated[Tokens, Meta(description="Response length in tokens")]
    ttft_s: Annotated[Positive, Meta(description="Target time to first token, in seconds")]
    tpot_s: Annotated[Positive, Meta(description="Target time per output token, in seconds")]
    precisions: Annotated[
        tuple[Precision, ...], Meta(description="Precision to try; repeatable (default: bf16, fp8)")
    ] = ("bf16", "fp8")
    attainment: Annotated[
        float,
        Meta(
            gt=0, lt=1, description="Share of requests that must meet the targets (default: 0.99)"
        ),
    ] = 0.99
    spare_replicas: Annotated[
        int,
        Meta(
            ge=0,
            le=1000,
            description="Replica failures to tolerate while still meeting the targets (default: 1)",
        ),
    ] = 1
    headroom: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            description="Share of the capacity of each replica to leave free (default: 0.1)",
        ),
    ] = 0.1


class TrainPlan(Struct, frozen=True, kw_only=True):
    """One way to train a model: its layout, batch and memory settings.

    `gpus = tp * pp * dp * cp`; expert parallelism divides the data-parallel group.
    Batches count sequences. `virtual_stages` is 1 where the pipeline does not interleave.
    `recompute_layers` are the layers of each stage that full recompute covers, 0 for all of them.
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
    recompute_layers: int = 0
    sequence_parallel: bool = False
    precision: Precision = "bf16"
    stack: str = ""
    nic_gbps_per_gpu: float = 0.0

    @property
    def nodes(self) -> int:
        """Nodes that the plan uses."""
        return -(-self.gpus // self.gpus_per_node)

    @property
    def stage_layers(self) -> int:
        """Layers of the longest pipeline stage."""
        return -(-self.shape.layers // self.pp)

    @property
    def micro_batches(self) -> int:
        """Micro-batches per data-parallel rank and step."""
        return max(1, self.global_batch // (self.dp * self.micro_batch))
