"""Erasure coding of stripes with ISA-L through pyeclib.

A fragment is a header of the library and a chunk. The code is systematic: the chunks of the data
fragments are the stripe itself, which `_checked_driver` verifies before the first use.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tenfold.model.errors import InputError
from tenfold.objects.blobs.checksum import crc32c
from tenfold.objects.blobs.layout import Coding
from tenfold.objects.blobs.refs import Bytes
from tenfold.objects.blobs.trailer import DamagedShard

FRAGMENT_HEADER_BYTES = 80


def encode_stripe(coding: Coding, stripe: Bytes) -> list[bytes]:
    """Return the fragments of a stripe, data shards first."""
    padded = coding.chunk_of(len(stripe)) * coding.data_shards
    return _encoded(_driver(coding.data_shards, coding.parity_shards), stripe, padded)


def decode_stripe(
    coding: Coding, fragments: Mapping[int, bytes], stripe_bytes: int, expected_crc32c: int
) -> bytes:
    """Return a stripe from any `data_shards` of its fragments, verified.

    Each fragment must have been verified for its index: the library trusts what it is given.
    """
    chosen = [fragments[index] for index in sorted(fragments)][: coding.data_shards]
    driver = _driver(coding.data_shards, coding.parity_shards)
    stripe = bytes(driver.decode(chosen))[:stripe_bytes]
    if len(stripe) != stripe_bytes or crc32c(stripe) != expected_crc32c:
        raise DamagedShard("the decoded stripe does not match its checksum")
    return stripe


def _encoded(driver: Any, stripe: Bytes, padded_bytes: int) -> list[bytes]:
    data = bytes(stripe)
    return list(driver.encode(data.ljust(padded_bytes, b"\0")))


@lru_cache
def _driver(data_shards: int, parity_shards: int) -> Any:
    try:
        from pyeclib.ec_iface import ECDriver  # noqa: PLC0415 - Only erasure-coded tiers need it.
    except ImportError as error:
        raise InputError(
            "objects-extra-missing",
            f"erasure coding {data_shards}+{parity_shards} needs the package pyeclib",
            "install it with `pip install 'tenfold[objects]'`, or use `replicas`",
        ) from error
    driver = ECDriver(k=data_shards, m=parity_shards, ec_type="isa_l_rs_cauchy")
    _check_systematic(driver, data_shards)
    return driver


def _check_systematic(driver: Any, data_shards: int) -> None:
    sample = bytes(range(64)) * data_shards
    fragments = _encoded(driver, sample, len(sample))
    chunks = b"".join(one[FRAGMENT_HEADER_BYTES:] for one in fragments[:data_shards])
    assert chunks == sample, "the coding library changed its fragments"
