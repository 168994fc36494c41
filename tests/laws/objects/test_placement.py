"""Laws of placement: no domain holds more than may be lost, and growth moves what it must."""

from collections import Counter
from hashlib import blake2b

from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold.objects.blobs.placement import Site, choose, substitutes

BLOBS = [blake2b(b"%d" % number, digest_size=16).hexdigest() for number in range(3000)]

sites = st.lists(
    st.tuples(st.integers(0, 7), st.floats(0.1, 10, allow_nan=False)), min_size=1, max_size=16
).map(
    lambda rows: [
        Site(f"b{number}", f"d{domain}", weight) for number, (domain, weight) in enumerate(rows)
    ]
)


@settings(max_examples=300)
@given(sites, st.integers(1, 8), st.integers(0, 4), st.sampled_from(BLOBS))
def test_no_domain_holds_more_shards_than_may_be_lost(
    among: list[Site], data_shards: int, parity_shards: int, blob: str
):
    count, limit = data_shards + parity_shards, max(1, parity_shards)
    chosen = choose(blob, count, among, limit)
    assert len(chosen) == len(set(chosen))
    held = Counter(site.domain for site in among if site.name in chosen)
    assert all(number <= limit for number in held.values())
    sizes = Counter(site.domain for site in among)
    assert len(chosen) == min(count, sum(min(number, limit) for number in sizes.values()))
    for name in substitutes(blob, among, chosen, limit):
        more = Counter(site.domain for site in among if site.name in (*chosen, name))
        assert all(number <= limit for number in more.values())


@settings(max_examples=100)
@given(sites, st.integers(1, 6), st.randoms(use_true_random=False), st.sampled_from(BLOBS))
def test_the_order_of_the_backends_does_not_matter(among, count, order, blob):
    mixed = list(among)
    order.shuffle(mixed)
    assert choose(blob, count, mixed, 2) == choose(blob, count, among, 2)


@settings(max_examples=100)
@given(sites, st.integers(1, 8), st.sampled_from(BLOBS))
def test_shards_spread_over_as_many_domains_as_there_are(among, count, blob):
    """Unless a domain has too few backends for its part."""
    chosen = choose(blob, count, among, 4)
    sizes = Counter(site.domain for site in among)
    even = -(-count // len(sizes))
    held = Counter(site.domain for site in among if site.name in chosen)
    if len(chosen) == count and all(size >= even for size in sizes.values()):
        assert max(held.values()) <= even


@settings(max_examples=20, deadline=None)
@given(
    st.integers(8, 14),
    st.lists(st.floats(0.5, 4, allow_nan=False), min_size=15, max_size=15),
    st.integers(1, 6),
)
def test_a_new_backend_takes_its_share_and_nothing_else_moves(backends, weights, count):
    """Each backend is a domain. What moves goes to the new one; about its weight in the total."""
    before = [Site(f"b{number}", f"d{number}", weights[number]) for number in range(backends)]
    after = [*before, Site("new", "new", weights[14])]
    moved = 0
    for blob in BLOBS[:1000]:
        old, new = set(choose(blob, count, before, 1)), set(choose(blob, count, after, 1))
        assert new - old <= {"new"}
        moved += len(new - old)
    share = weights[14] / sum(site.weight for site in after)
    # A heavy backend wins less than `count` times its share: each blob takes it once at most.
    assert moved / (1000 * count) <= share * 1.25 + 0.02


def test_data_spreads_by_weight():
    among = [Site("a", "a", 1), Site("b", "b", 2), Site("c", "c", 1)]
    held = Counter(choose(blob, 1, among, 1)[0] for blob in BLOBS)
    assert abs(held["b"] / len(BLOBS) - 0.5) < 0.03
    assert abs(held["a"] / len(BLOBS) - 0.25) < 0.03


def test_a_backend_that_leaves_gives_its_shards_to_all_others():
    before = [Site(f"b{number}", f"d{number}") for number in range(10)]
    gained: Counter[str] = Counter()
    for blob in BLOBS:
        old, new = choose(blob, 3, before, 2), choose(blob, 3, before[1:], 2)
        assert set(old) - set(new) <= {"b0"}
        gained.update(set(new) - set(old))
    assert len(gained) == 9
    assert max(gained.values()) < 2 * min(gained.values())
