"""The program that a launcher starts, with its arguments, variables and files.

This is the interface between launchers (shell, sbatch, Kubernetes, Ray) and trainers (the
example, Megatron-LM, DeepSpeed, TorchTitan): every launcher can start every trainer.
"""

from msgspec import Struct

from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

PORT = 29500


class Payload(Struct, frozen=True, kw_only=True):
    """The program that torchrun starts on every accelerator.

    `argv` names files of `files` by their path in the folder that the launcher chose. `notes` are
    for the reader of a script: what to replace, and what the trainer takes from elsewhere.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    files: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def processes_per_node(plan: TrainPlan) -> int:
    """Return the processes per node; a plan smaller than a node leaves some GPUs idle."""
    return min(plan.gpus, plan.gpus_per_node)


def torchrun_sizes(plan: TrainPlan) -> list[str]:
    """Return torchrun's arguments for the number of processes."""
    return [f"--nnodes={plan.nodes}", f"--nproc-per-node={processes_per_node(plan)}"]


def precision_env(plan: TrainPlan) -> dict[str, str]:
    """Return the variables that a precision needs besides the trainer's own switches."""
    # Torch multiplies fp32 at full precision by default, and no trainer has an option for it.
    return {"TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "1"} if plan.precision == "tf32" else {}


def trial_note(job: LaunchJob) -> tuple[str, ...]:
    """Return a note where the length of the run was not planned."""
    if job.save_steps:
        return ()
    return (
        f"PLACEHOLDER: {job.steps} steps and no checkpoints; plan with --tokens for the whole run",
    )
