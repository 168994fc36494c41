"""Megatron-LM: the arguments of `pretrain_gpt.py`, with mock data to be replaced.

Names are those of `megatron/training/arguments.py`, core 0.15 and later.
"""

from tenfold.files.launch.job_checks import check_job
from tenfold.files.launch.limits import (
    megatron_stage_layers,
    megatron_uneven_layout,
    refuse_unsupported,
    trainer_unsupported,
)
from tenfold.files.launch.payload import Payload, precision_env, trial_note
from tenfold.files.launch.shell import torchrun_script
from tenfold.model.facts.shape import Mla, ModelShape
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

STOP_EARLY_MIN = 10
"""Minutes left before the time limit for the last checkpoint; an assumption."""
_SHARDS = {"zero2": "optim_grads", "zero3": "optim_grads_params"}
_PRECISIONS = {
    "fp32": [],
    "tf32": [],
    "fp16": ["--fp16"],
    "bf16": ["--bf16"],
    "fp8": ["--bf16", "--fp8-format", "hybrid"],
    "fp4": ["--bf16", "--fp4-format", "e2m1"],
}


def render(plan: TrainPlan, job: LaunchJob) -> dict[str, str]:
    """Return a script that starts Megatron-LM with the plan's arguments."""
    check_job(job)
    refuse_unsupported(trainer_unsupported(plan, "megatron"), plan, "megatron")
    payload = megatron_payload(plan, job)
    return {"megatron.sh": torchrun_script(plan, job, payload)}


def megatron_payload(plan: TrainPlan, job: LaunchJob, folder: str = "") -> Payload:
    """Return Megatron-LM's program with the plan's arguments; it needs no files of ours."""
    del folder
    env = precision_env(plan)
    # Megatron refuses tp or cp without this, and its FSDP with it.
    if (plan.tp > 1 or plan.cp > 1) and plan.shard not in _SHARDS:
        env["CUDA_DEVICE_MAX_CONNECTIONS"] = "1"
    script = job.script or ("pretrain_gpt.py",)
    return Payload(
        argv=(*script, *arguments(plan, overlap=job.overlap), *_run(job)),
        env=env,
        notes=_notes(plan, job),
    )


def arguments(plan: TrainPlan, *, overlap: bool = True) -> list[str]:
    """Return the arguments for the plan: model, layout, batch and precision."""
    return [
        *_model(plan),
        *_experts(plan.shape),
        *_layout(plan),
        *_data_parallel(plan, overlap),
        *_recompute(plan),
        *_PRECISIONS[plan.precision],
        *_pairs(
            seq_length=plan.seq,
            micro_batch_size=plan.micro_batch,
            global_batch_size=plan.global_batch,
        ),
    ]


def _pairs(**values: object) -> list[str]:
    return [
        word
        for name, value in values.items()
        for word in (f"--{name.replace('_', '-')}", str(value))
    ]


def _model(plan: TrainPlan) -> list[str]:
    shape = plan.shape
    words = _pairs(
        num_layers=shape.layers,
        hidden_size=shape.hidden,
        ffn_hidden_size=shape.dense_ffn or shape.ffn,
        num_attention_heads=shape.heads,
    )
    words += _latent(shape.mla) if shape.mla else _pairs(kv_channels=shape.head_dim)
    if shape.mla is None and shape.kv_heads != shape.heads:
        words += ["--group-query-attention", *_pairs(num_query_groups=shape.kv_heads)]
    words += ["--swiglu", "--normalization", "RMSNorm"] if shape.gated else []
    # The null tokenizer adds an end of document to the vocabulary.
    words += _pairs(tokenizer_type="NullTokenizer", vocab_size=shape.vocab - 1)
    words += [] if shape.tied else ["--untie-embeddings-and-output-weights"]
    words += ["--qk-layernorm"] if shape.qk_norm else []
    return words + _biases(shape) + _positions(plan)


def _latent(mla: Mla) -> list[str]:
    query = _pairs(q_lora_rank=mla.q_rank) if mla.q_rank is not None else []
    return [
        "--multi-latent-attention",
        *query,
        *_pairs(
            kv_lora_rank=mla.kv_rank,
            qk_head_dim=mla.nope_head_dim,
            qk_pos_emb_head_dim=mla.rope_head_dim,
            v_head_dim=mla.value_head_dim,
        ),
    ]


def _biases(shape: ModelShape) -> list[str]:
    # Models of the GPT kind have biases everywhere; gated ones at most on queries and keys.
    if shape.attention_bias and not shape.gated:
        return []
    return ["--disable-bias-linear", *(["--add-qkv-bias"] if shape.attention_bias else [])]


def _positions(plan: TrainPlan) -> list[str]:
    learned, theta = plan.shape.learned_positions, plan.shape.rope_theta
    words = _pairs(
        position_embedding_type="learned_absolute" if learned else "rope",
        max_position_embeddings=learned or max(plan.shape.context, plan.seq),
    )
    return words + (_pairs(rotary_base=round(theta)) if theta and not learned else [])


