"""Jobs, attempts and nodes as they are told over HTTP: ISO times in UTC, reasons in sentences."""

from collections.abc import Sequence
from datetime import UTC, datetime

from tenfold.journal.rows import ArrayStory, AttemptRow, JobRow, NodeRow
from tenfold.model.acceptance import Acceptance
from tenfold.model.api import jobs, nodes, tokens
from tenfold.model.reason import Reason
from tenfold.server.endings import failed_words
from tenfold.server.follower import Moment
from tenfold.server.masked import masked_reason, masked_sentence
from tenfold.server.tokens import Token
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


def iso(at_ms: int | None) -> str | None:
    """Return a moment as people and programs read it; None stays None."""
    return None if at_ms is None else _iso(at_ms)


def job_told(
    row: JobRow,
    attempts: Sequence[AttemptRow],
    token: Token,
    moment: Moment | None = None,
    eta: Eta | None = None,
) -> jobs.Job:
    """Return a job; with a moment of the fleet, one that waits says what it waits for."""
    return jobs.Job(
        id=row.id,
        name=row.name,
        team=row.team,
        state=row.state,
        attempts=tuple(_attempt(one) for one in attempts),
        reason=_reason(row, attempts, token, moment),
        eta=eta_told(eta) or _promised(row, moment),
    )


def array_told(base: str, whole: ArrayStory) -> jobs.Job:
    """Return an array as one: where it stands, and how many of its members stand where."""
    counted = ", ".join(f"{count:,} {state}" for state, count in whole.states.items())
    return jobs.Job(
        id=base,
        name=whole.first.name,
        team=whole.first.team,
        state=whole.state,
        attempts=(),
        reason=jobs.Reason(code="array", sentence=f"of {whole.count:,} members: {counted}"),
        array=jobs.Members(
            count=whole.count,
            states={str(state): count for state, count in whole.states.items()},
            failed=whole.failed,
        ),
    )


def eta_told(eta: Eta | None) -> jobs.Eta | None:
    """Return a forecast."""
    if eta is None:
        return None
    return jobs.Eta(
        p50_at=_iso(eta.p50_ms),
        p90_at=_iso(eta.p90_ms),
        basis=eta.basis,
        calibrated=eta.calibrated,
    )


def node_told(row: NodeRow) -> nodes.Node:
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
        sentence=row.sentence,
        test=_tested(row.acceptance),
    )


def _tested(acceptance: Acceptance | None) -> nodes.NodeTest | None:
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
        sentence=verdict.reason.sentence,
        figures=_figures(acceptance),
        unmeasured=tuple(one.sentence for one in acceptance.test.unmeasured),
        notes=verdict.notes,
    )


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


def token_told(token: Token) -> tokens.Token:
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


def _promised(row: JobRow, moment: Moment | None) -> jobs.Eta | None:
    """Return the start that a waiting job was promised, which costs nothing to say."""
    promise = moment.fleet.promises.get(row.id) if moment is not None else None
    if promise is None or row.state != "pending":
        return None
    at = _iso(promise.start_ms)
    return jobs.Eta(p50_at=at, p90_at=at, basis="promised by then", calibrated=False)


def _reason(
    row: JobRow, attempts: Sequence[AttemptRow], token: Token, moment: Moment | None
) -> jobs.Reason:
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
        return jobs.Reason(code=found.code, sentence=sentence)
    if row.reason:
        sentence = _own_words(row, token, moment)
        if not sentence and row.reason == "failed":
            sentence = failed_words(attempts)
        sentence = sentence or _SENTENCES.get(row.reason, "")
        return jobs.Reason(code=row.reason, sentence=sentence)
    return jobs.Reason(code=row.state, sentence=_STANDS.get(row.state, ""))


def _own_words(row: JobRow, token: Token, moment: Moment | None) -> str:
    """Return what the journal says of a job, without the names of other teams' jobs."""
    if token.sees_all_teams:
        return row.sentence
    fleet = None if moment is None else moment.fleet
    return masked_sentence(row.sentence, row.id, fleet, token.team)


def _iso(at_ms: int) -> str:
    at = datetime.fromtimestamp(at_ms / 1_000, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
