"""Jobs, attempts and nodes as they are told over HTTP: ISO times in UTC, reasons in sentences."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Literal

from msgspec import UNSET, Struct, UnsetType

from tenfold.journal.rows import ArrayStory, AttemptRow, JobRow, NodeRow
from tenfold.model.reason import Reason
from tenfold.server.endings import failed_words
from tenfold.server.follower import Moment
from tenfold.server.masked import masked_reason, masked_sentence
from tenfold.server.tokens import Token
from tenfold.server.told_tests import NodeTestTold, told_of
from tenfold.study.eta import Eta

_SENTENCES = {
    "completed": "it ran to its end",
    "failed": "its command failed",
    "timeout": "it ran for longer than its time limit",
    "cancelled": "somebody took it back",
    "preempted": "it gave its place to another job, and waits again",
    "node-lost": "a node that it ran on was lost, and it waits again",
    "start-failed": "its start failed, and it waits again",
    "moved": "it is to run elsewhere, and waits again",
    "idle": "it held GPUs and did nothing with them",
    "crashed": "its command failed; it is tried again from what it saved",
}
_STANDS = {
    "pending": "it waits for its first decision",
    "starting": "its processes are being started",
    "running": "it runs",
    "stopping": "it was told to stop",
}


class AttemptTold(Struct, frozen=True, kw_only=True):
    """One start that was ordered, and what became of it."""

    number: int
    started_at: str | None
    ended_at: str | None
    nodes: tuple[str, ...]
    exit_code: int | None
    reason: str
    log_bytes_dropped: int | UnsetType = UNSET
    """Bytes of its log that are gone because it wrote too many; not written where none are."""


class ReasonTold(Struct, frozen=True, kw_only=True):
    """Why a job stands where it stands."""

    code: str
    sentence: str


class EtaTold(Struct, frozen=True, kw_only=True):
    """Moments by which a waiting job starts in half, and in nine of ten, such cases."""

    p50_at: str
    p90_at: str
    basis: str
    calibrated: bool


class ArrayTold(Struct, frozen=True, kw_only=True):
    """The members of an array, counted."""

    count: int
    states: dict[str, int]
    """How many stand in each state that has any."""
    failed: tuple[str, ...]
    """The first of those that failed."""


class UseTold(Struct, frozen=True, kw_only=True):
    """What a job that runs used, at the last look."""

    at: str | None
    measure: Literal["gpu", "cpu"]
    """`gpu` asked its devices; `cpu` stands in where they are only numbers, or it holds none."""
    share: float
    """By `gpu` of all its devices' time; by `cpu` in CPUs."""
    gpu_memory_bytes: int | None
    """On its devices, where they were asked."""


class JobTold(Struct, frozen=True, kw_only=True):
    """One job as it stands, or an array."""

    id: str
    name: str
    team: str
    state: str
    attempts: tuple[AttemptTold, ...]
    reason: ReasonTold
    eta: EtaTold | None = None
    """When a job that waits will start, where that was asked for or is promised."""
    array: ArrayTold | UnsetType = UNSET
    """Its members, where the name is that of an array; else not written."""
    use: UseTold | UnsetType = UNSET
    """What it uses, where it runs and was measured; else not written."""
    idle_since: str | UnsetType | None = UNSET
    """Since when it has used next to nothing of what it holds; else not written."""


class NodeTold(Struct, frozen=True, kw_only=True):
    """One node as it stands."""

    id: str
    site: str
    pool: str
    accelerator: str
    gpus: int
    state: str
    cause: str
    changed_at: str | None
    sentence: str = ""
    """The cause in words, where it is a code."""
    test: NodeTestTold | None = None
    """How it did in its acceptance test; None where it had none."""


class TokenTold(Struct, frozen=True, kw_only=True):
    """A token without what makes it one."""

    id: str
    name: str
    team: str
    role: str
    created_at: str | None
    expires_at: str | None
    revoked_at: str | None
    last_used_on: str | None
    """The day, in UTC."""


def iso(at_ms: int | None) -> str | None:
    """Return a moment as people and programs read it; None stays None."""
    return None if at_ms is None else _iso(at_ms)