def _experts(shape: ModelShape) -> list[str]:
    if not shape.experts:
        return []
    words = _pairs(
        num_experts=shape.experts,
        moe_router_topk=shape.experts_per_token,
        moe_ffn_hidden_size=shape.ffn,
        moe_layer_freq=moe_pattern(shape),
        moe_token_dispatcher_type="alltoall",
    )
    if shape.shared_experts:
        total = shape.shared_experts * (shape.shared_ffn or shape.ffn)
        words += _pairs(moe_shared_expert_intermediate_size=total)
    return words


def moe_pattern(shape: ModelShape) -> str:
    """Return which layers have experts, as the list expression that Megatron evaluates."""
    every = f"([0]*{shape.moe_every - 1}+[1])" if shape.moe_every > 1 else "[1]"
    rest = shape.layers - shape.dense_layers - shape.moe_layers * shape.moe_every
    parts = [f"[0]*{shape.dense_layers}"] if shape.dense_layers else []
    parts.append(f"{every}*{shape.moe_layers}")
    return "+".join([*parts, f"[0]*{rest}"] if rest else parts)


def _layout(plan: TrainPlan) -> list[str]:
    words = _pairs(
        tensor_model_parallel_size=plan.tp,
        pipeline_model_parallel_size=plan.pp,
        context_parallel_size=plan.cp,
    )
    stage = megatron_stage_layers(plan) if plan.pp > 1 else None
    if plan.pp > 1 and stage is None:
        words += _pairs(pipeline_model_parallel_layout=megatron_uneven_layout(plan))
    if stage is not None:
        layers, outer_count = stage
        if plan.virtual_stages > 1:
            words += _pairs(num_layers_per_virtual_pipeline_stage=layers)
        if outer_count:
            words += [
                "--account-for-embedding-in-pipeline-split",
                "--account-for-loss-in-pipeline-split",
            ]
    if plan.shape.experts:
        # tp shards experts like all other layers, and ep divides the data-parallel group.
        words += _pairs(expert_model_parallel_size=plan.ep, expert_tensor_parallel_size=plan.tp)
    return words + (["--sequence-parallel"] if plan.sequence_parallel and plan.tp > 1 else [])


def _data_parallel(plan: TrainPlan, overlap: bool) -> list[str]:
    if plan.shard == "none":
        return []
    words = ["--use-distributed-optimizer"]
    words += ["--overlap-grad-reduce", "--overlap-param-gather"] if overlap else []
    if plan.shard in _SHARDS:
        words += [
            "--use-megatron-fsdp",
            *_pairs(data_parallel_sharding_strategy=_SHARDS[plan.shard]),
            "--no-gradient-accumulation-fusion",
            *_pairs(ckpt_format="fsdp_dtensor"),
        ]
    return words


def _recompute(plan: TrainPlan) -> list[str]:
    if plan.recompute == "full" and plan.recompute_layers:
        return _pairs(
            recompute_granularity="full",
            recompute_method="block",
            # Megatron counts them in each virtual stage.
            recompute_num_layers=-(-plan.recompute_layers // plan.virtual_stages),
        )
    if plan.recompute == "full":
        return _pairs(
            recompute_granularity="full", recompute_method="uniform", recompute_num_layers=1
        )
    return _pairs(recompute_granularity="selective") if plan.recompute == "selective" else []


def _run(job: LaunchJob) -> list[str]:
    """Return the arguments that any run needs; replace the mock data with your own."""
    saved = (
        _pairs(save="checkpoints", load="checkpoints", save_interval=job.save_steps)
        if job.save_steps
        else []
    )
    limit = _pairs(exit_duration_in_mins=_stop_minutes(job)) if job.time_limit_s else []
    return [
        "--mock-data",
        *_pairs(train_iters=job.steps, lr="3e-4", log_interval=1, eval_iters=0),
        *saved,
        *limit,
    ]


def _stop_minutes(job: LaunchJob) -> int:
    """Return when to save and stop: some minutes before the time limit ends the job."""
    assert job.time_limit_s is not None, "called with a time limit"
    return max(1, job.time_limit_s // 60 - STOP_EARLY_MIN)


def _notes(plan: TrainPlan, job: LaunchJob) -> tuple[str, ...]:
    shape = plan.shape
    unknown = not shape.rope_theta and not shape.learned_positions
    return (
        "PLACEHOLDER: --mock-data and --tokenizer-type NullTokenizer; use --data-path and your "
        "tokenizer",
        "PLACEHOLDER: --lr 3e-4, constant and without warmup",
        *(("PLACEHOLDER: --rotary-base is left at the default, 10000",) if unknown else ()),
        *trial_note(job),
    )
