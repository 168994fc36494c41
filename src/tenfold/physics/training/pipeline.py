"""Pipeline schedules: how micro-batches and uneven stages add up to a pass.

Time = micro-batches x slowest stage + fill and drain of the others. Interleaving divides the
fill and drain by the virtual stages; it does not shorten the slowest stage.
"""

import numpy as np

from tenfold.physics.training.arrays import Values

# The weight half of the backward pass fills this share of the bubble in zero-bubble schedules.
ZERO_BUBBLE_FILL = 0.66


def stage_layers(layers: Values, pp: Values, virtual_stages: Values) -> tuple[Values, Values]:
    """Return (layers of a full stage, layers of the last stage); the last one gets what is left."""
    chunks = pp * virtual_stages
    full = np.ceil(layers / chunks - 1e-9) * virtual_stages
    # Chunks that do not divide evenly are spread by hand in practice, to the layer.
    full = np.minimum(full, np.ceil(layers / pp - 1e-9))
    last = np.maximum(layers - full * (pp - 1.0), 0.0)
    return full, last


def pass_s(
    micro_batches: Values,
    virtual_stages: Values,
    slowest_s: Values,
    path_s: Values,
    zero_bubble: Values = 0.0,
) -> tuple[Values, Values]:
    """Return (busy, bubble) seconds: `path_s` is one micro-batch through all stages."""
    busy = micro_batches * slowest_s
    idle = (path_s - slowest_s) / virtual_stages * (1.0 - ZERO_BUBBLE_FILL * zero_bubble)
    return busy, np.maximum(idle, 0.0)
