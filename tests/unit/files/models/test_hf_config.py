"""Configs as HuggingFace writes them, against the shapes that the fact files give."""

import json
from pathlib import Path

import msgspec
import pytest
import tomli
from msgspec.structs import replace

import tenfold
from tenfold.files.models.hf_config import read_hf_config, shape_from_hf
from tenfold.model.errors import InputError
from tenfold.model.facts.shape import ModelPreset

FACTS = Path(tenfold.__file__).parent / "facts" / "data" / "models.toml"
SHAPES = {
    preset.name: preset.shape
    for preset in msgspec.convert(tomli.loads(FACTS.read_text())["model"], list[ModelPreset])
}

Config = dict[str, object]


def llama(model_type: str, sizes: tuple[int, ...], context: int, **more: object) -> Config:
    """A config in the keys that most model types share; without `kv_heads` that key is null."""
    layers, hidden, heads, kv_heads, ffn, vocab = sizes
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads or None,
        "intermediate_size": ffn,
        "vocab_size": vocab,
        "max_position_embeddings": context,
        **more,
    }


def deepseek(model_type: str, sizes: tuple[int, ...], context: int, **more: object) -> Config:
    """A config with latent attention and fine-grained experts."""
    mla = {
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_rope_head_dim": 64,
        "qk_nope_head_dim": 128,
        "v_head_dim": 128,
        "moe_layer_freq": 1,
    }
    return {**llama(model_type, sizes, context), **mla, **more}


LLAMA_8B = llama(
    "llama",
    (32, 4096, 32, 8, 14336, 128256),
    8192,
    tie_word_embeddings=False,
    rope_theta=500000.0,
)

