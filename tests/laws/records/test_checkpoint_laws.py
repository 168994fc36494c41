"""What must hold for every value, every cut and every rotten bit."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.checkpoint_crashes import cut_power
from checkpoint_builders import FOLDER, same
from tenfold.checkpoint import How, load, save
from tests.rigs.forgetful import ForgetfulDisk

KINDS = ("<f4", ">f8", "<i2", "|b1", "|u1", "<c8", "<U3", "|S2")

arrays = st.builds(
    lambda kind, shape, seed: (
        np.random.default_rng(seed).integers(0, 9, shape).astype(np.dtype(kind))
    ),
    st.sampled_from(KINDS),
    st.lists(st.integers(0, 4), max_size=3).map(tuple),
    st.integers(0, 99),
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=40)
    | arrays
    | arrays.filter(lambda array: array.size).map(lambda array: array.reshape(-1)[0])
)
keys = st.text(max_size=5) | st.integers() | st.none() | st.tuples(st.integers(), st.text())
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
    ),
    max_leaves=12,
)


@given(values)
def test_every_value_comes_back_as_it_was(value: object):
    disk = ForgetfulDisk()
    save(FOLDER, 1, value, how=How(files=disk))
    found = load(FOLDER, files=disk)
    assert found is not None
    assert same(found.values, value)


@given(values, st.data())
def test_no_rotten_bit_gives_another_value(value: object, data: st.DataObject):
    disk = ForgetfulDisk()
    save(FOLDER, 1, "old", how=How(files=disk))
    path = save(FOLDER, 2, value, how=How(files=disk))
    file = path / data.draw(st.sampled_from(disk.names(path)))
    size = disk.size(file)
    if size:
        disk.rot(file, data.draw(st.integers(0, 8 * size - 1)))
    found = load(FOLDER, files=disk)
    assert found is not None
    # A bit in the space between two words of JSON means nothing; the values are as saved.
    assert same(found.values, "old") or same(found.values, value)


@settings(max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([1, 2]))
def test_no_power_cut_loses_what_was_acknowledged(seed: int, ranks: int):
    assert [cut.fault for cut in cut_power(seed, ranks) if cut.fault] == []
