"""What decides in which tier an object should be: its use, the policy, and recommended moves."""

from typing import Literal

from msgspec import Struct

from tenfold.model.objects.tiers import TIER_NAMES, TierName

Stage = Literal["raw", "prepared", "hot-set", "checkpoint", "embedding", "retention"]
Mode = Literal["observe", "recommend", "auto"]
MoveReason = Literal["tier-not-allowed", "deadline", "busy", "idle"]


class ObjectUse(Struct, frozen=True, kw_only=True):
    """An object and how it was used."""

    key: str
    size_bytes: int
    tier: TierName
    stage: Stage
    created_ms: int
    last_access_ms: int
    reads_per_day: float = 0.0
    pinned: bool = False
    needed_at_ms: int | None = None
    """When a job that will read it starts."""


class StageRule(Struct, frozen=True, kw_only=True):
    """What the policy allows for objects of one stage."""

    stage: Stage
    tiers: tuple[TierName, ...]
    idle_hours: float = 24.0
    """Objects that were not read for so long may go to a slower tier."""
    busy_reads_per_day: float = 4.0
    """Objects that are read so often may go to a faster tier."""
    keep_latest: int = 0
    delete_after_days: float = 0.0
    """Age at which objects beyond the latest are deleted; 0 is never."""

    def ordered(self) -> list[TierName]:
        """Return the allowed tiers, fastest first."""
        return [name for name in TIER_NAMES if name in self.tiers]


class TieringPolicy(Struct, frozen=True, kw_only=True):
    """What may be moved; objects of a stage without a rule are left alone."""

    rules: tuple[StageRule, ...]
    mode: Mode = "recommend"
    move_bytes_max: int = 1 << 60
    """Most bytes to move in one cycle."""
    lead_hours: float = 1.0
    """How long before a job starts its data should be in the fastest allowed tier."""

    def rule(self, stage: Stage) -> StageRule | None:
        """Return the rule of a stage."""
        return next((rule for rule in self.rules if rule.stage == stage), None)


class TierRoom(Struct, frozen=True, kw_only=True):
    """A tier with its room and its price."""

    name: TierName
    free_bytes: int
    usd_per_tb_month: float


class TierMove(Struct, frozen=True, kw_only=True):
    """A recommended move, and why."""

    key: str
    from_tier: TierName
    to_tier: TierName
    size_bytes: int
    reason: MoveReason
    usd_per_month: float
    """Change of cost; negative saves."""


class Access(Struct, frozen=True):
    """One access of a trace, in the order in which a job makes them."""

    key: str
    size_bytes: int
    op: Literal["read", "write"]
    epoch: int
    """Reads of one epoch are known in advance, as a seeded loader knows them; -1 is unplanned."""
    compute_s: float
    """How long the job computes afterwards."""
