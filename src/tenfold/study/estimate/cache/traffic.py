"""The prefixes that prompts share: with a known popularity, or from a trace of prompt blocks.

A prefix is one object in the cache, since its blocks are used together; sizes are in
tokens, since bytes depend on the model.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct

from tenfold.files.traces.prefix_trace import PrefixRow
from tenfold.model.errors import InputError
from tenfold.physics.arrays import Floats
from tenfold.physics.serving.kvtier import (
    ReuseProfile,
    che_capacity_blocks,
    che_hit_ratio,
    hit_ratio,
    reuse_profile,
    zipf_popularity,
)

SIZES_TRIED = 400


class Traffic(Protocol):
    """Prompts, as seen by a cache tier of any size."""

    @property
    def prompt_tokens(self) -> float:
        """Tokens of the mean prompt."""
        ...

    @property
    def hit_ratio_max(self) -> float:
        """Share of tokens that an infinite tier would hit."""
        ...

    def hit_ratio(self, held_tokens: Floats) -> Floats:
        """Return the share of tokens that tiers of these sizes hit."""
        ...

    def tokens_for(self, wanted: float) -> float:
        """Return the tokens that a tier must hold for a hit ratio; infinite if impossible."""
        ...


class SharedPrefixes(Struct, frozen=True, kw_only=True):
    """Prompts that each start with one of a set of prefixes."""

    prompt_tokens: float
    shared_tokens: float
    prefixes: int
    zipf: float

    @property
    def hit_ratio_max(self) -> float:
        """Share of tokens that an infinite tier would hit."""
        return self.shared_tokens / self.prompt_tokens

    def hit_ratio(self, held_tokens: Floats) -> Floats:
        """Return the share of tokens that tiers of these sizes hit."""
        popularity = zipf_popularity(self.prefixes, self.zipf)
        return che_hit_ratio(popularity, held_tokens / self.shared_tokens, self._unique)

    def tokens_for(self, wanted: float) -> float:
        """Return the tokens that a tier must hold for a hit ratio; infinite if impossible."""
        popularity = zipf_popularity(self.prefixes, self.zipf)
        found = che_capacity_blocks(popularity, np.array([wanted]), self._unique)
        return float(found[0]) * self.shared_tokens

    @property
    def _unique(self) -> float:
        return 1.0 - self.hit_ratio_max


class TracedBlocks(Struct, frozen=True, kw_only=True):
    """Prompts from a trace, block by block."""

    profile: ReuseProfile
    prompt_tokens: float
    block_tokens: int

    @property
    def hit_ratio_max(self) -> float:
        """Share of tokens that an infinite tier would hit: all but first uses."""
        return 1.0 - self.profile.blocks / self.profile.accesses

    def hit_ratio(self, held_tokens: Floats) -> Floats:
        """Return the share of tokens that tiers of these sizes hit."""
        return hit_ratio(self.profile, held_tokens / self.block_tokens)

    def tokens_for(self, wanted: float) -> float:
        """Return the tokens that a tier must hold for a hit ratio; infinite if impossible."""
        blocks = np.geomspace(1.0, float(self.profile.blocks), SIZES_TRIED)
        enough = np.flatnonzero(hit_ratio(self.profile, blocks) >= wanted)
        return float(blocks[enough[0]]) * self.block_tokens if len(enough) else np.inf


def traced(rows: Sequence[PrefixRow], block_tokens: int) -> TracedBlocks:
    """Return the traffic of a trace."""
    ids = [block for row in rows for block in row.hash_ids]
    if not ids:
        raise InputError(
            "empty-trace",
            "the trace has no blocks",
            "use rows with `hash_ids`, one per request",
        )
    lengths = [row.input_length or len(row.hash_ids) * block_tokens for row in rows]
    return TracedBlocks(
        profile=reuse_profile(np.array(ids, dtype=np.int64)),
        prompt_tokens=sum(lengths) / len(lengths),
        block_tokens=block_tokens,
    )
