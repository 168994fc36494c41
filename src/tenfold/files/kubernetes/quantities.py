"""Parse Kubernetes quantities: `64`, `63500m`, `2113513216Ki`."""

import re

from tenfold.files.core.document import Table
from tenfold.model.errors import InputError

_QUANTITY = re.compile(r"([0-9]{1,18}(?:\.[0-9]{1,18})?)(e[0-9]{1,2}|[numkKMGTPE]i?)?\Z")
_SCALES = {
    **{"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "K": 1e3},
    **{letter: 1000.0**power for power, letter in enumerate("MGTPE", start=2)},
    **{f"{letter}i": 1024.0**power for power, letter in enumerate("KMGTPE", start=1)},
}


def quantity_at(amounts: Table, key: str, owner: str, file: str) -> float:
    """Return a quantity as a number, 0 if missing; `owner` is named in errors."""
    value = amounts.get(key)
    if value is None:
        return 0.0
    match = _QUANTITY.match(value if isinstance(value, str) else str(value))
    if match is None or match[2] in ("ni", "ui", "mi", "ki"):
        raise InputError(
            "wrong-value",
            f"`{key}` of {owner} in `{file}` is `{str(value)[:40]}`, not a quantity",
            "write it as Kubernetes does: `64`, `500m`, `512Gi`",
            file=file,
            field=key,
        )
    suffix = match[2] or ""
    scale = 10.0 ** int(suffix[1:]) if suffix.startswith("e") else _SCALES.get(suffix, 1.0)
    return float(match[1]) * scale
