"""Storage classes of S3, and the tiers that they mean here."""

from collections.abc import Collection

_PREFERRED = {
    "EXPRESS_ONEZONE": ("gpu-direct",),
    "STANDARD": ("hot", "warm", "cold", "gpu-direct"),
    "STANDARD_IA": ("warm",),
    "GLACIER_IR": ("cold",),
    "GLACIER": ("cold",),
}
ARCHIVED = frozenset({"GLACIER"})
"""In the tier `cold` as `GLACIER_IR` is, but read only after RestoreObject."""


def storage_classes(tiers: Collection[str]) -> dict[str, str]:
    """Return the tier of each storage class that these tiers can hold."""
    found: dict[str, str] = {}
    for name, wanted in _PREFERRED.items():
        present = [tier for tier in wanted if tier in tiers]
        if present:
            found[name] = present[0]
    return found
