"""Bad configs: each is refused in one sentence that names the file and the key."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tenfold.files.models.hf_config import SIZE_MAX_BYTES, read_hf_config, shape_from_hf
from tenfold.model.errors import InputError

Config = dict[str, object]

LLAMA: Config = {
    "model_type": "llama",
    "num_hidden_layers": 32,
    "hidden_size": 4096,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
MIXTURE: Config = LLAMA | {"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2}
OPT: Config = LLAMA | {"model_type": "opt", "max_position_embeddings": 2048}
MPT: Config = LLAMA | {"model_type": "mpt", "max_seq_len": 2048}
GPT2: Config = LLAMA | {"model_type": "gpt2"}


def without(key: str) -> Config:
    return {other: value for other, value in LLAMA.items() if other != key}


BAD_VALUES: list[tuple[Config, str, str]] = [
    (without("model_type"), "missing-key", "model_type"),
    (without("num_hidden_layers"), "missing-key", "num_hidden_layers"),
    (without("intermediate_size"), "missing-key", "intermediate_size"),
    (without("vocab_size"), "missing-key", "vocab_size"),
    (LLAMA | {"model_type": 3}, "wrong-type", "model_type"),
    (LLAMA | {"model_type": "mamba"}, "unsupported-model", "model_type"),
    (LLAMA | {"model_type": "t5"}, "unsupported-model", "model_type"),
    (LLAMA | {"hidden_size": "4096"}, "wrong-type", "hidden_size"),
    (LLAMA | {"hidden_size": 4096.0}, "wrong-type", "hidden_size"),
    (LLAMA | {"hidden_size": True}, "wrong-type", "hidden_size"),
    (LLAMA | {"num_hidden_layers": -32}, "wrong-type", "num_hidden_layers"),
    (LLAMA | {"num_hidden_layers": 0}, "wrong-type", "num_hidden_layers"),
    (LLAMA | {"vocab_size": 10**30}, "wrong-type", "vocab_size"),
    (LLAMA | {"num_attention_heads": 33}, "wrong-type", "num_key_value_heads"),
    (LLAMA | {"num_key_value_heads": 5}, "wrong-type", "num_key_value_heads"),
    (
        without("num_key_value_heads") | {"num_attention_heads": 33},
        "wrong-type",
        "num_attention_heads",
    ),
    (LLAMA | {"tie_word_embeddings": "no"}, "wrong-type", "tie_word_embeddings"),
    (LLAMA | {"text_config": [1]}, "wrong-type", "text_config"),
    (LLAMA | {"is_encoder_decoder": True}, "unsupported-model", "is_encoder_decoder"),
    (LLAMA | {"num_experts": 8}, "missing-key", "num_experts_per_tok"),
    (LLAMA | {"kv_lora_rank": 512}, "missing-key", "qk_rope_head_dim"),
    (
        OPT | {"word_embed_proj_dim": 512},
        "unsupported-model",
        "word_embed_proj_dim",
    ),
    (MIXTURE | {"num_experts_per_tok": 9}, "wrong-type", "num_experts_per_tok"),
    (LLAMA | {"num_experts": 8, "experts_per_token": 9}, "wrong-type", "experts_per_token"),
    (MIXTURE | {"first_k_dense_replace": 32}, "wrong-type", "num_hidden_layers"),
    (MIXTURE | {"moe_layer_freq": 2}, "unsupported-model", "moe_layer_freq"),
    (MIXTURE | {"mlp_only_layers": [5]}, "unsupported-model", "mlp_only_layers"),
    (MIXTURE | {"mlp_only_layers": 5}, "wrong-type", "mlp_only_layers"),
    (MPT | {"attn_config": "alibi"}, "wrong-type", "attn_config"),
    (GPT2 | {"n_positions": None}, "missing-key", "max_position_embeddings"),
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
    (holding(json.dumps(LLAMA).encode("utf-16")), "not-utf-8"),
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
