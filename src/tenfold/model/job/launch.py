"""How a plan is launched: what launchers need beyond the layout."""

from typing import Literal

from msgspec import Struct

Trainer = Literal["example", "megatron", "deepspeed", "torchtitan"]


class LaunchJob(Struct, frozen=True, kw_only=True):
    """Name, program and location of a plan, for every launch format.

    `script` is the program that torchrun starts, with its arguments. Without it, a launcher
    (sbatch, Kubernetes, Ray) starts the program of `trainer`; given both, `script` is the path of
    the trainer's program and the plan's arguments follow it. Formats that are a trainer
    themselves ignore `trainer`. `save_steps` is the number of steps between checkpoints; None saves
    none. Without `overlap`, trainers do not hide communication behind compute.
    """

    name: str = "train"
    script: tuple[str, ...] = ()
    trainer: Trainer = "example"
    steps: int = 10
    save_steps: int | None = None
    overlap: bool = True
    image: str = ""
    work_dir: str = ""
    env: dict[str, str] = {}
    time_limit_s: int | None = None
    partition: str = ""
    namespace: str = ""
    queue: str = ""
    team: str = ""
