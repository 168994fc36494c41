"""Read a HuggingFace `config.json` as a model shape.

A config says less than it seems to: what it leaves out follows from its model type,
and one key means different things in two types. So only known model types are read;
a guess for an unknown one would be a plausible and wrong size.
"""

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import msgspec
from msgspec.structs import replace

from tenfold.files.core.document import read_text
from tenfold.files.core.expectations import describe_value
from tenfold.files.core.read_errors import json_problem
from tenfold.files.models.families import DEFAULTS, FAMILIES, ModelFamily
from tenfold.files.models.fields import Fields
from tenfold.model.errors import InputError
from tenfold.model.facts.shape import Mla, ModelShape

SIZE_MAX_BYTES = 16 * 1024 * 1024

_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_HIDDEN = ("hidden_size", "n_embd", "d_model", "n_embed")
_HEADS = ("num_attention_heads", "n_head", "n_heads")
_KV_HEADS = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "attn_config.kv_n_heads")
_FFN = ("intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size", "ffn_config.ffn_hidden_size")
_CONTEXT = ("max_position_embeddings", "n_positions", "max_seq_len", "seq_length")
_BIAS = ("attention_bias", "qkv_bias", "use_bias", "enable_bias", "bias")
_ROPE_THETA = ("rope_theta", "rope_parameters.rope_theta", "rotary_emb_base")
_QK_NORM = ("use_qk_norm", "qk_layernorm")
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "ffn_config.moe_num_experts")
_TOP = ("num_experts_per_tok", "experts_per_token", "ffn_config.moe_top_k")
_MOE_EVERY = ("decoder_sparse_step", "interleave_moe_layer_step")
_MULTI_QUERY = ("falcon", "RefinedWeb", "RefinedWebModel", "gpt_bigcode")
_NESTED = ("text_config", "language_config", "llm_config")


def read_hf_config(path: Path) -> ModelShape:
    """Return the shape that a config file describes, or raise `InputError`."""
    text = _config_text(path)
    try:
        config = msgspec.json.decode(text, type=dict[str, object])
    except msgspec.ValidationError:
        raise InputError(
            "not-an-object",
            f"`{path}` is not a JSON object",
            "pass the model's `config.json`",
            file=str(path),
        ) from None
    except RecursionError:
        raise InputError(
            "nested-too-deep",
            f"`{path}` is nested too deeply",
            "pass the model's `config.json`",
            file=str(path),
        ) from None
    except msgspec.DecodeError as error:
        raise InputError(
            "syntax",
            f"`{path}` is not valid JSON: {json_problem(error)}",
            "pass the model's `config.json` as downloaded",
            file=str(path),
        ) from None
    return shape_from_hf(config, str(path))


def shape_from_hf(config: Mapping[str, object], file: str) -> ModelShape:
    """Return the shape that a parsed config describes; `file` is named in errors."""
    fields = _language_part(Fields(config, file))
    family = FAMILIES[fields.model_type]
    layers, hidden, heads = fields.count(_LAYERS), fields.count(_HIDDEN), fields.count(_HEADS)
    _refuse_other_stacks(fields, hidden)
    mla = _mla(fields)
    context = fields.maybe(_CONTEXT)
    shape = ModelShape(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads if mla else _kv_heads(fields, heads),
        head_dim=mla.nope_head_dim + mla.rope_head_dim if mla else _head_dim(fields, hidden, heads),
        ffn=_ffn(fields, family, hidden),
        vocab=fields.count(("vocab_size",)),
        gated=family.gated,
        tied=fields.flag(("tie_word_embeddings",), family.tied),
        attention_bias=_attention_bias(fields, family),
        learned_positions=_learned_positions(fields, family, context),
        mla=mla,
        window=_window(fields, family),
        window_layers=layers * family.window_layers[0] // family.window_layers[1],
        native_4bit_experts=family.native_4bit_experts,
        parallel_block=family.parallel,
        rope_theta=fields.amount(_ROPE_THETA) or 0.0,
        qk_norm=fields.flag(_QK_NORM, family.qk_norm),
        context=context or 4096,
    )
    return _with_experts(fields, shape)


def _window(fields: Fields, family: ModelFamily) -> int:
    """Return the width of local attention, in types that mix it with global layers."""
    if not family.window:
        return 0
    return fields.maybe(("sliding_window", "attention_chunk_size")) or family.window


def _config_text(path: Path) -> str:
    try:
        if _is_special(path):
            raise InputError(
                "unreadable-file",
                f"`{path}` is a pipe or a device",
                "pass the model's `config.json`",
                file=str(path),
            )
        return read_text(path, SIZE_MAX_BYTES)
    except ValueError as error:
        raise InputError(
            "unreadable-file",
            f"`{path}` cannot be read: {_first_line(error)}",
            "check the path",
            file=str(path),
        ) from None
    except InputError as error:
        if error.code == "file-too-large":
            error.hint = "a `config.json` is a few KB: is this the weights file?"
        raise