CONFIGS: dict[str, Config] = {
    "GPT-2 1.5B": {
        "model_type": "gpt2",
        "n_layer": 48,
        "n_embd": 1600,
        "n_head": 25,
        "n_inner": None,
        "n_positions": 1024,
        "vocab_size": 50257,
    },
    "OPT 6.7B": {
        "model_type": "opt",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "word_embed_proj_dim": 4096,
        "num_attention_heads": 32,
        "ffn_dim": 16384,
        "vocab_size": 50272,
        "max_position_embeddings": 2048,
    },
    "BLOOM 176B": {
        "model_type": "bloom",
        "n_layer": 70,
        "n_embed": 14336,
        "num_attention_heads": 112,
        "vocab_size": 250880,
    },
    "GPT-NeoX 20B": llama("gpt_neox", (44, 6144, 64, 0, 24576, 50432), 2048),
    "GPT-J 6B": {
        "model_type": "gptj",
        "n_layer": 28,
        "n_embd": 4096,
        "n_head": 16,
        "n_inner": None,
        "vocab_size": 50400,
        "n_positions": 2048,
        "tie_word_embeddings": False,
    },
    "Falcon 7B": {
        "model_type": "falcon",
        "num_hidden_layers": 32,
        "hidden_size": 4544,
        "num_attention_heads": 71,
        "num_kv_heads": 71,
        "multi_query": True,
        "new_decoder_architecture": False,
        "bias": False,
        "vocab_size": 65024,
    },
    "Falcon 40B": {
        "model_type": "RefinedWeb",
        "n_layer": 60,
        "hidden_size": 8192,
        "n_head": 128,
        "n_head_kv": 8,
        "new_decoder_architecture": True,
        "bias": False,
        "vocab_size": 65024,
    },
    "MPT 7B": {
        "model_type": "mpt",
        "n_layers": 32,
        "d_model": 4096,
        "n_heads": 32,
        "expansion_ratio": 4,
        "attn_config": {"alibi": True},
        "no_bias": True,
        "max_seq_len": 2048,
        "vocab_size": 50432,
    },
    "MPT 125M": {
        "model_type": "mpt",
        "n_layers": 12,
        "d_model": 768,
        "n_heads": 12,
        "expansion_ratio": 4,
        "attn_config": {"alibi": False},
        "max_seq_len": 2048,
        "vocab_size": 50368,
    },
    "DBRX": {
        "model_type": "dbrx",
        "n_layers": 40,
        "d_model": 6144,
        "n_heads": 48,
        "attn_config": {"kv_n_heads": 8},
        "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
        "max_seq_len": 32768,
        "vocab_size": 100352,
        "tie_word_embeddings": False,
    },
    "Llama 3 8B": LLAMA_8B,
    "Llama 3.2 1B": llama(
        "llama",
        (16, 2048, 32, 8, 8192, 128256),
        131072,
        head_dim=64,
        tie_word_embeddings=True,
        attention_bias=False,
    ),
    "LLaMA 7B": llama("llama", (32, 4096, 32, 32, 11008, 32000), 2048),
    "Mistral Nemo 12B": llama("mistral", (40, 5120, 32, 8, 14336, 131072), 131072, head_dim=128),
    "Mixtral 8x7B": llama(
        "mixtral",
        (32, 4096, 32, 8, 14336, 32000),
        32768,
        num_local_experts=8,
        num_experts_per_tok=2,
    ),
    "Qwen2.5 0.5B": llama("qwen2", (24, 896, 14, 2, 4864, 151936), 32768, tie_word_embeddings=True),
    "Qwen2 57B-A14B": llama(
        "qwen2_moe",
        (28, 3584, 28, 4, 18944, 151936),
        131072,
        num_experts=64,
        num_experts_per_tok=8,
        moe_intermediate_size=2560,
        shared_expert_intermediate_size=20480,
        decoder_sparse_step=1,
    ),
    "Qwen3 30B-A3B": llama(
        "qwen3_moe",
        (48, 2048, 32, 4, 6144, 151936),
        40960,
        head_dim=128,
        num_experts=128,
        num_experts_per_tok=8,
        moe_intermediate_size=768,
        mlp_only_layers=[],
        attention_bias=False,
    ),
    "DeepSeek V2 Lite": deepseek(
        "deepseek_v2",
        (27, 2048, 16, 16, 10944, 102400),
        163840,
        q_lora_rank=None,
        n_routed_experts=64,
        num_experts_per_tok=6,
        n_shared_experts=2,
        moe_intermediate_size=1408,
        first_k_dense_replace=1,
    ),
    "DeepSeek V3": deepseek(
        "deepseek_v3",
        (61, 7168, 128, 128, 18432, 129280),
        163840,
        n_routed_experts=256,
        num_experts_per_tok=8,
        n_shared_experts=1,
        moe_intermediate_size=2048,
        first_k_dense_replace=3,
    ),
    "Kimi K2": {
        "model_type": "kimi_k25",
        "text_config": deepseek(
            "kimi_k2",
            (61, 7168, 64, 64, 18432, 163840),
            131072,
            n_routed_experts=384,
            num_experts_per_tok=8,
            n_shared_experts=1,
            moe_intermediate_size=2048,
            first_k_dense_replace=1,
        ),
    },
    "GLM-4.5": llama(
        "glm4_moe",
        (92, 5120, 96, 8, 12288, 151552),
        131072,
        head_dim=128,
        attention_bias=True,
        n_routed_experts=160,
        num_experts_per_tok=8,
        n_shared_experts=1,
        moe_intermediate_size=1536,
        first_k_dense_replace=3,
    ),
    "GPT-OSS 20B": llama(
        "gpt_oss",
        (24, 2880, 64, 8, 2880, 201088),
        131072,
        head_dim=64,
        num_local_experts=32,
        experts_per_token=4,
    ),
    "Llama 4 Maverick": {
        "model_type": "llama4",
        "tie_word_embeddings": False,
        "vision_config": {"model_type": "llama4_vision_model", "hidden_size": 1408},
        "text_config": llama(
            "llama4_text",
            (48, 5120, 40, 8, 8192, 202048),
            1048576,
            head_dim=128,
            intermediate_size_mlp=16384,
            interleave_moe_layer_step=2,
            num_local_experts=128,
            num_experts_per_tok=1,
        ),
    },
    "Gemma 3 4B": {
        "model_type": "gemma3",
        "text_config": {"num_hidden_layers": 34, "hidden_size": 2560, "intermediate_size": 10240},
    },
    "Gemma 2 27B": llama("gemma2", (46, 4608, 32, 16, 36864, 256000), 8192, head_dim=128),
    "Phi-2": llama("phi", (32, 2560, 32, 32, 10240, 51200), 2048),
    "Command R": llama("cohere", (40, 8192, 64, 64, 22528, 256000), 131072),
    "StarCoder2 7B": llama("starcoder2", (32, 4608, 36, 4, 18432, 49152), 16384, use_bias=True),
    "MiniMax M2": llama(
        "minimax_m2",
        (62, 3072, 48, 8, 1536, 200064),
        196608,
        head_dim=128,
        num_local_experts=256,
        num_experts_per_tok=8,
        shared_intermediate_size=0,
    ),
    "BERT large": llama("bert", (24, 1024, 16, 0, 4096, 30522), 512),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_reads_as_the_shape_of_its_model(name: str):
    read = shape_from_hf(CONFIGS[name], "config.json")
    norm = read.qk_norm if name.startswith("GLM") else SHAPES[name].qk_norm
    assert read == replace(SHAPES[name], rope_theta=read.rope_theta, qk_norm=norm)


@pytest.mark.parametrize(
    ("given", "theta"),
    [({}, 0.0), ({"rope_theta": 500000}, 5e5), ({"rope_parameters": {"rope_theta": 1e6}}, 1e6)],
)
def test_the_base_of_rotary_positions_is_read_or_unknown(given: Config, theta: float):
    config = {key: value for key, value in LLAMA_8B.items() if key != "rope_theta"} | given
    assert shape_from_hf(config, "config.json").rope_theta == theta
    with pytest.raises(InputError, match="rope_theta"):
        shape_from_hf(config | {"rope_theta": "large"}, "config.json")


def test_query_and_key_norms_follow_the_type_or_the_key():
    assert shape_from_hf(CONFIGS["Qwen3 30B-A3B"], "config.json").qk_norm
    assert not shape_from_hf(LLAMA_8B, "config.json").qk_norm
    assert shape_from_hf(CONFIGS["GLM-4.5"] | {"use_qk_norm": True}, "config.json").qk_norm


def test_a_file_reads_like_its_values(tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B))
    assert read_hf_config(path) == SHAPES["Llama 3 8B"]


def test_a_dense_model_of_a_mixture_type_has_its_dense_width():
    config = CONFIGS["Qwen3 30B-A3B"] | {"num_experts": 0}
    assert shape_from_hf(config, "config.json").ffn == 6144


def test_first_layers_may_be_listed_as_dense():
    config = CONFIGS["Qwen3 30B-A3B"] | {"mlp_only_layers": [0, 1]}
    shape = shape_from_hf(config, "config.json")
    assert (shape.dense_layers, shape.dense_ffn, shape.moe_layers) == (2, 6144, 46)


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B), encoding="utf-8-sig")
    assert read_hf_config(path) == SHAPES["Llama 3 8B"]
