"""The program that a launcher starts: the job's own, or the one of a trainer."""

from collections.abc import Callable

from tenfold.files.launch.deepspeed import deepspeed_payload
from tenfold.files.launch.limits import launcher_unsupported, refuse_unsupported
from tenfold.files.launch.megatron import megatron_payload
from tenfold.files.launch.payload import Payload
from tenfold.files.launch.torchrun import example_payload
from tenfold.files.launch.torchtitan import torchtitan_payload
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

_TRAINERS: dict[str, Callable[[TrainPlan, LaunchJob, str], Payload]] = {
    "example": example_payload,
    "megatron": megatron_payload,
    "deepspeed": deepspeed_payload,
    "torchtitan": torchtitan_payload,
}


def launcher_payload(
    plan: TrainPlan, job: LaunchJob, format_name: str, folder: str = ""
) -> Payload:
    """Return the program to start for this plan, or raise an error if it is unsupported."""
    refuse_unsupported(launcher_unsupported(plan, job), plan, format_name)
    if job.script and job.trainer == "example":
        return Payload(argv=job.script)
    return _TRAINERS[job.trainer](plan, job, folder)