def _is_special(path: Path) -> bool:
    """Return whether reading could block forever; a path that cannot be read is not special."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def _language_part(fields: Fields) -> Fields:
    """Return the fields of the language model, which multimodal configs nest."""
    nested = next((key for key in _NESTED if fields.get(key) is not None), None)
    own = fields.table(nested) if nested else {}
    given: dict[str, object] = {"tie_word_embeddings": fields.get("tie_word_embeddings")}
    inner = Fields({**given, **own}, fields.file) if nested else fields
    inner.model_type = _model_type(fields, inner)
    return inner.with_defaults(DEFAULTS.get(inner.model_type, {}))


def _model_type(fields: Fields, inner: Fields) -> str:
    value = inner.get("model_type")
    value = fields.get("model_type") if value is None else value
    if value is None:
        raise fields.missing(("model_type",))
    if not isinstance(value, str):
        raise fields.wrong("model_type", "a text", value)
    known = next((name for name in (value, f"{value}_text") if name in FAMILIES), None)
    if known is None:
        raise fields.unsupported(
            "model_type", f"the model type {describe_value(value).removeprefix('the string ')}"
        )
    return known


def _refuse_other_stacks(fields: Fields, hidden: int) -> None:
    if fields.flag(("is_encoder_decoder",), False):
        raise fields.unsupported("is_encoder_decoder", "an encoder with a decoder")
    if (fields.maybe(("word_embed_proj_dim",)) or hidden) != hidden:
        raise fields.unsupported("word_embed_proj_dim", "embeddings of another width than layers")


def _mla(fields: Fields) -> Mla | None:
    kv_rank = fields.maybe(("kv_lora_rank",))
    if kv_rank is None:
        return None
    return Mla(
        q_rank=fields.maybe(("q_lora_rank",)),
        kv_rank=kv_rank,
        rope_head_dim=fields.count(("qk_rope_head_dim",)),
        nope_head_dim=fields.count(("qk_nope_head_dim",)),
        value_head_dim=fields.count(("v_head_dim",)),
    )


def _kv_heads(fields: Fields, heads: int) -> int:
    multi_query = fields.model_type in _MULTI_QUERY and fields.flag(("multi_query",), True)
    if multi_query and not fields.flag(("new_decoder_architecture",), False):
        return 1
    kv_heads = fields.maybe(_KV_HEADS) or heads
    if heads % kv_heads:
        raise fields.wrong(fields.given(_KV_HEADS), f"a divisor of the {heads} heads", kv_heads)
    return kv_heads


def _head_dim(fields: Fields, hidden: int, heads: int) -> int:
    head_dim = fields.maybe(("head_dim",))
    if head_dim is None and hidden % heads:
        raise fields.wrong(fields.given(_HEADS), f"a divisor of the width {hidden}", heads)
    return head_dim or hidden // heads


def _ffn(fields: Fields, family: ModelFamily, hidden: int) -> int:
    ffn = fields.maybe(("moe_intermediate_size", *_FFN))
    if ffn is None and family.gated:
        raise fields.missing(_FFN)
    return ffn or hidden * (fields.maybe(("expansion_ratio",)) or 4)


def _attention_bias(fields: Fields, family: ModelFamily) -> bool:
    return fields.flag(_BIAS, family.bias and not fields.flag(("no_bias",), False))


def _learned_positions(fields: Fields, family: ModelFamily, context: int | None) -> int:
    rotary = fields.flag(("attn_config.alibi",), False) or fields.flag(("attn_config.rope",), False)
    if family.positions is None or rotary or not fields.flag(("learned_pos_emb",), True):
        return 0
    if context is None:
        raise fields.missing(_CONTEXT)
    return context + family.positions


def _with_experts(fields: Fields, shape: ModelShape) -> ModelShape:
    experts = fields.maybe(_EXPERTS, least=0)
    if not experts:
        # A dense model of a mixture's type: its width is the one of its dense layers.
        return replace(shape, ffn=fields.maybe(_FFN) or shape.ffn)
    top, dense_layers = fields.count(_TOP), _dense_layers(fields)
    moe_every = fields.maybe(_MOE_EVERY) or 1
    if top > experts:
        raise fields.wrong(fields.given(_TOP), f"at most the {experts} experts", top)
    if dense_layers + moe_every > shape.layers:
        expected = f"more than the {dense_layers + moe_every - 1} layers before the first mixture"
        raise fields.wrong(fields.given(_LAYERS), expected, shape.layers)
    some_dense = dense_layers > 0 or moe_every > 1
    shared_ffn = fields.maybe(("shared_expert_intermediate_size",))
    always = 1 if shared_ffn or fields.model_type == "llama4_text" else 0
    return replace(
        shape,
        experts=experts,
        experts_per_token=top,
        shared_experts=fields.maybe(("n_shared_experts",), least=0) or always,
        shared_ffn=shared_ffn,
        dense_layers=dense_layers,
        moe_every=moe_every,
        dense_ffn=fields.count(("intermediate_size_mlp", *_FFN)) if some_dense else None,
    )


def _dense_layers(fields: Fields) -> int:
    """Return how many first layers have no experts; no other pattern can be held."""
    if (fields.maybe(("moe_layer_freq",)) or 1) != 1:
        raise fields.unsupported("moe_layer_freq", "mixtures in some of its later layers only")
    listed = fields.get("mlp_only_layers")
    if listed is not None and not isinstance(listed, list):
        raise fields.wrong("mlp_only_layers", "a list", listed)
    dense = cast(list[object], listed or [])
    if dense != list(range(len(dense))):
        raise fields.unsupported("mlp_only_layers", "dense layers between mixtures")
    return len(dense) or fields.maybe(("first_k_dense_replace",), least=0) or 0
