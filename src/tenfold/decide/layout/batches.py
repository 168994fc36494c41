"""Global batches that divide over a number of GPUs, near the one that was requested."""

from msgspec.structs import replace

from tenfold.decide.layout.request import PlanningTarget, TrainRequest
from tenfold.decide.layout.search import Timed, search
from tenfold.decide.layout.space import data_parallel_degrees

CLOSE = 0.05
"""Speeds and batches this close are as good as each other; an assumption."""
NEAR = 0.125
"""A batch may change by this much to divide over more ranks; an assumption."""
FAR = 2.0
"""A batch this many times larger or smaller is another run; an assumption."""
TRIES = 3


def best_batch(request: TrainRequest, target: PlanningTarget, gpus: int) -> tuple[Timed, int]:
    """Return the layouts of a size, with the nearest batch that divides, and how many were tried.

    The requested batch is kept wherever some layout divides it, even if none fits.
    """
    exact = search(request, target, gpus)
    if exact.searched:
        return exact, exact.searched
    tried = [
        search(replace(request, global_batch=batch), target, gpus)
        for batch in near_batches(request, target, gpus)
    ]
    searched = sum(timed.searched for timed in tried)
    fitting = [timed for timed in tried if timed.found]
    if not fitting:
        # Where no batch divides either, the options are at fault: the answer names the request's.
        return next((timed for timed in tried if timed.searched), exact), searched
    enough = (1 - CLOSE) * max(tokens_per_s(timed) for timed in fitting)
    good = [timed for timed in fitting if tokens_per_s(timed) >= enough]
    wanted = request.global_batch
    return min(good, key=lambda timed: abs(timed.request.global_batch - wanted)), searched


def better_batch(timed: Timed, wanted: int) -> tuple[Timed | None, int]:
    """Return the fastest layouts with a batch close to the one wanted, if they are faster, and how
    many were tried.
    """
    request, target = replace(timed.request, global_batch=wanted), timed.target
    near = [
        batch
        for batch in near_batches(request, target, timed.gpus, within=CLOSE)
        if abs(batch / wanted - 1) <= CLOSE
    ]
    others = [search(replace(request, global_batch=one), target, timed.gpus) for one in near]
    searched = sum(other.searched for other in others)
    fitting = [other for other in others if other.found]
    best = max(fitting, key=tokens_per_s, default=None)
    if best is None or tokens_per_s(best) <= (1 + CLOSE) * tokens_per_s(timed):
        return None, searched
    return best, searched


def near_batches(
    request: TrainRequest, target: PlanningTarget, gpus: int, *, within: float = NEAR
) -> list[int]:
    """Return batches to try: near ones that divide over most ranks, and always the nearest."""
    wanted = request.global_batch
    micro = request.job.micro_batch or 1
    near: dict[int, None] = {}
    for ranks in sorted(data_parallel_degrees(request, target, gpus), reverse=True):
        unit = ranks * micro
        for count in (wanted // unit, wanted // unit + 1):
            if count and count * unit != wanted:
                near.setdefault(count * unit)
    close = [batch for batch in near if abs(batch / wanted - 1) <= within]
    allowed = [batch for batch in near if wanted / FAR <= batch <= wanted * FAR]
    nearest = sorted(allowed, key=lambda batch: abs(batch - wanted))[:1]
    return list(dict.fromkeys([*close[:TRIES], *nearest]))


def tokens_per_s(timed: Timed) -> float:
    """Return the throughput of the fastest layout."""
    return timed.request.global_batch * timed.request.seq / float(timed.step_s[0])
