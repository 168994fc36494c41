"""Whatever stands in a config, the answer is a shape or one InputError."""

import json
from contextlib import suppress
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold.files.models.families import FAMILIES
from tenfold.files.models.hf_config import read_hf_config, shape_from_hf
from tenfold.model.errors import InputError
from tenfold.model.facts.shape import ModelShape

KEY_NAMES = """
model_type num_hidden_layers n_layer hidden_size n_embd d_model num_attention_heads n_head
num_key_value_heads num_kv_heads head_dim intermediate_size ffn_dim n_inner vocab_size
max_position_embeddings n_positions tie_word_embeddings attention_bias no_bias multi_query
new_decoder_architecture num_local_experts num_experts n_routed_experts num_experts_per_tok
n_shared_experts moe_intermediate_size shared_expert_intermediate_size moe_layer_freq
first_k_dense_replace mlp_only_layers decoder_sparse_step interleave_moe_layer_step
intermediate_size_mlp kv_lora_rank q_lora_rank qk_rope_head_dim qk_nope_head_dim v_head_dim
attn_config ffn_config text_config word_embed_proj_dim is_encoder_decoder expansion_ratio
"""
KEYS = KEY_NAMES.split()

GOOD: dict[str, object] = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 256,
    "vocab_size": 1000,
    "max_position_embeddings": 128,
}

# A short alphabet: a JSON text has few characters that could confuse its reader.
texts = st.text("aT0`.{\n\u00e9", max_size=6)
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-2, 64)
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | texts, inner, max_size=6)
    ),
    max_leaves=6,
)
types = st.sampled_from([*FAMILIES, "llama4", "gemma3"])
changes = st.dictionaries(st.sampled_from(KEYS), values, max_size=6)
mutated = st.builds(
    lambda model_type, change, dropped: {
        key: value
        for key, value in {**GOOD, "model_type": model_type, **change}.items()
        if key not in dropped
    },
    types,
    changes,
    st.sets(st.sampled_from(sorted(GOOD)), max_size=2),
)


def read(config: dict[str, object]) -> ModelShape | InputError:
    try:
        return shape_from_hf(config, "config.json")
    except InputError as error:
        return error


@given(mutated)
@settings(max_examples=500)
def test_a_mutated_config_is_a_sound_shape_or_one_input_error(config: dict[str, object]):
    answer = read(config)
    if isinstance(answer, InputError):
        assert answer.code
        assert answer.hint
        assert "config.json" in answer.message
    else:
        assert 0 < answer.params_active <= answer.params
        assert answer.heads % answer.kv_heads == 0
        assert 0 <= answer.moe_layers <= answer.layers


@given(mutated)
def test_a_nested_language_model_reads_like_a_bare_one(config: dict[str, object]):
    if not isinstance(config.get("text_config"), dict):
        bare = {key: value for key, value in config.items() if key != "text_config"}
        assert str(read({"text_config": bare})) == str(read(bare))


@given(st.binary(max_size=200) | values.map(lambda value: json.dumps(value).encode()), st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_bytes_are_a_shape_or_one_input_error(
    tmp_path: Path, content: bytes, data: st.DataObject
):
    text = json.dumps(data.draw(mutated)).encode()
    cut = data.draw(st.integers(0, len(text)))
    path = tmp_path / "config.json"
    path.write_bytes(text[:cut] + content + text[cut:])
    with suppress(InputError):
        assert isinstance(read_hf_config(path), ModelShape)
