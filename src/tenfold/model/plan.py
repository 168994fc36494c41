"""A plan: one layout of a model on accelerators, and what it is expected to do."""

from typing import Literal

from msgspec import Struct

from tenfold.model.shape import ModelShape

Precision = Literal["fp32", "tf32", "fp16", "bf16", "fp8", "fp4"]
Shard = Literal["none", "zero1", "zero2", "zero3"]
Recompute = Literal["none", "selective", "full"]


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
