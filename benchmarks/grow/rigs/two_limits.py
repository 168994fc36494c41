"""Readers behind a link, of a server with part of a core: which of the two ends first?

Twenty rigs are drawn: rate of the link, cores, pace, size of a block and what it costs. Both
usages are measured at a quarter of the readers and both laws say where they end. Runs of which
the two are said to end within 30% of each other are drawn again before they are run in full.
"""

import math
import random
from collections.abc import Iterator
from typing import NamedTuple

from benchmarks.grow.rigs.harness import Rig, Settings
from benchmarks.grow.rigs.readers import CPU, LINK, SETTINGS, stage, why_not

RUNS = 20
APART = 1.3
"""Two limits that are nearer than this have no first."""
KIB = 1_024
ROUGH_BLOCK_S = 5e-5
ROUGH_BYTES_S = 1.5e-4
"""Processor time to send 64 KiB, beside what every block takes."""
ROUGH_CHECKSUM_S = 2e-5
CORES_LEAST = 0.03


class Drawn(NamedTuple):
    """A rig and the seed that it was drawn with."""

    seed: int
    rig: Rig


def drawn(seed: int) -> Drawn:
    """Return the rig of a seed.

    Cores are drawn around what the link's blocks would need by a rough figure, so that either
    limit may come first; what a block really costs is only known once it is measured.
    """
    dice = random.Random(seed)
    block_bytes = dice.choice([16, 32, 64]) * KIB
    blocks_per_s = dice.choice([4, 6, 8])
    checksums = dice.choice([10, 30, 60])
    carried_per_s = dice.uniform(100.0, 300.0)
    mbit = round(carried_per_s * block_bytes * 8 / 1e6, 1)
    each_s = ROUGH_BYTES_S + ROUGH_CHECKSUM_S * checksums
    cost_s = ROUGH_BLOCK_S + each_s * block_bytes / (64 * KIB)
    ratio = math.exp(dice.choice([-1, 1]) * dice.uniform(math.log(1.5), math.log(3.0)))
    cores = round(max(CORES_LEAST, carried_per_s * cost_s * ratio), 3)
    ends = min(carried_per_s, cores / cost_s) / blocks_per_s
    full = max(16, 4 * round(ends * dice.uniform(1.6, 2.8) / 4))
    settings: Settings = {
        **SETTINGS,
        "mbit": mbit,
        "block_bytes": block_bytes,
        "blocks_per_s": blocks_per_s,
        "checksums": checksums,
        "cores": cores,
        "full": full,
        "loads": sorted({max(1, full // 16), full // 8, full // 4}),
        "step": 1.12,
        "seconds": 4.0,
    }
    return Drawn(seed, Rig(f"two limits, seed {seed}", settings, why_not, stage))


def rigs(first_seed: int = 0) -> Iterator[Drawn]:
    """Return rigs without end; the caller stops after as many as count."""
    seed = first_seed
    while True:
        yield drawn(seed)
        seed += 1


def apart(by_resource: dict[str, float], full_factor: float = 4.0) -> str:
    """Return why a prediction has no first limit to be right about; empty where it has."""
    low, high = sorted((by_resource[LINK], by_resource[CPU]))
    if low < 1.0:
        return "ends at a quarter of full scale"
    if low > full_factor:
        return "does not end by full scale"
    if high < APART * low:
        return "ends within 30% of the other"
    return ""
