"""Random numbers that depend only on a seed and names, not on the order of calls."""

from hashlib import blake2b


def seeded_fraction(seed: int, *names: str | int) -> float:
    """Return a number in [0, 1) that is the same for the same seed and names, anywhere."""
    text = "\x1f".join((str(seed), *map(str, names)))
    return int.from_bytes(blake2b(text.encode(), digest_size=7).digest()) / (1 << 56)
