from hypothesis import given
from hypothesis import strategies as st

from tenfold.gateway.route.prefix import SHORTEST_BYTES, PrefixIndex, prefix_keys


def test_a_conversation_that_grows_finds_its_replica():
    index = PrefixIndex()
    first, longer = b"a" * 3_000, b"a" * 3_000 + b"b" * 9_000
    index.note(prefix_keys(first), "one")
    assert index.find(prefix_keys(longer)) == ("one", 2_048)
    index.note(prefix_keys(longer), "two")
    assert index.find(prefix_keys(longer + b"c")) == ("two", 8_192)


@given(st.binary(max_size=2_000), st.binary(max_size=500))
def test_keys_of_a_beginning_are_the_first_keys_of_the_whole(text: bytes, rest: bytes):
    keys = prefix_keys(text)
    assert prefix_keys(text + rest)[: len(keys)] == keys
    assert (len(text) < SHORTEST_BYTES) == (not keys)


def test_the_oldest_are_forgotten():
    index = PrefixIndex(entries_max=3)
    for number in range(10):
        index.note((number,), str(number))
    assert len(index) == 3
    assert index.find((9,)) is not None
    assert index.find((0,)) is None
