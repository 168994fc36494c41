"""Promotion and demotion by stage, age, access, deadline and cost, inside the customer's policy.

Nothing is recommended that the policy does not allow: no tier outside of a stage's list, no pinned
object downwards, no object that was read lately downwards, no more bytes than a cycle may move.
"""

from collections.abc import Iterator, Sequence

from tenfold.model.objects.tiering import (
    MoveReason,
    ObjectUse,
    StageRule,
    TieringPolicy,
    TierMove,
    TierRoom,
)
from tenfold.model.objects.tiers import TIER_NAMES, TierName

_HOUR_MS = 3_600_000
_URGENCY: tuple[MoveReason, ...] = ("deadline", "tier-not-allowed", "busy", "idle")


def recommend(
    uses: Sequence[ObjectUse], policy: TieringPolicy, tiers: Sequence[TierRoom], now_ms: int
) -> list[TierMove]:
    """Return moves, the most urgent first; of equal ones, those that save most per byte.

    In the mode `observe` there are none.
    """
    if policy.mode == "observe":
        return []
    rooms: dict[TierName, TierRoom] = {tier.name: tier for tier in tiers}
    wished = [move for use in uses for move in _wish(use, policy, rooms, now_ms)]
    wished.sort(key=_order)
    free: dict[TierName, int] = {tier.name: tier.free_bytes for tier in tiers}
    return _within(wished, policy.move_bytes_max, free)


def _wish(
    use: ObjectUse, policy: TieringPolicy, rooms: dict[TierName, TierRoom], now_ms: int
) -> Iterator[TierMove]:
    rule = policy.rule(use.stage)
    if rule is None:
        return
    allowed: list[TierName] = [name for name in rule.ordered() if name in rooms]
    if not allowed:
        return
    found = _target(use, rule, allowed, policy, now_ms)
    if found is None or found[0] == use.tier:
        return
    target, reason = found
    before = rooms[use.tier].usd_per_tb_month if use.tier in rooms else 0.0
    change = (rooms[target].usd_per_tb_month - before) * use.size_bytes / 1e12
    if reason == "idle" and change > 0:
        # A slower tier that costs more helps nothing.
        return
    yield TierMove(
        key=use.key,
        from_tier=use.tier,
        to_tier=target,
        size_bytes=use.size_bytes,
        reason=reason,
        usd_per_month=change,
    )


def _target(
    use: ObjectUse,
    rule: StageRule,
    allowed: Sequence[TierName],
    policy: TieringPolicy,
    now_ms: int,
) -> tuple[TierName, MoveReason] | None:
    """Return the tier that an object should be in, and why; None if it may stay."""
    at = TIER_NAMES.index(use.tier)
    faster: list[TierName] = [name for name in allowed if TIER_NAMES.index(name) < at]
    slower: list[TierName] = [name for name in allowed if TIER_NAMES.index(name) > at]
    if _is_needed_soon(use, policy, now_ms):
        return (allowed[0], "deadline") if faster else None
    if use.tier not in allowed:
        # A pinned object never goes down.
        if faster:
            return faster[-1], "tier-not-allowed"
        return None if use.pinned else (slower[0], "tier-not-allowed")
    if use.reads_per_day >= rule.busy_reads_per_day:
        return (faster[-1], "busy") if faster else None
    if slower and not use.pinned and now_ms - use.last_access_ms >= rule.idle_hours * _HOUR_MS:
        return slower[0], "idle"
    return None


def _is_needed_soon(use: ObjectUse, policy: TieringPolicy, now_ms: int) -> bool:
    at = use.needed_at_ms
    return at is not None and now_ms <= at <= now_ms + policy.lead_hours * _HOUR_MS


def _order(move: TierMove) -> tuple[int, float, str]:
    saved = move.usd_per_month / move.size_bytes if move.size_bytes else 0.0
    return _URGENCY.index(move.reason), saved, move.key


def _within(
    wished: Sequence[TierMove], bytes_max: int, free: dict[TierName, int]
) -> list[TierMove]:
    """Return the moves that fit into the cycle and into their tiers."""
    chosen: list[TierMove] = []
    for move in wished:
        if move.size_bytes <= bytes_max and move.size_bytes <= free[move.to_tier]:
            bytes_max -= move.size_bytes
            free[move.to_tier] -= move.size_bytes
            chosen.append(move)
    return chosen
