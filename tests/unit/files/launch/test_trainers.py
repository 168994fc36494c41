"""Megatron-LM, DeepSpeed and TorchTitan: a known plan, argument by argument."""

import json
import tomllib
from itertools import pairwise

import pytest
from msgspec.structs import replace

from tenfold.files.launch.deepspeed import settings
from tenfold.files.launch.formats import render_format
from tenfold.files.launch.megatron import arguments, megatron_payload, moe_pattern
from tenfold.files.launch.torchtitan import tables
from tenfold.model.facts.shape import Mla, ModelShape
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

GPT3 = ModelShape(
    layers=96,
    hidden=12288,
    heads=96,
    kv_heads=96,
    head_dim=128,
    ffn=49152,
    vocab=51200,
    gated=False,
    tied=True,
    attention_bias=True,
    learned_positions=2048,
    context=2048,
)
LLAMA = ModelShape(
    layers=126,
    hidden=16384,
    heads=128,
    kv_heads=8,
    head_dim=128,
    ffn=53248,
    vocab=128256,
    context=8192,
)
DEEPSEEK = ModelShape(
    layers=61,
    hidden=7168,
    heads=128,
    kv_heads=128,
    head_dim=128,
    ffn=2048,
    vocab=129280,
    experts=256,
    experts_per_token=8,
    shared_experts=1,
    dense_layers=3,
    dense_ffn=18432,
    mla=Mla(q_rank=1536, kv_rank=512, rope_head_dim=64, nope_head_dim=128, value_head_dim=128),
)
GPT3_PLAN = TrainPlan(
    model="gpt-3-175b",
    shape=GPT3,
    seq=2048,
    micro_batch=1,
    global_batch=1536,
    accelerator="a100",
    gpus=1024,
    gpus_per_node=8,
    tp=8,
    pp=16,
    dp=8,
    virtual_stages=3,
    shard="zero1",
    recompute="selective",
    sequence_parallel=True,
)
LLAMA_PLAN = replace(
    GPT3_PLAN, shape=LLAMA, seq=8192, gpus=2048, dp=16, virtual_stages=1, recompute="full"
)
DEEPSEEK_PLAN = replace(
    GPT3_PLAN,
    shape=DEEPSEEK,
    seq=4096,
    tp=1,
    pp=1,
    cp=2,
    dp=512,
    ep=64,
    virtual_stages=1,
    shard="zero3",
    recompute="none",
    precision="fp8",
)


def megatron(plan: TrainPlan) -> dict[str, str]:
    """Each option with the value after it; a bare flag maps to an empty text."""
    words = [*arguments(plan), "--end"]
    return {
        word: "" if after.startswith("--") else after
        for word, after in pairwise(words)
        if word.startswith("--")
    }


def test_gpt3_for_megatron_argument_by_argument():
    assert megatron(GPT3_PLAN) == {
        "--num-layers": "96",
        "--hidden-size": "12288",
        "--ffn-hidden-size": "49152",
        "--num-attention-heads": "96",
        "--kv-channels": "128",
        "--tokenizer-type": "NullTokenizer",
        "--vocab-size": "51199",
        "--position-embedding-type": "learned_absolute",
        "--max-position-embeddings": "2048",
        "--tensor-model-parallel-size": "8",
        "--pipeline-model-parallel-size": "16",
        "--context-parallel-size": "1",
        "--num-layers-per-virtual-pipeline-stage": "2",
        "--sequence-parallel": "",
        "--use-distributed-optimizer": "",
        "--overlap-grad-reduce": "",
        "--overlap-param-gather": "",
        "--recompute-granularity": "selective",
        "--bf16": "",
        "--seq-length": "2048",
        "--micro-batch-size": "1",
        "--global-batch-size": "1536",
    }


def test_llama_for_megatron_splits_its_126_layers_with_embedding_and_loss():
    given = megatron(LLAMA_PLAN)
    assert given["--num-query-groups"] == "8"
    assert given["--normalization"] == "RMSNorm"
    assert given["--position-embedding-type"] == "rope"
    assert given["--recompute-method"] == "uniform"
    assert given["--recompute-num-layers"] == "1"
    assert "--num-layers-per-virtual-pipeline-stage" not in given
    assert {
        "--group-query-attention",
        "--swiglu",
        "--disable-bias-linear",
        "--untie-embeddings-and-output-weights",
        "--account-for-embedding-in-pipeline-split",
        "--account-for-loss-in-pipeline-split",
    } <= set(given)
    assert "--add-qkv-bias" not in given