def job_told(
    row: JobRow,
    attempts: Sequence[AttemptRow],
    token: Token,
    moment: Moment | None = None,
    eta: Eta | None = None,
) -> JobTold:
    """Return a job; with a moment of the fleet, one that waits says what it waits for."""
    return JobTold(
        id=row.id,
        name=row.name,
        team=row.team,
        state=row.state,
        attempts=tuple(_attempt(one) for one in attempts),
        reason=_reason(row, attempts, token, moment),
        eta=eta_told(eta) or _promised(row, moment),
    )


def array_told(base: str, whole: ArrayStory) -> JobTold:
    """Return an array as one: where it stands, and how many of its members stand where."""
    counted = ", ".join(f"{count:,} {state}" for state, count in whole.states.items())
    return JobTold(
        id=base,
        name=whole.first.name,
        team=whole.first.team,
        state=whole.state,
        attempts=(),
        reason=ReasonTold(code="array", sentence=f"of {whole.count:,} members: {counted}"),
        array=ArrayTold(
            count=whole.count,
            states={str(state): count for state, count in whole.states.items()},
            failed=whole.failed,
        ),
    )


def eta_told(eta: Eta | None) -> EtaTold | None:
    """Return a forecast."""
    if eta is None:
        return None
    return EtaTold(
        p50_at=_iso(eta.p50_ms),
        p90_at=_iso(eta.p90_ms),
        basis=eta.basis,
        calibrated=eta.calibrated,
    )


def node_told(row: NodeRow) -> NodeTold:
    """Return a node."""
    return NodeTold(
        id=row.id,
        site=row.site,
        pool=row.pool,
        accelerator=row.accelerator,
        gpus=row.gpus,
        state=row.state,
        cause=row.cause,
        changed_at=iso(row.changed_ms),
        sentence=row.sentence,
        test=told_of(row.acceptance),
    )


def token_told(token: Token) -> TokenTold:
    """Return a token's record."""
    day = token.last_used
    return TokenTold(
        id=token.id,
        name=token.name,
        team=token.team,
        role=token.role.name,
        created_at=iso(token.created_ms),
        expires_at=iso(token.expires_ms),
        revoked_at=iso(token.revoked_ms),
        last_used_on=None if day is None else _iso(day * 86_400_000)[:10],
    )


def _attempt(row: AttemptRow) -> AttemptTold:
    return AttemptTold(
        number=row.number,
        started_at=iso(row.started_ms),
        ended_at=iso(row.ended_ms),
        nodes=row.nodes,
        exit_code=row.exit_code,
        reason=row.reason,
    )


def _promised(row: JobRow, moment: Moment | None) -> EtaTold | None:
    """Return the start that a waiting job was promised, which costs nothing to say."""
    promise = moment.fleet.promises.get(row.id) if moment is not None else None
    if promise is None or row.state != "pending":
        return None
    at = _iso(promise.start_ms)
    return EtaTold(p50_at=at, p90_at=at, basis="promised by then", calibrated=False)


def _reason(
    row: JobRow, attempts: Sequence[AttemptRow], token: Token, moment: Moment | None
) -> ReasonTold:
    found: Reason | None = None
    if moment is not None and row.state == "pending":
        found = moment.reason(row.id)
    if found is not None and moment is not None:
        if not token.sees_all_teams:
            found = masked_reason(found, moment.fleet, token.team)
        before = ""
        if row.attempts and row.reason:
            before = _SENTENCES.get(row.reason) or _own_words(row, token, moment)
        sentence = f"{before}: {found.sentence}" if before else found.sentence
        return ReasonTold(code=found.code, sentence=sentence)
    if row.reason:
        sentence = _own_words(row, token, moment)
        if not sentence and row.reason == "failed":
            sentence = failed_words(attempts)
        sentence = sentence or _SENTENCES.get(row.reason, "")
        return ReasonTold(code=row.reason, sentence=sentence)
    return ReasonTold(code=row.state, sentence=_STANDS.get(row.state, ""))


def _own_words(row: JobRow, token: Token, moment: Moment | None) -> str:
    """Return what the journal says of a job, without the names of other teams' jobs."""
    if token.sees_all_teams:
        return row.sentence
    fleet = None if moment is None else moment.fleet
    return masked_sentence(row.sentence, row.id, fleet, token.team)


def _iso(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1_000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
