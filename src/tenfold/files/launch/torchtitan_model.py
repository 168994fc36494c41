"""The plan's shape as a flavor of one of TorchTitan's models."""

from tenfold.files.launch.limits import torchtitan_base
from tenfold.model.facts.shape import ModelShape
from tenfold.model.plan import TrainPlan

_CLASSES = {
    "llama3": "TransformerModelArgs",
    "qwen3": "Qwen3ModelArgs",
    "deepseek_v3": "DeepSeekV3ModelArgs",
}
_MODULE = '''\
"""The model of a Tenfold plan, for TorchTitan 0.2 (`experimental.custom_import`)."""

from dataclasses import replace

from torchtitan.models.{base} import get_train_spec
from torchtitan.models.{base}.model.args import {arguments_class}
{imports}from torchtitan.protocols.train_spec import register_train_spec

PLAN = {arguments_class}(
{fields}
)

register_train_spec("tenfold", replace(get_train_spec(), model_args={{"plan": PLAN}}))
'''


def model_module(plan: TrainPlan) -> str:
    """Return the Python text that registers the plan's shape with TorchTitan."""
    base = torchtitan_base(plan)
    fields = {"llama3": _llama, "qwen3": _qwen, "deepseek_v3": _deepseek}[base](plan)
    experts = plan.shape.experts > 0
    if experts:
        fields["moe_args"] = _experts(plan.shape)
    return _MODULE.format(
        base=base,
        arguments_class=_CLASSES[base],
        imports="from torchtitan.models.moe import MoEArgs\n" if experts else "",
        fields="\n".join(f"    {name}={value}," for name, value in fields.items()),
    )


def _widths(plan: TrainPlan) -> dict[str, object]:
    shape = plan.shape
    return {
        "dim": shape.hidden,
        "n_layers": shape.layers,
        "n_heads": shape.heads,
        "vocab_size": shape.vocab,
        "max_seq_len": max(shape.context, plan.seq),
        **({"rope_theta": shape.rope_theta} if shape.rope_theta else {}),
    }


def _llama(plan: TrainPlan) -> dict[str, object]:
    shape = plan.shape
    # It computes 8/3 of the width, scales it and rounds it up; this lands on `ffn` exactly.
    scaled = shape.ffn / int(8 * shape.hidden / 3)
    return {
        **_widths(plan),
        "n_kv_heads": shape.kv_heads,
        "ffn_dim_multiplier": scaled,
        "multiple_of": shape.ffn,
    }


def _qwen(plan: TrainPlan) -> dict[str, object]:
    shape = plan.shape
    return {
        **_widths(plan),
        "n_kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "hidden_dim": shape.dense_ffn or shape.ffn,
        "qk_norm": shape.qk_norm,
        "enable_weight_tying": shape.tied,
        "moe_enabled": shape.experts > 0,
        "moe_inter_dim": shape.ffn,
    }


def _deepseek(plan: TrainPlan) -> dict[str, object]:
    shape = plan.shape
    mla = shape.mla
    assert mla is not None, "the DeepSeek model is chosen for latent attention"
    return {
        **_widths(plan),
        "inter_dim": shape.dense_ffn or shape.ffn,
        "moe_inter_dim": shape.ffn,
        "n_dense_layers": shape.dense_layers if shape.experts else shape.layers,
        # Zero is how it says that queries are projected straight.
        "q_lora_rank": mla.q_rank or 0,
        "kv_lora_rank": mla.kv_rank,
        "qk_nope_head_dim": mla.nope_head_dim,
        "qk_rope_head_dim": mla.rope_head_dim,
        "v_head_dim": mla.value_head_dim,
    }


def _experts(shape: ModelShape) -> str:
    return (
        f"MoEArgs(num_experts={shape.experts}, num_shared_experts={shape.shared_experts}, "
        f'top_k={shape.experts_per_token}, score_func="softmax", route_norm=True)'
    )
