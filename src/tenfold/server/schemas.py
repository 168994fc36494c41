"""Convert journal rows to the types of the HTTP API: ISO times in UTC, reasons as sentences."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from signal import Signals

from msgspec import UNSET, UnsetType

from tenfold.fleet.fleet import Fleet
from tenfold.journal.rows import ArraySummary, AttemptRow, JobRow, NodeRow
from tenfold.model.acceptance import Acceptance, NodeVerdict
from tenfold.model.api import jobs, nodes, tokens
from tenfold.model.job.job import WHOLE
from tenfold.model.reason import Causes, Reason, Value
from tenfold.model.units import SECOND
from tenfold.report.reasons.registry import shown_code
from tenfold.report.reasons.render import Reader, render
from tenfold.server.auth.tokens import Token
from tenfold.server.background.follower import FleetSnapshot
from tenfold.study.eta.eta import Eta

SIGNAL_EXIT_BASE = 128
"""A process killed by a signal has the exit code 128 plus the number of the signal."""
MEMORY_CODES = ("out-of-memory", "allocation-failed")
"""Causes of failed jobs that are their reason in answers."""
_STATE_SENTENCES = {
    "pending": "not scheduled yet",
    "starting": "its processes are starting",
    "running": "running",
    "stopping": "stopping",
}


def iso(at_ms: int | None) -> str | None:
    """Return a time as ISO 8601; None stays None."""
    return None if at_ms is None else _iso(at_ms)


def to_job(  # noqa: PLR0913 - each is a part of the answer
    row: JobRow,
    attempts: Sequence[AttemptRow],
    token: Token,
    snapshot: FleetSnapshot | None = None,
    eta: Eta | None = None,
    *,
    now_ms: int | None = None,
    service: str | None = None,
) -> jobs.Job:
    """Return a job; with a snapshot of the fleet, a pending job says what it waits for.

    `now_ms` tells how long a running attempt has run; `service` is what it is a replica of.
    """
    return jobs.Job(
        id=row.id,
        name=row.name,
        team=row.team,
        state=row.state,
        attempts=tuple(_attempt(one) for one in attempts),
        attempts_total=row.attempts if _has_more(row, attempts) else UNSET,
        attempts_next=attempts[0].number if attempts and attempts[0].number > 1 else UNSET,
        reason=_reason(row, attempts, token, snapshot),
        eta=to_eta(eta) or _reserved_start(row, snapshot),
        user=row.user_name,
        gpus=row.gpus_milli / WHOLE,
        submitted_at=_iso(row.submitted_ms),
        elapsed_s=_elapsed_s(attempts, now_ms),
        service=service or UNSET,
    )


def _elapsed_s(attempts: Sequence[AttemptRow], now_ms: int | None) -> float | UnsetType:
    """Return how long the latest attempt has run; unset if it has not started."""
    started_ms = attempts[-1].started_ms if attempts else None
    ended_ms = now_ms if started_ms is None else attempts[-1].ended_ms or now_ms
    if started_ms is None or ended_ms is None:
        return UNSET
    return max(0, ended_ms - started_ms) / SECOND


def _has_more(row: JobRow, attempts: Sequence[AttemptRow]) -> bool:
    """Return whether a job has more attempts; a resize in progress has a number and no row yet."""
    return row.attempts > len(attempts) + 1 or bool(attempts and attempts[0].number > 1)


def to_array(base: str, whole: ArraySummary) -> jobs.Job:
    """Return an array as one job, with the number of members in each state."""
    counted = ", ".join(f"{count:,} {state}" for state, count in whole.states.items())
    return jobs.Job(
        id=base,
        name=whole.first.name,
        team=whole.first.team,
        state=whole.state,
        attempts=(),
        reason=jobs.Reason(code="array", sentence=f"{whole.count:,} tasks: {counted}"),
        array=jobs.Members(
            count=whole.count,
            states={str(state): count for state, count in whole.states.items()},
            failed=whole.failed,
        ),
    )


def to_eta(eta: Eta | None) -> jobs.Eta | None:
    """Return the start time forecast of a job."""
    if eta is None:
        return None
    return jobs.Eta(
        p50_at=_iso(eta.p50_ms),
        p90_at=None if eta.p90_ms is None else _iso(eta.p90_ms),
        basis=eta.basis,
        calibrated=eta.calibrated,
        error_factor=eta.error_factor,
    )


def to_node(row: NodeRow, token: Token) -> nodes.Node:
    """Return a node."""
    return nodes.Node(
        id=row.id,
        site=row.site,
        pool=row.pool,
        accelerator=row.accelerator,
        gpus=row.gpus,
        state=row.state,
        cause=row.cause,
        changed_at=iso(row.changed_ms),
        sentence=_cause(row, token),
        test=_tested(row.acceptance, token.reader),
    )


def cordoned_for_failures(fleet: Fleet, token: Token) -> tuple[nodes.CordonedNode, ...]:
    """Return the nodes that were cordoned because jobs kept failing there."""
    return tuple(
        nodes.CordonedNode(id=node, code=cause.code, sentence=render(cause, token.reader))
        for node, cause in fleet.failure_log.blamed.items()
    )


def _tested(acceptance: Acceptance | None, reader: Reader) -> nodes.NodeTest | None:
    if acceptance is None:
        return None
    verdict = acceptance.verdict
    outcome = "accepted" if verdict.is_accepted else "refused"
    return nodes.NodeTest(
        tested_at=_iso(acceptance.at_ms),
        outcome="overridden" if acceptance.accepted_by else outcome,
        accepted_by=acceptance.accepted_by,
        basis=verdict.basis,
        nodes=verdict.nodes,
        code=verdict.reason.code,
        sentence=render(verdict.reason, reader),
        figures=_figures(acceptance),
        unmeasured=tuple(render(one, reader) for one in acceptance.test.unmeasured),
        notes=tuple(_notes(verdict, reader)),
    )


def _notes(verdict: NodeVerdict, reader: Reader) -> Iterator[str]:
    for note in verdict.notes:
        if isinstance(note, Reason):
            yield render(note, reader)
        elif reader.sees_all:
            yield note


def _figures(acceptance: Acceptance) -> tuple[nodes.NodeFigure, ...]:
    if not acceptance.verdict.compared:
        return tuple(
            nodes.NodeFigure(name=one.name, value=one.value, unit=one.unit)
            for one in acceptance.test.figures
        )
    return tuple(
        nodes.NodeFigure(
            name=one.name,
            value=None if one.judged == "missing" else one.value,
            unit=one.unit,
            median=one.median,
            deviation=one.deviation,
            allowed=one.allowed,
            judged=one.judged,
        )
        for one in acceptance.verdict.compared
    )


def to_token(token: Token) -> tokens.Token:
    """Return a token's record."""
    day = token.last_used
    return tokens.Token(
        id=token.id,
        name=token.name,
        team=token.team,
        role=token.role.name,
        created_at=iso(token.created_ms),
        expires_at=iso(token.expires_ms),
        revoked_at=iso(token.revoked_ms),
        last_used_on=None if day is None else _iso(day * 86_400_000)[:10],
    )


