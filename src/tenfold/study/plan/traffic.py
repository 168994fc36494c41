"""The network and storage load of a training job, derived from the planner's timing.

The planner reports how much of a step is exposed communication, by kind; a kind counts
here only if its group is larger than a scale-up domain, since otherwise it stays inside
the node.
"""

from collections.abc import Sequence

import numpy as np

from tenfold.model.errors import InputError
from tenfold.model.estimate import NoEstimate, TrainConfig, TrainRow
from tenfold.model.facts.catalogue import Catalogue
from tenfold.model.job.traffic import Traffic
from tenfold.model.units import SECOND, Bytes, Millis
from tenfold.physics.operations.goodput import checkpoint_bytes
from tenfold.study.estimate.fill import FilledConfig, fill
from tenfold.study.estimate.train import estimate_train

TOKEN_BYTES = 4.0
"""Bytes read per token of text: one integer. An assumption; images need far more."""


def train_traffic(
    config: TrainConfig,
    catalogue: Catalogue,
    *,
    observed: Sequence[TrainRow] = (),
    tier: str = "",
    checkpoint_every_s: float = 0.0,
    token_bytes: float = TOKEN_BYTES,
) -> Traffic:
    """Return the load of a training configuration, or raise `InputError` if it is impossible.

    Nothing is read or saved unless `tier` is given; `checkpoint_every_s` of 0 never saves.
    """
    filled = fill(config, catalogue)
    [answer] = estimate_train([config], catalogue, observed)
    if isinstance(answer, NoEstimate):
        raise InputError("not-whole", answer.error, "fix the configuration")
    across_s = sum(answer.breakdown_s[name] for name in crossing_parts(filled))
    saves = bool(tier and checkpoint_every_s)
    size = round(float(checkpoint_bytes(np.array(float(filled.shape.params)))))
    # The planner times collectives at this share of the line rate, so that is the rate they use.
    rate = float(filled.plan.nic_bytes_s) * float(filled.entry.start.profile.nic)
    return Traffic(
        network_bytes_per_s_per_gpu=rate if across_s else 0.0,
        network_share=across_s / answer.step_s,
        read_bytes_per_s_per_gpu=answer.tokens_per_s_per_gpu * token_bytes if tier else 0.0,
        tier=tier,
        checkpoint_bytes=Bytes(size if saves else 0),
        checkpoint_every_ms=Millis(round(checkpoint_every_s * SECOND) if saves else 0),
    )


def crossing_parts(filled: FilledConfig) -> list[str]:
    """Return the parts of a step that leave the scale-up domain in this layout."""
    plan = filled.plan
    domain = float(plan.scaleup_ranks)
    tp, pp, dp, cp, ep = (float(one) for one in (plan.tp, plan.pp, plan.dp, plan.cp, plan.ep))
    groups = {
        "tp_s": tp,
        "moe_s": ep,
        "dp_s": tp * cp * dp,
        "p2p_s": tp * cp * dp * pp if pp > 1 else 1.0,
    }
    return [name for name, ranks in groups.items() if ranks > domain]
