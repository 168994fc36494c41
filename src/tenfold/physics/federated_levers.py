"""How much compression and more local steps help a federated job.

Both reduce the time on links per step, at a cost to model quality that is not estimated:
compression loses part of the update, and local steps make sites drift apart. So this
reports what each would save, not whether to do it.
"""

from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from tenfold.model.federated import FederatedJob
from tenfold.model.reason import Misfit
from tenfold.physics.federated import Round, federated_round

STEPS_TIMES = (1, 2, 4, 8)
COMPRESSIONS = (1.0, 4.0, 16.0)
PAYS_FROM = 0.1
"""A change helps if it makes steps at least this much faster; a choice."""


class Lever(Struct, frozen=True, kw_only=True):
    """The job with other local steps or another compression."""

    local_steps: int
    compression: float
    round_s: float
    steps_per_day: float
    wire_share: float
    """Part of the round that is spent on links."""
    quicker: float
    """Growth of steps a day over the job as it is."""
    wan_bytes_per_day: float


class Levers(Struct, frozen=True, kw_only=True):
    """The effect of local steps and compression."""

    wire_share: float
    local_steps_for_even: int | None
    """Local steps from which computing takes as long as links do."""
    compression_pays: bool
    more_local_steps_pay: bool
    grid: tuple[Lever, ...]


def levers(job: FederatedJob, now: Round) -> Levers:
    """Return what more local steps and more compression would change."""
    grid: list[Lever] = []
    for times in STEPS_TIMES:
        for compression in COMPRESSIONS:
            changed = replace(
                job,
                local_steps=job.local_steps * times,
                compression=job.compression * compression,
                # A longer round needs a later deadline; the lever is judged without it.
                deadline_s=None,
            )
            answer = federated_round(changed)
            assert not isinstance(answer, Misfit), "without a deadline every round succeeds"
            grid.append(_lever(changed, answer, now))
    return Levers(
        wire_share=_wire_share(now),
        local_steps_for_even=_even(job, now),
        compression_pays=_best(grid, local_steps=job.local_steps) >= PAYS_FROM,
        more_local_steps_pay=_best(grid, compression=job.compression) >= PAYS_FROM,
        grid=tuple(grid),
    )


def _lever(job: FederatedJob, answer: Round, now: Round) -> Lever:
    return Lever(
        local_steps=job.local_steps,
        compression=job.compression,
        round_s=answer.round_s,
        steps_per_day=answer.steps_per_day,
        wire_share=_wire_share(answer),
        quicker=answer.steps_per_day / now.steps_per_day - 1,
        wan_bytes_per_day=answer.wan_bytes_per_day,
    )


def _best(
    grid: list[Lever], *, local_steps: int | None = None, compression: float | None = None
) -> float:
    return max(
        one.quicker
        for one in grid
        if local_steps in (None, one.local_steps) and compression in (None, one.compression)
    )


def _wire_share(answer: Round) -> float:
    parts = answer.breakdown_s
    return (parts.download_s + parts.upload_s) / answer.round_s


def _even(job: FederatedJob, now: Round) -> int | None:
    """Return local steps at which the site that closes most rounds is half on links."""
    closer = max(now.sites, key=lambda one: one.closes)
    if closer.compute_s <= 0:
        return None
    return max(1, ceil((closer.download_s + closer.upload_s) * job.local_steps / closer.compute_s))
