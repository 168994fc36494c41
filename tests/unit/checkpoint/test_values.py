"""Which values a checkpoint holds, bit for bit, and which it refuses."""

import random
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest

from checkpoint_builders import same, there_and_back
from tenfold.checkpoint import CheckpointError, load, random_states, restore_random, save
from tenfold.checkpoint.errors import Damaged
from tenfold.checkpoint.values import rebuild


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -(2**200),
        "snow \N{SNOWMAN} \ud800",
        b"",
        -0.0,
        5e-324,
        float("inf"),
        [],
        {},
        (),
        {1: "a", "1": "b", None: "c", (1, "x"): [(), [[]]]},
        np.zeros((0, 3), "<f4"),
        np.array(5, ">i8"),
        np.float16(1.5),
        np.bool_(True),
        np.arange(24.0).reshape(2, 3, 4)[:, ::2, ::-1],
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(["", "ab"]),
        np.array(["2026-01-01"], "M8[ns]"),
        np.array([1 + 2j]),
        np.zeros(3, "V5"),
    ],
    ids=repr,
)
def test_a_value_comes_back_as_it_was(value: object):
    assert same(there_and_back(value), value)


def test_keys_that_are_equal_but_of_other_types_keep_their_types():
    found = there_and_back({0: "int", 1.5: "float"})
    assert [type(key) for key in found] == [int, float]


def test_a_subclass_comes_back_as_the_plain_type():
    found = there_and_back(OrderedDict(b=1, a=bytearray(b"x")))
    assert type(found) is dict
    assert list(found.items()) == [("b", 1), ("a", b"x")]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [object()]}, r"values\['a'\]\[0\] is a `object`"),
        ({"a": np.array([None])}, "numpy value of type `object`"),
        ({"a": np.zeros(2, [("x", "i4")])}, "numpy value of type"),
        ({"a": np.ma.masked_array([1])}, "MaskedArray"),
        ({object(): 1}, "a key of values is a `object`"),
        ({1, 2}, "a `set`"),
    ],
)
def test_what_cannot_be_held_is_refused_by_its_place(value: object, says: str):
    with pytest.raises(CheckpointError, match=says) as caught:
        there_and_back(value)
    assert caught.value.code == "checkpoint-cannot-store"


def test_a_value_that_holds_itself_is_refused():
    ring: list[object] = []
    ring.append(ring)
    with pytest.raises(CheckpointError) as caught:
        there_and_back(ring)
    assert caught.value.code == "checkpoint-too-deep"


@pytest.mark.parametrize(
    "tree",
    [
        1.5,
        {"pickle": "x"},
        {"int": "zz"},
        {"dict": [[1]]},
        {"dict": [[[], 1]]},
        {"leaf": {"kind": "bytes", "bytes": 99}},
        {"leaf": {"kind": "bytes", "bytes": -1}},
        {"leaf": {"kind": "array", "dtype": "|O", "shape": [1], "bytes": 8}},
        {"leaf": {"kind": "array", "dtype": "<f8", "shape": [1 << 60], "bytes": 8}},
        {"leaf": {"kind": "array", "dtype": "(2,)i4", "shape": [1], "bytes": 8}},
        {"leaf": {"kind": "array", "dtype": "{", "shape": [1], "bytes": 8}},
        {"leaf": {"kind": "array", "dtype": "<f8", "shape": "3", "bytes": 8}},
        {"leaf": {"kind": "code", "bytes": 8}},
    ],
    ids=str,
)
def test_a_tree_that_nobody_wrote_is_damage_and_not_a_crash(tree: object):
    with pytest.raises(Damaged):
        rebuild(tree, lambda memory: None, lambda: 16)


def test_random_draws_go_on_where_they_stood():
    generator = np.random.default_rng(4)
    kept = there_and_back({"all": random_states(), "own": generator.bit_generator.state})
    drawn = random.getrandbits(60), np.random.rand(), generator.random()
    restore_random(kept["all"])
    generator.bit_generator.state = kept["own"]
    assert drawn == (random.getrandbits(60), np.random.rand(), generator.random())


def test_a_checkpoint_that_needs_a_library_says_which(tmp_path: Path, monkeypatch):
    save(tmp_path, 1, np.zeros(3))

    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("tenfold.checkpoint.arrays.import_module", absent)
    with pytest.raises(CheckpointError, match="numpy, which is not installed") as caught:
        load(tmp_path)
    assert caught.value.code == "checkpoint-needs-library"
