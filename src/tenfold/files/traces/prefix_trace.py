"""The rows of a trace of prompt blocks, as the Mooncake traces have them.

A block is named by a hash of itself and of all before it, so that equal names mean equal
beginnings.
"""

from typing import Annotated

from msgspec import Meta

from tenfold.files.fleet.rows import Row

BLOCK_TOKENS = 512
"""Tokens of a block in the Mooncake traces (FAST 2025)."""


class PrefixRow(Row, frozen=True, kw_only=True):
    """One request: the blocks of its prompt, first one first."""

    hash_ids: list[Annotated[int, Meta(ge=1 - 2**63, le=2**63 - 1)]]
    timestamp: float | None = None
    input_length: Annotated[int, Meta(ge=1, le=10**9)] | None = None
    output_length: Annotated[int, Meta(ge=0, le=10**9)] | None = None
