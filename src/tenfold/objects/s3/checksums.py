"""Checksums of objects and parts: of the body, of a multipart object, and in headers."""

import hashlib
import zlib
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Protocol

from awscrt import checksums as crt

from tenfold.objects.s3.errors import S3Error

ALGORITHMS = ("CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256")
FULL_OBJECT = "FULL_OBJECT"
COMPOSITE = "COMPOSITE"

_BYTES = {"CRC32": 4, "CRC32C": 4, "CRC64NVME": 8, "SHA1": 20, "SHA256": 32}
_POLYNOMIALS = {"CRC32": 0xEDB88320, "CRC32C": 0x82F63B78, "CRC64NVME": 0x9A6C9329AC4BC9B5}
_HEADER = "x-amz-checksum-"


class Checksum(Protocol):
    """A checksum that is computed as bytes pass."""

    def update(self, data: bytes, /) -> None:
        """Take bytes."""
        ...

    def digest(self) -> bytes:
        """Return the checksum of all bytes so far."""
        ...


_Crc = Callable[[bytes, int], int]


class _CrcSum:
    def __init__(self, crc: _Crc, size_bytes: int) -> None:
        self._crc = crc
        self._size_bytes = size_bytes
        self._value = 0

    def update(self, data: bytes) -> None:
        self._value = self._crc(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(self._size_bytes, "big")


def start_checksum(algorithm: str) -> Checksum:
    """Return a checksum of no bytes."""
    match algorithm:
        case "CRC32":
            return _CrcSum(zlib.crc32, 4)
        case "CRC32C":
            return _CrcSum(crt.crc32c, 4)  # pyright: ignore[reportUnknownArgumentType]
        case "CRC64NVME":
            return _CrcSum(crt.crc64nvme, 8)  # pyright: ignore[reportUnknownArgumentType]
        case "SHA1":
            return hashlib.sha1(usedforsecurity=False)
        case _:
            return hashlib.sha256()


def header_of(algorithm: str) -> str:
    """Return the header that carries a checksum."""
    return f"{_HEADER}{algorithm.lower()}"


def claimed(headers: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the algorithm and the value of a checksum header, if there is one."""
    found = [(a, headers[header_of(a)]) for a in ALGORITHMS if header_of(a) in headers]
    if len(found) > 1:
        raise S3Error("InvalidRequest", "A request may carry one checksum.")
    if not found:
        return None
    check_value(*found[0])
    return found[0]


def wanted(headers: Mapping[str, str]) -> str:
    """Return the algorithm of the checksum that a body has, in its headers or its trailer."""
    given = claimed(headers)
    if given is not None:
        return given[0]
    name = headers.get("x-amz-trailer", "").lower()
    if name.startswith(_HEADER):
        return algorithm_of(name.removeprefix(_HEADER))
    return algorithm_of(headers.get("x-amz-sdk-checksum-algorithm", ""))


def algorithm_of(text: str) -> str:
    """Return a known algorithm by its name in any case; empty for none."""
    name = text.strip().upper()
    if name and name not in ALGORITHMS:
        raise S3Error("InvalidRequest", "The checksum algorithm is unknown.")
    return name


def check_value(algorithm: str, value: str) -> None:
    """Refuse what cannot be a checksum of this algorithm."""
    try:
        is_valid = len(b64decode(value.partition("-")[0], validate=True)) == _BYTES[algorithm]
    except (Base64Error, ValueError):
        is_valid = False
    if not is_valid:
        name = header_of(algorithm)
        raise S3Error("InvalidRequest", f"The value of the header {name} is invalid.")


def composite(algorithm: str, parts: Sequence[str]) -> str:
    """Return the checksum of the checksums of parts."""
    whole = start_checksum(algorithm)
    for part in parts:
        whole.update(b64decode(part))
    return f"{b64encode(whole.digest()).decode()}-{len(parts)}"


def full_object(algorithm: str, parts: Sequence[tuple[str, int]]) -> str:
    """Return the checksum of all bytes from those of parts with their sizes."""
    size_bytes = _BYTES[algorithm]
    value = 0
    for text, part_bytes in parts:
        part = int.from_bytes(b64decode(text), "big")
        value = _multiply(algorithm, value, _shift(algorithm, part_bytes)) ^ part
    return b64encode(value.to_bytes(size_bytes, "big")).decode()


def is_linear(algorithm: str) -> bool:
    """Return whether the checksum of a whole follows from those of its parts."""
    return algorithm in _POLYNOMIALS


@lru_cache(maxsize=1_024)
def _shift(algorithm: str, length: int) -> int:
    """Return x to the number of bits of `length` bytes, modulo the polynomial."""
    bits = _BYTES[algorithm] * 8
    # Reflected: the highest bit is the coefficient of x^0.
    result, power = 1 << (bits - 1), 1 << (bits - 2)
    exponent = length * 8
    while exponent:
        if exponent & 1:
            result = _multiply(algorithm, result, power)
        power = _multiply(algorithm, power, power)
        exponent >>= 1
    return result


def _multiply(algorithm: str, left: int, right: int) -> int:
    """Multiply two reflected polynomials modulo that of the algorithm."""
    polynomial = _POLYNOMIALS[algorithm]
    top = 1 << (_BYTES[algorithm] * 8 - 1)
    product = 0
    while left:
        if left & top:
            product ^= right
        left = (left << 1) & (2 * top - 1)
        right = (right >> 1) ^ (polynomial if right & 1 else 0)
    return product
