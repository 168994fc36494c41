"""TorchTitan: a TOML job file, and a module that names the plan's shape as a flavor.

TorchTitan 0.2 is the last release line that reads TOML; later ones are configured in
Python. It selects models by flavor, so the plan's shape is registered through
`custom_import`.
"""

import json

from tenfold.files.launch.job_checks import check_job
from tenfold.files.launch.limits import (
    refuse_unsupported,
    torchtitan_stage_layers,
    trainer_unsupported,
)
from tenfold.files.launch.payload import Payload, precision_env, trial_note
from tenfold.files.launch.shell import torchrun_script
from tenfold.files.launch.torchtitan_model import model_module
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

JOB_FILE = "torchtitan.toml"
MODULE = "tenfold_model"
_Tables = dict[str, dict[str, object]]


def render(plan: TrainPlan, job: LaunchJob) -> dict[str, str]:
    """Return the job file, the model's module, and a script that starts TorchTitan."""
    check_job(job)
    refuse_unsupported(trainer_unsupported(plan, "torchtitan"), plan, "torchtitan")
    payload = torchtitan_payload(plan, job)
    return {"torchtitan.sh": torchrun_script(plan, job, payload), **payload.files}


def torchtitan_payload(plan: TrainPlan, job: LaunchJob, folder: str = "") -> Payload:
    """Return TorchTitan's program with the job file, both files in `folder`."""
    script = job.script or ("-m", "torchtitan.train")
    return Payload(
        argv=(*script, "--job.config_file", f"{folder}{JOB_FILE}"),
        env={"PYTHONPATH": folder or ".", **precision_env(plan)},
        files={JOB_FILE: _toml(plan, job), f"{MODULE}.py": model_module(plan)},
        notes=trial_note(job),
    )


def tables(plan: TrainPlan, job: LaunchJob) -> _Tables:
    """Return the tables of the job file for the plan."""
    chosen: _Tables = {
        "job": {"description": job.name, "dump_folder": "./outputs"},
        "experimental": {"custom_import": MODULE},
        "model": {"name": "tenfold", "flavor": "plan"},
        "optimizer": {"name": "AdamW", "lr": 3e-4},
        "lr_scheduler": {"warmup_steps": min(200, job.steps)},
        "training": _training(plan, job),
        "parallelism": _parallelism(plan),
        "activation_checkpoint": _recompute(plan),
        "metrics": {"log_freq": 1},
    }
    if job.save_steps:
        chosen["checkpoint"] = {"enable": True, "interval": job.save_steps}
    if plan.precision == "fp8":
        chosen["model"]["converters"] = ["quantize.linear.float8"]
        chosen["quantize.linear.float8"] = {"enable_fsdp_float8_all_gather": plan.shard == "zero3"}
    return chosen


def _recompute(plan: TrainPlan) -> dict[str, object]:
    if plan.recompute == "full" and plan.recompute_layers:
        # It takes every n-th layer, so the nearest that saves enough.
        every = plan.stage_layers // plan.recompute_layers
        return {"mode": "selective", "selective_ac_option": str(every)}
    if plan.recompute == "selective":
        return {"mode": "selective", "selective_ac_option": "op"}
    return {"mode": plan.recompute}


def _training(plan: TrainPlan, job: LaunchJob) -> dict[str, object]:
    full = plan.precision in ("fp32", "tf32")
    # A pipeline takes the micro-batches of a step at once; without one they accumulate.
    held = plan.micro_batches if plan.pp > 1 else 1
    return {
        "local_batch_size": plan.micro_batch * held,
        "global_batch_size": plan.global_batch,
        "seq_len": plan.seq,
        "steps": job.steps,
        "mixed_precision_param": "float32" if full else "bfloat16",
    }


def _parallelism(plan: TrainPlan) -> dict[str, object]:
    sharded = plan.shard in ("zero2", "zero3")
    chosen: dict[str, object] = {
        "data_parallel_replicate_degree": 1 if sharded else plan.dp,
        "data_parallel_shard_degree": plan.dp if sharded else 1,
        # Weights kept after the forward pass are ZeRO-2: gradients and states sharded alone.
        "fsdp_reshard_after_forward": "never" if plan.shard == "zero2" else "default",
        "tensor_parallel_degree": plan.tp,
        "pipeline_parallel_degree": plan.pp,
        "context_parallel_degree": plan.cp,
        "expert_parallel_degree": plan.ep,
        "expert_tensor_parallel_degree": plan.tp if plan.ep > 1 else 1,
    }
    stage = torchtitan_stage_layers(plan) if plan.pp > 1 else None
    if stage is not None:
        layers, less = stage
        chosen |= {
            "pipeline_parallel_schedule": (
                "Interleaved1F1B" if plan.virtual_stages > 1 else "1F1B"
            ),
            "pipeline_parallel_layers_per_stage": layers,
            "pipeline_parallel_first_stage_less_layers": less,
            "pipeline_parallel_last_stage_less_layers": less,
            "pipeline_parallel_microbatch_size": plan.micro_batch,
        }
    return chosen


def _toml(plan: TrainPlan, job: LaunchJob) -> str:
    shape = plan.shape
    parts = [
        "# For TorchTitan 0.2.",
        "# PLACEHOLDER: `dataset` in [training] and the tokenizer folder `hf_assets_path` in",
        "# [model] are not set: it trains on test data.",
        "# PLACEHOLDER: `lr` in [optimizer] and `warmup_steps` in [lr_scheduler].",
    ]
    if not shape.rope_theta:
        parts.append("# PLACEHOLDER: the model module leaves `rope_theta` at TorchTitan's default.")
    parts += [f"# {note}" for note in trial_note(job)]
    for table, pairs in tables(plan, job).items():
        parts += ["", f"[{table}]"]
        # JSON strings, numbers, booleans and lists are valid TOML.
        parts += [f"{key} = {json.dumps(value)}" for key, value in pairs.items()]
    return "\n".join(parts) + "\n"
