"""What a launcher starts: a program with its arguments, variables and files.

Launchers (a shell, sbatch, Kubernetes, Ray) and trainers (the example, Megatron-LM,
DeepSpeed, TorchTitan) meet here, so that every launcher can start every trainer.
"""

from msgspec import Struct

from tenfold.model.plan import TrainPlan

PORT = 29500


class Payload(Struct, frozen=True, kw_only=True):
    """The program that torchrun starts on every accelerator.

    `argv` names files of `files` by their path in the folder that the launcher chose.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    files: dict[str, str] = {}


def processes_per_node(plan: TrainPlan) -> int:
    """Return the processes of one node; a plan smaller than a node leaves some gpus idle."""
    return min(plan.gpus, plan.gpus_per_node)


def torchrun_sizes(plan: TrainPlan) -> list[str]:
    """Return the arguments of torchrun that say how many processes there are."""
    return [f"--nnodes={plan.nodes}", f"--nproc-per-node={processes_per_node(plan)}"]


def precision_env(plan: TrainPlan) -> dict[str, str]:
    """Return the variables that a precision needs besides the trainer's own switches."""
    # Torch multiplies fp32 in full unless told otherwise, and no trainer has a switch.
    return {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"} if plan.precision == "tf32" else {}
