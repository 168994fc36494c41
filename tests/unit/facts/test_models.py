"""The model rows: they read, they are named once, and their sizes are the published ones."""

import re
from pathlib import Path

import msgspec
import pytest
import tomli
from msgspec import Struct

import tenfold
from tenfold.model.facts.fact import spelling
from tenfold.model.facts.shape import Mla, ModelPreset, ModelShape

FILE = Path(tenfold.__file__).parent / "facts" / "data" / "models.toml"
ROWS = tomli.loads(FILE.read_text("ascii"))["model"]
PRESETS = [msgspec.convert(row, ModelPreset) for row in ROWS]
MIXTURES = [preset for preset in PRESETS if preset.shape.experts]
BY_SPELLING = {
    spelling(name): preset for preset in PRESETS for name in (preset.name, *preset.aliases)
}

# Every model name of the published throughput tables that names one model.
PUBLISHED = """
1T|22B|BLOOM-176B|DeepSeekV3|DeepSeekV3 (dropless)|DeepSeekV3 (tokendrop)|DeepSeekV3 (w/o MTP)
GPT OSS 120B|GPT-1.7B|GPT-1024B|GPT-128B|GPT-145B|GPT-16B|GPT-18B|GPT-1T|GPT-256B|GPT-291B
GPT-3.6B|GPT-32B|GPT-39B|GPT-512B|GPT-530B|GPT-64B|GPT-7.5B|GPT-76B|GPT2-1B|GPT2-4B|GPT2-8B
GPT3-175B|GPT3-20B|GPT3-5B|Kimi_K2|LLAMA2-70B|LLAMA2-7B|LLAMA3-405B|LLAMA3-70B|LLAMA3-8B
LLAMA3.1_405B|LLAMA3_70B|LLAMA3_8B|MPT-125m|MPT-13b|MPT-1b|MPT-30b|MPT-350m|MPT-3b|MPT-70b
MPT-760m|MPT-7b|MT-NLG-530B|Nemotron-22B|Nemotron-8B|OPT-175B|Qwen3_235B_a22B
Qwen3_235B_a22B (tokendrop)|Qwen3_30B_a3B|Mixtral 8x7B|LLaMA v3.1 70B|Llama 3.3 70B
Llama 3.1 405B|LLaMA v3 70B|LLaMA v3.1 8B|LLaMA 7B|Mistral 7B|Mixtral 8x22B|GPT-J 6B|LLaMA 70B
Falcon 180B|Qwen3 235B A22B|Qwen3 30B A3B|LLaMA v3.1 405B|LLaMA 3.1 70B|LLaMA 3.1 8B
Llama 4 Scout|Qwen3-235B-A22B|GPT-OSS 120B|GPT-OSS 20B|LLaMA v3.3 70B|deepseek-ai/DeepSeek-V3
Qwen3-30B-A3B|Deepseek R1 0528|Llama 4 Maverick|LLaMA v4 Maverick|deepseek-ai/DeepSeek-R1
MiniMaxAI/MiniMax-M2.5|moonshotai/Kimi-K2.5|Qwen/Qwen3-235B-A22B-FP8
""".strip().replace("\n", "|")


def unknown_keys(row: object, struct: type[Struct]) -> set[str]:
    assert isinstance(row, dict)
    return set(row) - set(struct.__struct_fields__)


def named(preset: ModelPreset) -> str:
    return preset.name


def test_no_row_has_a_key_that_means_nothing():
    for row in ROWS:
        assert unknown_keys(row, ModelPreset) == set(), row["name"]
        assert unknown_keys(row["shape"], ModelShape) == set(), row["name"]
        assert unknown_keys(row["shape"].get("mla", {}), Mla) == set(), row["name"]


def test_every_row_says_where_and_when_it_was_published():
    for preset in PRESETS:
        assert preset.source, preset.name
        assert re.fullmatch(r"\d{4}-\d{2}(-\d{2})?", preset.date), preset.name
        assert preset.evidence == "published" or "surrogate" in preset.source, preset.name
        assert set(preset.assumed) <= set(ModelPreset.__struct_fields__), preset.name


def test_no_spelling_names_two_models():
    names = [spelling(name) for preset in PRESETS for name in (preset.name, *preset.aliases)]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []


@pytest.mark.parametrize(
    ("small", "large"),
    [("OPT-1.3B", "OPT-13B"), ("GPT-3 1.3B", "GPT-3 13B"), ("Command R", "Command R+")],
)
def test_names_that_differ_by_a_mark_are_two_models(small: str, large: str):
    """Folding the point away would give a model ten times too large."""
    assert BY_SPELLING[spelling(small)].params_b < BY_SPELLING[spelling(large)].params_b / 2


@pytest.mark.parametrize("name", PUBLISHED.split("|"))
def test_every_model_of_the_published_tables_is_known(name: str):
    assert spelling(name) in BY_SPELLING


@pytest.mark.parametrize("preset", PRESETS, ids=named)
def test_a_shape_has_as_many_weights_as_its_authors_state(preset: ModelPreset):
    assert preset.shape.params == pytest.approx(preset.params_b * 1e9, rel=0.01)


@pytest.mark.parametrize("preset", MIXTURES, ids=named)
def test_a_mixture_activates_as_many_weights_as_its_authors_state(preset: ModelPreset):
    """Authors count two, one or none of the embedding tables as active: any of these may match."""
    table = preset.shape.vocab * preset.shape.hidden
    counts = [preset.shape.params_active - tables * table for tables in range(3)]
    assert preset.params_active_b is not None
    assert min(abs(count / preset.params_active_b / 1e9 - 1) for count in counts) < 0.02


def test_only_mixtures_state_active_weights():
    assert [preset.name for preset in PRESETS if preset.params_active_b is not None] == [
        preset.name for preset in MIXTURES
    ]


def test_heads_share_keys_and_values_evenly():
    for preset in PRESETS:
        assert preset.shape.heads % preset.shape.kv_heads == 0, preset.name


@pytest.mark.parametrize(
    ("name", "kv_bytes"),
    [("Llama 2 7B", 524_288), ("Llama 3 70B", 327_680), ("DeepSeek V3", 70_272)],
)
def test_the_cache_of_one_token_has_the_published_size(name: str, kv_bytes: int):
    assert BY_SPELLING[spelling(name)].shape.kv_bytes_per_token == kv_bytes
