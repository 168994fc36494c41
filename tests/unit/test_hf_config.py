"""Configs as HuggingFace writes them, against the shapes that the fact files give."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
import tomli

import tenfold
from tenfold.files.hf_config import SIZE_MAX_BYTES, read_hf_config, shape_from_hf
from tenfold.model.errors import InputError
from tenfold.model.shape import ModelPreset, ModelShape

FACTS = Path(tenfold.__file__).parent / "facts" / "data" / "models.toml"
SHAPES = {
    preset.name: preset.shape
    for preset in msgspec.convert(tomli.loads(FACTS.read_text())["model"], list[ModelPreset])
}

Config = dict[str, object]


def llama(model_type: str, sizes: tuple[int, ...], context: int, **more: object) -> Config:
    """A config in the keys that most model types since Llama share."""
    layers, hidden, heads, kv_heads, ffn, vocab = sizes
    return {
        "model_type": model_type,
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
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


LLAMA_8B = llama("llama", (32, 4096, 32, 8, 14336, 128256), 8192, tie_word_embeddings=False)

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
    "GPT-NeoX 20B": {
        "model_type": "gpt_neox",
        "num_hidden_layers": 44,
        "hidden_size": 6144,
        "num_attention_heads": 64,
        "intermediate_size": 24576,
        "vocab_size": 50432,
        "max_position_embeddings": 2048,
    },
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
    "Command R 35B": llama("cohere", (40, 8192, 64, 64, 22528, 256000), 131072),
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
    "BERT large": {
        "model_type": "bert",
        "num_hidden_layers": 24,
        "hidden_size": 1024,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "vocab_size": 30522,
        "max_position_embeddings": 512,
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_reads_as_the_shape_of_its_model(name: str):
    assert shape_from_hf(CONFIGS[name], "config.json") == SHAPES[name]


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


def without(key: str) -> Config:
    return {other: value for other, value in LLAMA_8B.items() if other != key}


BAD_VALUES: list[tuple[Config, str, str]] = [
    (without("model_type"), "missing-key", "model_type"),
    (without("num_hidden_layers"), "missing-key", "num_hidden_layers"),
    (without("intermediate_size"), "missing-key", "intermediate_size"),
    (without("vocab_size"), "missing-key", "vocab_size"),
    (LLAMA_8B | {"model_type": 3}, "wrong-type", "model_type"),
    (LLAMA_8B | {"model_type": "mamba"}, "unsupported-model", "model_type"),
    (LLAMA_8B | {"model_type": "t5"}, "unsupported-model", "model_type"),
    (LLAMA_8B | {"hidden_size": "4096"}, "wrong-type", "hidden_size"),
    (LLAMA_8B | {"hidden_size": 4096.0}, "wrong-type", "hidden_size"),
    (LLAMA_8B | {"hidden_size": True}, "wrong-type", "hidden_size"),
    (LLAMA_8B | {"num_hidden_layers": -32}, "wrong-type", "num_hidden_layers"),
    (LLAMA_8B | {"num_hidden_layers": 0}, "wrong-type", "num_hidden_layers"),
    (LLAMA_8B | {"vocab_size": 10**30}, "wrong-type", "vocab_size"),
    (LLAMA_8B | {"num_attention_heads": 33}, "wrong-type", "num_key_value_heads"),
    (LLAMA_8B | {"num_key_value_heads": 5}, "wrong-type", "num_key_value_heads"),
    (
        without("num_key_value_heads") | {"num_attention_heads": 33},
        "wrong-type",
        "num_attention_heads",
    ),
    (LLAMA_8B | {"tie_word_embeddings": "no"}, "wrong-type", "tie_word_embeddings"),
    (LLAMA_8B | {"text_config": [1]}, "wrong-type", "text_config"),
    (LLAMA_8B | {"is_encoder_decoder": True}, "unsupported-model", "is_encoder_decoder"),
    (LLAMA_8B | {"num_experts": 8}, "missing-key", "num_experts_per_tok"),
    (LLAMA_8B | {"kv_lora_rank": 512}, "missing-key", "qk_rope_head_dim"),
    (
        CONFIGS["OPT 6.7B"] | {"word_embed_proj_dim": 512},
        "unsupported-model",
        "word_embed_proj_dim",
    ),
    (CONFIGS["Mixtral 8x7B"] | {"num_experts_per_tok": 9}, "wrong-type", "num_experts_per_tok"),
    (CONFIGS["GPT-OSS 20B"] | {"experts_per_token": 99}, "wrong-type", "experts_per_token"),
    (CONFIGS["DeepSeek V3"] | {"first_k_dense_replace": 61}, "wrong-type", "num_hidden_layers"),
    (CONFIGS["DeepSeek V3"] | {"moe_layer_freq": 2}, "unsupported-model", "moe_layer_freq"),
    (CONFIGS["Qwen3 30B-A3B"] | {"mlp_only_layers": [5]}, "unsupported-model", "mlp_only_layers"),
    (CONFIGS["Qwen3 30B-A3B"] | {"mlp_only_layers": 5}, "wrong-type", "mlp_only_layers"),
    (CONFIGS["MPT 7B"] | {"attn_config": "alibi"}, "wrong-type", "attn_config"),
    (CONFIGS["GPT-2 1.5B"] | {"n_positions": None}, "missing-key", "max_position_embeddings"),
]


@pytest.mark.parametrize(("config", "code", "field"), BAD_VALUES)
def test_a_bad_value_is_named_with_its_file(config: Config, code: str, field: str):
    with pytest.raises(InputError) as caught:
        shape_from_hf(config, "some/config.json")
    error = caught.value
    assert (error.code, error.field, error.file) == (code, field, "some/config.json")
    assert "some/config.json" in error.message
    assert "\n" not in error.message
    assert error.hint


def directory(path: Path) -> None:
    path.mkdir()


def nothing(path: Path) -> None:
    assert not path.exists()


def holding(content: bytes) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        path.write_bytes(content)

    return write


def huge(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(SIZE_MAX_BYTES + 1)


BAD_FILES: list[tuple[Callable[[Path], None], str]] = [
    (directory, "is-a-directory"),
    (nothing, "no-such-file"),
    (huge, "file-too-large"),
    (holding(b""), "syntax"),
    (holding(b"{"), "syntax"),
    (holding(b"model_type = 'llama'"), "syntax"),
    (holding(b'{"model_type": "llama"} {}'), "syntax"),
    (holding(b'{"model_type": ' + b"[" * 100_000), "nested-too-deep"),
    (holding(b"[]"), "not-an-object"),
    (holding(b"null"), "not-an-object"),
    (holding(b"7"), "not-an-object"),
    (holding(b'{"model_type": "\xff"}'), "not-utf-8"),
    (holding(json.dumps(LLAMA_8B).encode("utf-16")), "not-utf-8"),
    (holding(b"{}"), "missing-key"),
]


@pytest.mark.parametrize(("make", "code"), BAD_FILES)
def test_a_bad_file_is_refused_in_one_sentence(
    tmp_path: Path, make: Callable[[Path], None], code: str
):
    path = tmp_path / "config.json"
    make(path)
    with pytest.raises(InputError) as caught:
        read_hf_config(path)
    assert caught.value.code == code
    assert caught.value.file == str(path)
    assert "\n" not in caught.value.message
    assert caught.value.hint


def test_a_file_without_permission_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Root may read everything, so the refusal is staged."""
    path = tmp_path / "config.json"
    path.write_text("{}")

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(InputError) as caught:
        read_hf_config(path)
    assert caught.value.code == "no-permission"


def test_a_device_is_refused_and_not_waited_for():
    with pytest.raises(InputError) as caught:
        read_hf_config(Path("/dev/zero"))
    assert caught.value.code == "unreadable-file"


def test_a_path_that_no_file_can_have_is_refused():
    with pytest.raises(InputError) as caught:
        read_hf_config(Path("config\0.json"))
    assert caught.value.code == "unreadable-file"


def test_a_file_too_large_is_taken_for_weights(tmp_path: Path):
    huge(tmp_path / "config.json")
    with pytest.raises(InputError) as caught:
        read_hf_config(tmp_path / "config.json")
    assert "weights" in caught.value.hint


def test_a_byte_order_mark_is_no_obstacle(tmp_path: Path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA_8B), encoding="utf-8-sig")
    assert isinstance(read_hf_config(path), ModelShape)
