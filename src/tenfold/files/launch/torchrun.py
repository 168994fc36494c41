"""Plain PyTorch: a torchrun script, and the example training program it starts.

The program reads the plan from `train_plan.json` next to it, so it is the same for every
plan.
"""

import json
from importlib import resources

import msgspec

from tenfold.files.launch.job_checks import check_job
from tenfold.files.launch.limits import (
    own_program_unsupported,
    refuse_unsupported,
    trainer_unsupported,
)
from tenfold.files.launch.payload import Payload
from tenfold.files.launch.shell import torchrun_script
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

SCRIPT = "train_example.py"
PLAN = "train_plan.json"


def render(plan: TrainPlan, job: LaunchJob) -> dict[str, str]:
    """Return the script, the program and the plan; a job's own script replaces the last two."""
    check_job(job)
    reasons = own_program_unsupported(plan) if job.script else trainer_unsupported(plan, "torchrun")
    refuse_unsupported(reasons, plan, "torchrun")
    payload = Payload(argv=job.script) if job.script else example_payload(plan, job)
    return {"torchrun.sh": torchrun_script(plan, job, payload), **payload.files}


def example_payload(plan: TrainPlan, job: LaunchJob, folder: str = "") -> Payload:
    """Return the example training program, with its files in `folder`."""
    argv = (f"{folder}{SCRIPT}", "--plan", f"{folder}{PLAN}", "--steps", str(job.steps))
    notes = (f"PLACEHOLDER: {SCRIPT} trains on random tokens and saves no checkpoints",)
    return Payload(argv=argv, files={SCRIPT: _program(), PLAN: _plan_text(plan)}, notes=notes)


def _program() -> str:
    # Kept as text: it imports torch, which the planner does not require.
    return resources.files("tenfold.files.launch").joinpath("train_example.py.txt").read_text()


def _plan_text(plan: TrainPlan) -> str:
    fields = {**msgspec.to_builtins(plan), "micro_batches": plan.micro_batches}
    return json.dumps(fields, indent=2) + "\n"