def _attempt(row: AttemptRow) -> jobs.Attempt:
    return jobs.Attempt(
        number=row.number,
        started_at=iso(row.started_ms),
        ended_at=iso(row.ended_ms),
        nodes=row.nodes,
        exit_code=row.exit_code,
        reason=row.reason,
    )


def _reserved_start(row: JobRow, snapshot: FleetSnapshot | None) -> jobs.Eta | None:
    """Return the reserved start of a pending job, which needs no forecast."""
    reservation = snapshot.fleet.reservations.get(row.id) if snapshot is not None else None
    if reservation is None or row.state != "pending":
        return None
    at = _iso(reservation.start_ms)
    return jobs.Eta(p50_at=at, p90_at=at, basis="its reservation", calibrated=False)


def _cause(row: NodeRow, token: Token) -> str:
    """Return why a node is out of service, if there is more than a code."""
    if not row.fields and not row.sentence:
        return ""
    return render(Reason(row.cause, row.fields, row.sentence), token.reader)


def _reason(
    row: JobRow, attempts: Sequence[AttemptRow], token: Token, snapshot: FleetSnapshot | None
) -> jobs.Reason:
    found = snapshot.reason(row.id) if snapshot is not None and row.state == "pending" else None
    before = _recorded(row, attempts, token) if row.reason else ""
    if found is not None:
        sentence = render(found, token.reader, row.team)
        if row.attempts and before:
            sentence = f"{before}; {sentence}"
        return jobs.Reason(code=shown_code(found.code), sentence=sentence)
    if row.reason:
        return jobs.Reason(code=shown_code(_memory_code(row) or row.reason), sentence=before)
    return jobs.Reason(code=row.state, sentence=_STATE_SENTENCES.get(row.state, ""))


def _memory_code(row: JobRow) -> str:
    """Return the code of the cause of a failed job if memory was short; otherwise empty.

    As Slurm, which has a state for such jobs: listings look for them by it.
    """
    causes = row.fields.get("cause") if row.reason == "failed" else None
    if not isinstance(causes, Causes):
        return ""
    return next((one.code for one in causes.reasons if one.code in MEMORY_CODES), "")


def stop_sentence(row: JobRow, attempts: Sequence[AttemptRow], token: Token) -> str:
    """Return why the last attempt of a pending job was stopped; empty if it has not run."""
    return _recorded(row, attempts, token) if row.reason and stopped_at(row, attempts) else ""


def stopped_at(row: JobRow, attempts: Sequence[AttemptRow]) -> str | None:
    """Return when the last attempt of a pending job was stopped; None if it has not run."""
    return iso(attempts[-1].ended_ms) if attempts and row.state == "pending" else None


def _recorded(row: JobRow, attempts: Sequence[AttemptRow], token: Token) -> str:
    """Return the reason that the journal has for the state of a job."""
    why = Reason(row.reason, row.fields, row.sentence)
    if why.code == "failed" and "cause" not in why.fields and not why.sentence:
        return failure_sentence(attempts, why.fields.get("exit_code"))
    return render(why, token.reader, row.team)


def failure_sentence(attempts: Sequence[AttemptRow], exit_code: Value | None = None) -> str:
    """Return how the last attempt of a failed job ended; `attempts` may be an earlier page."""
    code = attempts[-1].exit_code if attempts else None
    code = exit_code if isinstance(exit_code, int) else code
    return (
        "the command failed" if code is None else f"the command failed with {exit_code_text(code)}"
    )


def exit_code_text(code: int) -> str:
    """Return an exit code, with the name of the signal that it stands for, if any.

    A command killed by a signal and one that exits with 128 plus its number look the same.
    """
    try:
        return f"exit code {code} ({Signals(code - SIGNAL_EXIT_BASE).name})"
    except ValueError:
        return f"exit code {code}"


def _iso(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1_000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
