"""Retention: which objects of a stage may be deleted, keeping the latest ones and pinned ones."""

from collections.abc import Sequence

from tenfold.model.objects.tiering import ObjectUse, StageRule

_DAY_MS = 86_400_000


def expired(series: Sequence[ObjectUse], rule: StageRule, now_ms: int) -> list[str]:
    """Return the keys to delete of one series, such as the checkpoints of a job, oldest first.

    The `keep_latest` newest and pinned objects stay, whatever their age.
    """
    if rule.delete_after_days <= 0:
        return []
    oldest_first = sorted(
        (use for use in series if use.stage == rule.stage),
        key=lambda use: (use.created_ms, use.key),
    )
    candidates = oldest_first[: len(oldest_first) - rule.keep_latest]
    if rule.keep_latest >= len(oldest_first):
        candidates = []
    limit_ms = now_ms - rule.delete_after_days * _DAY_MS
    return [use.key for use in candidates if not use.pinned and use.created_ms <= limit_ms]
