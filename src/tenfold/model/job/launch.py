"""How a plan is started: what the launchers need that a layout does not say."""

from typing import Literal

from msgspec import Struct

Trainer = Literal["example", "megatron", "deepspeed", "torchtitan"]


class LaunchJob(Struct, frozen=True, kw_only=True):
    """A plan's name, program and place, for every launch format.

    `script` is the program that torchrun starts, and its arguments. A launcher (sbatch,
    Kubernetes, Ray) starts the program of `trainer` where there is none; given both, the
    script says where the trainer's program lies and the plan's arguments follow it. The
    formats that are a trainer themselves do not look at `trainer`.
    """

    name: str = "train"
    script: tuple[str, ...] = ()
    trainer: Trainer = "example"
    steps: int = 10
    image: str = ""
    work_dir: str = ""
    env: dict[str, str] = {}
    time_limit_s: int | None = None
    partition: str = ""
    namespace: str = ""
    queue: str = ""
    team: str = ""
