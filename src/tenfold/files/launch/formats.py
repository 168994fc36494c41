"""The launch formats by name, and what each of them does not support."""

from collections.abc import Callable

from tenfold.files.launch import (
    deepspeed,
    kubernetes,
    megatron,
    ray_train,
    sbatch,
    torchrun,
    torchtitan,
)
from tenfold.files.launch.limits import (
    Unsupported,
    launcher_unsupported,
    own_program_unsupported,
    trainer_unsupported,
)
from tenfold.model.errors import InputError
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

Render = Callable[[TrainPlan, LaunchJob], dict[str, str]]

FORMATS: dict[str, Render] = {
    "torchrun": torchrun.render,
    "megatron": megatron.render,
    "deepspeed": deepspeed.render,
    "torchtitan": torchtitan.render,
    "slurm": sbatch.render,
    "sbatch": sbatch.render,
    "kubernetes": kubernetes.render,
    "ray-train": ray_train.render,
}
_LAUNCHERS = ("slurm", "sbatch", "kubernetes", "ray-train")


def render_format(plan: TrainPlan, format_name: str, job: LaunchJob) -> dict[str, str]:
    """Return the files of a format, or raise an error that lists the formats."""
    return _known(format_name)(plan, job)


def unsupported(
    plan: TrainPlan, format_name: str, job: LaunchJob | None = None
) -> list[Unsupported]:
    """Return what a format does not support of the plan; empty if it supports all.

    A launcher supports what the program it starts supports.
    """
    _known(format_name)
    job = job or LaunchJob()
    if format_name == "ray-train":
        return ray_train.unsupported(plan, job)
    if format_name in _LAUNCHERS:
        return launcher_unsupported(plan, job)
    if format_name == "torchrun" and job.script:
        return own_program_unsupported(plan)
    return trainer_unsupported(plan, format_name)


def _known(format_name: str) -> Render:
    if format_name not in FORMATS:
        raise InputError(
            "unknown-format",
            f"unknown launch format `{format_name}`",
            f"choose one of {', '.join(f'`{name}`' for name in FORMATS)}",
            field="format",
        )
    return FORMATS[format_name]
