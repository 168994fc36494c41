"""Spellings of stacks and accelerators, and the levels under which profiles are kept."""

import pytest

from tenfold.physics.training.catalog import resolve
from tenfold.physics.training.names import (
    family_of,
    generation_of,
    levels_of,
    stack_key,
    version_family,
)
from training_builders import CATALOGUE


@pytest.mark.parametrize(
    ("spelled", "key"),
    [
        ("Megatron-Bridge 26.04", "megatron-bridge-26.04"),
        ("  NeMo_24.07 ", "nemo-24.07"),
        ("MaxText/XLA", "maxtext-xla"),
        ("", ""),
    ],
)
def test_a_stack_has_one_spelling(spelled: str, key: str):
    assert stack_key(spelled) == key


def test_a_patch_performs_like_its_release():
    assert version_family("megatron-bridge-26.04.01") == "megatron-bridge-26.04"
    assert version_family("nemo-24.07") == "nemo-24.07"


def test_megatron_on_old_parts_is_another_family():
    assert family_of("megatron-lm", "A100-80G-SXM") == "megatron"
    assert family_of("megatron-lm", "H100-80G-SXM") == "megatron-core"
    assert family_of("megatron-deepspeed", "H100-80G-SXM") == "megatron-deepspeed"
    assert family_of("my-own-trainer", "H100-80G-SXM") == "default"


@pytest.mark.parametrize(
    ("part", "generation"),
    [
        ("V100-32G-SXM3", "volta"),
        ("A100-40G-SXM", "ampere"),
        ("H200-141G-SXM", "hopper"),
        ("GB200", "blackwell"),
        ("B300-SXM", "blackwell"),
        ("TPU-v5e", "tpu"),
        ("MI300X", "cdna"),
        ("Gaudi3", "other"),
    ],
)
def test_an_accelerator_has_a_generation(part: str, generation: str):
    assert generation_of(part) == generation


def test_levels_go_from_wide_to_narrow():
    assert levels_of("nemo-24.03.01", "H100-80G-SXM") == (
        "megatron-core",
        "megatron-core@hopper",
        "stack:nemo-24.03@hopper",
    )


def test_the_narrowest_known_profile_is_found_without_a_note():
    entry = resolve(CATALOGUE, "Megatron-Bridge 26.04", "H100-80G-SXM")
    assert entry.notes == ()
    assert entry.family == "megatron-core"


def test_an_unseen_version_falls_back_to_its_family_and_says_so():
    entry = resolve(CATALOGUE, "NeMo 99.01", "H100-80G-SXM")
    assert entry.notes == (
        "no known runs of `NeMo 99.01` on this accelerator: profile of `megatron-core@hopper` used",
    )


def test_what_is_less_known_is_less_sure():
    known = resolve(CATALOGUE, "NeMo 24.07", "H100-80G-SXM").start.sigma
    family = resolve(CATALOGUE, "NeMo 99.01", "H100-80G-SXM").start.sigma
    unknown = resolve(CATALOGUE, "my own", "H100-80G-SXM").start.sigma
    assert known.sum() < family.sum() < unknown.sum()


def test_an_unknown_family_has_no_neighbours_to_be_corrected_by():
    assert resolve(CATALOGUE, "my own", "H100-80G-SXM").start.anchors is None
    assert resolve(CATALOGUE, "NeMo 99.01", "H100-80G-SXM").start.anchors is not None
