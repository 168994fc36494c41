"""DeepSpeed: its JSON settings, and the command that passes them to a program.

DeepSpeed wraps a model that the program builds, so the settings leave out the model's
shape: they hold batch, precision, sharding and tensor parallelism.
"""

import json

from tenfold.files.launch.job_checks import check_job
from tenfold.files.launch.limits import refuse_unsupported, trainer_unsupported
from tenfold.files.launch.payload import Payload, precision_env, trial_note
from tenfold.files.launch.shell import torchrun_script
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

SETTINGS = "deepspeed.json"
_STAGES = {"none": 0, "zero1": 1, "zero2": 2, "zero3": 3}


def render(plan: TrainPlan, job: LaunchJob) -> dict[str, str]:
    """Return the settings, and a script that starts the job's program with them."""
    check_job(job)
    refuse_unsupported(trainer_unsupported(plan, "deepspeed"), plan, "deepspeed")
    payload = deepspeed_payload(plan, job)
    return {"deepspeed.sh": torchrun_script(plan, job, payload), **payload.files}


def deepspeed_payload(plan: TrainPlan, job: LaunchJob, folder: str = "") -> Payload:
    """Return the job's program with DeepSpeed's arguments; `train.py` where it has none."""
    script = job.script or ("train.py",)
    return Payload(
        argv=(*script, "--deepspeed", "--deepspeed_config", f"{folder}{SETTINGS}"),
        env=precision_env(plan),
        files={SETTINGS: json.dumps(settings(plan, overlap=job.overlap), indent=2) + "\n"},
        notes=_notes(plan, job),
    )


def _notes(plan: TrainPlan, job: LaunchJob) -> tuple[str, ...]:
    """Return what the settings cannot hold: it is up to the program."""
    shape = plan.shape
    saved = f", save_checkpoint() every {job.save_steps:,}" if job.save_steps else ""
    rope = f"rope theta {shape.rope_theta:g}" if shape.rope_theta else "rope theta not known"
    partial = plan.recompute == "full" and plan.recompute_layers
    return (
        f"Your program runs {job.steps:,} steps{saved}",
        *(() if shape.learned_positions else (f"Your program builds the model: {rope}",)),
        *(("Your program builds the model: QK norm",) if shape.qk_norm else ()),
        *(
            (
                f"Your program checkpoints activations in {plan.recompute_layers} of "
                f"{plan.stage_layers} layers",
            )
            if partial
            else ()
        ),
        *(() if job.script else ("PLACEHOLDER: train.py is your program",)),
        f"PLACEHOLDER: learning rate 3e-4 in {SETTINGS}",
        *trial_note(job),
    )


def settings(plan: TrainPlan, *, overlap: bool = True) -> dict[str, object]:
    """Return the settings for the plan."""
    stage = _STAGES[plan.shard]
    chosen: dict[str, object] = {
        "train_batch_size": plan.global_batch,
        "train_micro_batch_size_per_gpu": plan.micro_batch,
        "gradient_accumulation_steps": plan.micro_batches,
        "steps_per_print": 1,
        "wall_clock_breakdown": False,
        "optimizer": {"type": "AdamW", "params": {"lr": 3e-4, "weight_decay": 0.1}},
        "zero_optimization": {"stage": stage, **_overlap(stage, overlap)},
        "bf16": {"enabled": plan.precision == "bf16"},
        "fp16": {"enabled": plan.precision == "fp16"},
    }
    if plan.tp > 1:
        chosen["tensor_parallel"] = {"autotp_size": plan.tp}
    if plan.recompute == "full":
        chosen["activation_checkpointing"] = {
            "partition_activations": False,
            "number_checkpoints": plan.recompute_layers or plan.shape.layers,
        }
    return chosen


def _overlap(stage: int, overlap: bool) -> dict[str, object]:
    return {"overlap_comm": overlap, "contiguous_gradients": True} if stage >= 2 else {}
