"""Defaults of each HuggingFace model type for keys that its config leaves out.

The values are the defaults of the `transformers` library, not the commonest choice:
a key that is absent from a config.json has the library's value.
"""

from msgspec import Struct


class ModelFamily(Struct, frozen=True, kw_only=True):
    """Defaults of a model type for keys that its config leaves out.

    `positions` is how much longer the learned position table is than the context;
    None where positions are not learned.
    """

    gated: bool = True
    tied: bool = False
    bias: bool = False
    positions: int | None = None
    parallel: bool = False
    """Attention and feed-forward read the same input."""
    window: int = 0
    window_layers: tuple[int, int] = (0, 1)
    """How many layers of how many attend only to the window."""
    native_4bit_experts: bool = False
    qk_norm: bool = False


_GPT = ModelFamily(gated=False, tied=True, bias=True, positions=0)
_FALCON = ModelFamily(gated=False, tied=True, parallel=True)
_LLAMA = ModelFamily()
_GEMMA = ModelFamily(tied=True)
_QWEN2 = ModelFamily(bias=True)
_QWEN3 = ModelFamily(qk_norm=True)

FAMILIES = {
    "bert": _GPT,
    "bloom": ModelFamily(gated=False, tied=True, bias=True),
    "cohere": _GEMMA,
    "dbrx": _LLAMA,
    "deepseek": _LLAMA,
    "deepseek_v2": _LLAMA,
    "deepseek_v3": _LLAMA,
    "falcon": _FALCON,
    "gemma": _GEMMA,
    "gemma2": ModelFamily(tied=True, window=4096, window_layers=(1, 2)),
    "gemma3_text": ModelFamily(tied=True, window=1024, window_layers=(5, 6), qk_norm=True),
    "glm4_moe": _LLAMA,
    "gpt2": _GPT,
    "gpt_bigcode": _GPT,
    "gpt_neox": ModelFamily(gated=False, bias=True, parallel=True),
    "gpt_oss": ModelFamily(bias=True, window=128, window_layers=(1, 2), native_4bit_experts=True),
    "gptj": ModelFamily(gated=False, parallel=True),
    "granite": _LLAMA,
    "kimi_k2": _LLAMA,
    "llama": _LLAMA,
    "llama4_text": ModelFamily(window=8192, window_layers=(3, 4)),
    "minimax_m2": _LLAMA,
    "mistral": _LLAMA,
    "mixtral": _LLAMA,
    "mpt": _GPT,
    "nemotron": ModelFamily(gated=False),
    "olmo2": _QWEN3,
    "opt": ModelFamily(gated=False, tied=True, bias=True, positions=2),
    "phi": ModelFamily(gated=False, bias=True),
    "phi3": _LLAMA,
    "phimoe": _LLAMA,
    "qwen2": _QWEN2,
    "qwen2_moe": _QWEN2,
    "qwen3": _QWEN3,
    "qwen3_moe": _QWEN3,
    "RefinedWeb": _FALCON,
    "RefinedWebModel": _FALCON,
    "starcoder2": ModelFamily(gated=False, tied=True, bias=True),
}

# Released configs of these types leave out keys that equal the library's defaults.
DEFAULTS: dict[str, dict[str, object]] = {
    "bloom": {"seq_length": 2048},
    "falcon": {"max_position_embeddings": 2048},
    "gemma3_text": {
        "num_attention_heads": 8,
        "num_key_value_heads": 4,
        "head_dim": 256,
        "vocab_size": 262208,
        "max_position_embeddings": 131072,
    },
    "RefinedWeb": {"max_position_embeddings": 2048},
    "RefinedWebModel": {"max_position_embeddings": 2048},
}
