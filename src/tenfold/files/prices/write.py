"""Write price facts as a fact file, the same text for the same rows."""

import json
from collections.abc import Sequence

from tenfold.model.fleet.facility import PriceFact

_HEADER = """\
# What providers ask for one accelerator-hour: the median over their offers, host included.
# USD per GPU-hour, the least and the most asked, how many offers and in how many regions.
# Written by `render_price_facts`; read a newer catalogue instead of editing this.
"""
_FIELDS = (
    "name",
    "provider",
    "accelerator",
    "kind",
    "usd_per_gpu_hour",
    "usd_per_gpu_hour_min",
    "usd_per_gpu_hour_max",
    "offers",
    "regions",
    "source",
    "date",
    "evidence",
)


def render_price_facts(rows: Sequence[PriceFact]) -> str:
    """Return the text of a fact file with these rows, in their order."""
    return "\n".join((_HEADER, *(_render_row(row) for row in rows)))


def _render_row(row: PriceFact) -> str:
    lines = (f"{field} = {_value(getattr(row, field))}" for field in _FIELDS)
    return "\n".join(("[[price]]", *lines, ""))


def _value(value: str | float) -> str:
    # JSON writes strings and finite numbers as TOML reads them, but for a raw DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
