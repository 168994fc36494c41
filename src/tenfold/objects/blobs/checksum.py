"""CRC32C, which every block, shard and blob carries."""

from typing import Any

from tenfold.model.errors import InputError

_checksums: Any
try:
    from awscrt import checksums as _checksums
except ImportError:
    _checksums = None


def crc32c(data: bytes | bytearray | memoryview, before: int = 0) -> int:
    """Return the CRC32C of the data that follows data with the CRC32C `before`."""
    if _checksums is None:
        raise InputError(
            "objects-extra-missing",
            "storage tiers need the package awscrt",
            "install it with `pip install 'tenfold[objects]'`",
        )
    return _checksums.crc32c(data, before)