def test_megatron_gets_the_planned_run_and_says_what_to_replace():
    job = LaunchJob(steps=47_684, save_steps=187, time_limit_s=36_000)
    shape = replace(LLAMA, rope_theta=5e5, qk_norm=True)
    script = render_format(replace(LLAMA_PLAN, shape=shape), "megatron", job)["megatron.sh"]
    for words in (
        "--train-iters 47684",
        "--save-interval 187",
        "--save checkpoints",
        "--exit-duration-in-mins 590",
        "--rotary-base 500000",
        "--qk-layernorm",
        "# PLACEHOLDER: --mock-data",
    ):
        assert words in script
    trial = render_format(LLAMA_PLAN, "megatron", LaunchJob())["megatron.sh"]
    assert "# PLACEHOLDER: 10 steps and no checkpoints" in trial
    assert "# PLACEHOLDER: --rotary-base is left at the default" in trial
    assert "--save-interval" not in trial


def test_partial_recompute_is_said_in_the_units_of_each_trainer():
    plan = replace(LLAMA_PLAN, recompute_layers=5, recompute="full")
    assert megatron(plan)["--recompute-num-layers"] == "5"
    assert megatron(plan)["--recompute-method"] == "block"
    # Megatron counts the layers of each virtual stage.
    interleaved = replace(GPT3_PLAN, recompute="full", recompute_layers=4)
    assert megatron(interleaved)["--recompute-num-layers"] == "2"
    small = replace(SMALL_PLAN, recompute="full", recompute_layers=10)
    files = render_format(small, "deepspeed", LaunchJob())
    assert json.loads(files["deepspeed.json"])["activation_checkpointing"] == {
        "partition_activations": False,
        "number_checkpoints": 10,
    }
    assert f"10 of {small.shape.layers} layers" in files["deepspeed.sh"]
    every = tables(replace(small, shard="zero3"), LaunchJob())["activation_checkpoint"]
    assert every == {
        "mode": "selective",
        "selective_ac_option": str(small.shape.layers // 10),
    }


def test_torchtitan_saves_as_planned_with_the_models_positions():
    plan = replace(SMALL_PLAN, shard="zero3", shape=replace(SMALL_PLAN.shape, rope_theta=5e5))
    files = render_format(plan, "torchtitan", LaunchJob(steps=900, save_steps=30))
    job = tomllib.loads(files["torchtitan.toml"])
    assert job["checkpoint"] == {"enable": True, "interval": 30}
    assert job["training"]["steps"] == 900
    assert "rope_theta=500000.0" in files["tenfold_model.py"]
    assert "PLACEHOLDER: `dataset`" in files["torchtitan.toml"]


def test_deepseek_for_megatron_says_latent_attention_and_experts():
    given = megatron(DEEPSEEK_PLAN)
    wanted = {
        "--multi-latent-attention": "",
        "--q-lora-rank": "1536",
        "--kv-lora-rank": "512",
        "--qk-head-dim": "128",
        "--qk-pos-emb-head-dim": "64",
        "--v-head-dim": "128",
        "--ffn-hidden-size": "18432",
        "--num-experts": "256",
        "--moe-router-topk": "8",
        "--moe-ffn-hidden-size": "2048",
        "--moe-layer-freq": "[0]*3+[1]*58",
        "--moe-shared-expert-intermediate-size": "2048",
        "--expert-model-parallel-size": "64",
        "--expert-tensor-parallel-size": "1",
        "--context-parallel-size": "2",
        "--use-megatron-fsdp": "",
        "--data-parallel-sharding-strategy": "optim_grads_params",
        "--ckpt-format": "fsdp_dtensor",
        "--bf16": "",
        "--fp8-format": "hybrid",
    }
    assert wanted.items() <= given.items()
    assert "--kv-channels" not in given
    assert "--recompute-granularity" not in given


@pytest.mark.parametrize(
    ("dense_layers", "every", "layers"),
    [(0, 1, 12), (3, 1, 61), (0, 2, 24), (1, 2, 24), (2, 4, 13)],
)
def test_the_pattern_of_expert_layers_names_every_layer(dense_layers: int, every: int, layers: int):
    shape = replace(DEEPSEEK, layers=layers, dense_layers=dense_layers, moe_every=every)
    pattern: list[int] = eval(moe_pattern(shape), {"__builtins__": {}})
    assert len(pattern) == layers
    assert sum(pattern) == shape.moe_layers
    assert not any(pattern[:dense_layers])


def test_megatron_gets_the_variable_it_asks_for_and_fsdp_does_not():
    name = "CUDA_DEVICE_MAX_CONNECTIONS"
    assert megatron_payload(GPT3_PLAN, LaunchJob()).env == {name: "1"}
    assert megatron_payload(DEEPSEEK_PLAN, LaunchJob()).env == {}
    script = render_format(GPT3_PLAN, "megatron", LaunchJob(env={name: "2"}))["megatron.sh"]
    assert f"export {name}=2\n" in script
    assert "--nnodes=128" in script
    assert "pretrain_gpt.py" in script


def test_tf32_is_said_where_no_trainer_has_a_switch():
    plan = replace(GPT3_PLAN, precision="tf32")
    assert "--bf16" not in megatron(plan)
    assert megatron_payload(plan, LaunchJob()).env["TORCH_ALLOW_TF32_CUBLAS_OVERRIDE"] == "1"


SMALL_PLAN = replace(
    LLAMA_PLAN, gpus=64, tp=1, pp=1, dp=64, shard="none", recompute="none", global_batch=256
)


@pytest.mark.parametrize(
    ("shard", "stage"), [("none", 0), ("zero1", 1), ("zero2", 2), ("zero3", 3)]
)
def test_deepspeed_stage_and_batches(shard: str, stage: int):
    files = render_format(replace(SMALL_PLAN, shard=shard), "deepspeed", LaunchJob())
    chosen = json.loads(files["deepspeed.json"])
    assert chosen["zero_optimization"]["stage"] == stage
    assert chosen["train_batch_size"] == 256
    assert chosen["train_micro_batch_size_per_gpu"] == 1
    assert chosen["gradient_accumulation_steps"] == 4
    assert (chosen["bf16"], chosen["fp16"]) == ({"enabled": True}, {"enabled": False})
    assert "tensor_parallel" not in chosen
    assert "--deepspeed_config deepspeed.json" in files["deepspeed.sh"].replace(" \\\n    ", " ")


def test_deepspeed_says_tensor_parallelism_and_full_recompute():
    plan = replace(
        SMALL_PLAN, tp=8, dp=8, sequence_parallel=False, precision="fp16", recompute="full"
    )
    chosen = settings(plan)
    assert chosen["tensor_parallel"] == {"autotp_size": 8}
    assert chosen["fp16"] == {"enabled": True}
    assert chosen["activation_checkpointing"] == {
        "partition_activations": False,
        "number_checkpoints": 126,
    }


def titan(plan: TrainPlan) -> tuple[dict[str, dict[str, object]], str]:
    files = render_format(plan, "torchtitan", LaunchJob(steps=50))
    assert "-m torchtitan.train" in files["torchtitan.sh"].replace(" \\\n    ", " ")
    compile(files["tenfold_model.py"], "tenfold_model.py", "exec")
    return tomllib.loads(files["torchtitan.toml"]), files["tenfold_model.py"]


def test_torchtitan_pipeline_holds_the_micro_batches_of_a_step():
    tables, model = titan(replace(LLAMA_PLAN, shard="zero3", virtual_stages=2))
    assert tables["parallelism"] == {
        "data_parallel_replicate_degree": 1,
        "data_parallel_shard_degree": 16,
        "fsdp_reshard_after_forward": "default",
        "tensor_parallel_degree": 8,
        "pipeline_parallel_degree": 16,
        "context_parallel_degree": 1,
        "expert_parallel_degree": 1,
        "expert_tensor_parallel_degree": 1,
        "pipeline_parallel_schedule": "Interleaved1F1B",
        "pipeline_parallel_layers_per_stage": 4,
        "pipeline_parallel_first_stage_less_layers": 1,
        "pipeline_parallel_last_stage_less_layers": 1,
        "pipeline_parallel_microbatch_size": 1,
    }
    assert tables["training"]["local_batch_size"] == 96
    assert tables["training"]["global_batch_size"] == 1536
    assert tables["training"]["seq_len"] == 8192
    assert tables["activation_checkpoint"] == {"mode": "full"}
    assert "from torchtitan.models.llama3 import get_train_spec" in model
    assert "multiple_of=53248" in model


def test_torchtitan_replicates_or_keeps_weights_as_the_plan_says():
    tables, _ = titan(SMALL_PLAN)
    assert tables["parallelism"]["data_parallel_replicate_degree"] == 64
    assert tables["parallelism"]["data_parallel_shard_degree"] == 1
    assert tables["training"]["local_batch_size"] == 1
    tables, _ = titan(replace(SMALL_PLAN, shard="zero2", recompute="selective"))
    assert tables["parallelism"]["fsdp_reshard_after_forward"] == "never"
    assert tables["activation_checkpoint"] == {"mode": "selective", "selective_ac_option": "op"}


def test_torchtitan_takes_latent_attention_experts_and_fp8():
    tables, model = titan(replace(DEEPSEEK_PLAN, cp=1, dp=1024, global_batch=2048))
    assert tables["parallelism"]["expert_parallel_degree"] == 64
    assert tables["model"]["converters"] == ["quantize.linear.float8"]
    quantize = tables["quantize"]["linear"]
    assert quantize == {"float8": {"enable_fsdp_float8_all_gather": True}}
    assert "n_dense_layers=3" in model
    assert "num_experts=256, num_shared_experts=1" in model


def test_torchtitan_llama_width_rounds_to_the_plan():
    """Compute the width as TorchTitan does, for widths above and below 8/3 of the model's."""
    for hidden, ffn in ((4096, 14336), (16384, 53248), (2048, 4096), (5120, 13824)):
        start = int(2 * 4 * hidden / 3)
        scaled = int(ffn / int(8 * hidden / 3) * start)
        assert ffn * ((scaled + ffn - 1) // ffn) == ffn
