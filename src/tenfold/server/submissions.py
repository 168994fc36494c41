"""Parse submissions from request bodies, report all errors at once, and build the response.

A batch is accepted as a whole or not at all: a client that fixes one line can resend it, knowing
that no part of it is running already.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tenfold.decide.place.job_keys import ignored_keys
from tenfold.files.core.read_errors import json_problem
from tenfold.files.core.rows import read_row
from tenfold.files.jobs.submission import submission_of
from tenfold.model.api.jobs import Submitted
from tenfold.model.api.problems import Fault
from tenfold.model.events import JobSubmitted
from tenfold.model.fleet.finding import Finding
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.array_spec import fold_indexes
from tenfold.model.job.submission import ARRAY_MOST, Submission, last_member
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Reason
from tenfold.model.units import Millis
from tenfold.server.auth.tokens import Token
from tenfold.server.problems import Problem, validation_problem

BATCH_MAX = 10_000
"""Submissions in one request."""
EVENT_BYTES_MAX = 256 << 20
"""Size of all events of one request, with every member of an array in full. An assumption: a body
has 4 MiB. The journal and its snapshots store what members share once; replay bundles and the
answers to clients have each member in full."""
NUMBER, TIME_MS = 10**9, Millis(10**13)
"""A job number and a time as long as they get, to size an event before it has its own."""
MEMBERS_SHOWN_MAX = 1_000
"""Members of an array listed in the response; the others follow from `count`."""

FINDINGS_MAX = 1_000
"""Errors after which the rest of a batch is not read: it is refused anyway."""

Row = TypeVar("Row", bound=Struct)


class SubmissionRequest(Struct, frozen=True):
    """The submissions of one request."""

    submissions: tuple[Submission, ...]
    is_batch: bool
    notes: Mapping[int, str] = {}
    """Notices about submissions, by position."""
    workdir_notes: Mapping[int, str] = {}
    """Why a job does not run in the folder that it was submitted from, by position."""
    rerun_notes: Mapping[int, str] = {}
    """Which reruns stand for dependencies that failed, by position."""
    team_notes: Mapping[int, str] = {}
    """Which teams are not known, by position."""


def parse_submissions(body: bytes, token: Token) -> SubmissionRequest:
    """Return the submissions in a body; raise a problem that lists all errors."""
    values = decode_object(body)
    batch = values.get("jobs")
    is_batch = "jobs" in values
    rows = _batch(values, batch) if is_batch else [values]
    found: list[Submission] = []
    findings: list[Finding] = []
    for place, row in enumerate(rows):
        wrong: list[Finding] = []
        one = submission_of(row, TeamId(token.team), token.name, wrong)
        if is_batch:
            wrong = [replace(each, path=("jobs", place, *each.path)) for each in wrong]
        findings += wrong
        if len(findings) > FINDINGS_MAX:
            break
        if one is not None:
            _check_team(one, token)
            found.append(one)
    if findings:
        raise validation_problem(findings, "the submission")
    return SubmissionRequest(sized(found), is_batch)


def digest_of(body: bytes) -> str:
    """Return a digest of the content of a body, independent of formatting."""
    canonical = msgspec.json.encode(decode_object(body), order="deterministic")
    return hashlib.sha256(canonical).hexdigest()


def submitted(
    request: SubmissionRequest, jobs: Sequence[JobId], policy: Policy
) -> tuple[Submitted, ...]:
    """Return the response for each submission, from the ids of all jobs in order."""
    made: list[Submitted] = []
    names: Iterator[JobId] = iter(jobs)
    for place, one in enumerate(request.submissions):
        own = [next(names) for _ in range(one.array or 1)]
        name, team = one.run_spec.name, one.team
        notes = notes_on(request, place, policy)
        if not one.array:
            made.append(Submitted(id=own[0], name=name, team=team, state="pending", notes=notes))
            continue
        made.append(
            Submitted(
                id=own[0].rpartition("[")[0],
                name=name,
                team=team,
                state="pending",
                count=one.array,
                members=tuple(own[:MEMBERS_SHOWN_MAX]),
                indexes=_ranges(one.indexes),
                notes=notes,
            )
        )
    return tuple(made)


def _ranges(indexes: tuple[int, ...]) -> str:
    """Return indexes as ranges; a single one too, since a number alone is a count."""
    text = fold_indexes(indexes)
    return f"{text}-{text}" if text.isdecimal() else text


def notes_on(request: SubmissionRequest, place: int, policy: Policy) -> tuple[str, ...]:
    """Return the notices about one submission of a request."""
    kinds = (request.team_notes, request.rerun_notes, request.notes, request.workdir_notes)
    own = (notes.get(place) for notes in kinds)
    ignored = ignored_keys(policy, request.submissions[place])
    return (*(one for one in own if one is not None), *ignored)


def read_body(row_type: type[Row], body: bytes, what: str) -> Row:
    """Return a body as a value; raise a problem that lists all errors."""
    findings: list[Finding] = []
    row = read_row(row_type, decode_object(body), (), findings)
    if row is None or findings:
        raise validation_problem(findings, what)
    return row


def decode_object(body: bytes) -> dict[str, object]:
    """Return the JSON object in a body."""
    try:
        values: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"the body is not valid JSON: {json_problem(error)}"
        reason = Reason("not-json", sentence=message)
        raise Problem(400, reason, "send a JSON object") from None
    if not isinstance(values, dict):
        reason = Reason("not-an-object", sentence="the body is JSON, but not an object")
        raise Problem(422, reason, 'send an object: `{"command": ["true"]}`')
    return cast("dict[str, object]", values)


def _batch(values: dict[str, object], batch: object) -> list[dict[str, object]]:
    faults = [
        Fault(field=key, code="unknown-key", message=f"`{key}` is not allowed next to `jobs`")
        for key in values
        if key != "jobs"
    ]
    rows = cast("list[object]", batch) if isinstance(batch, list) else None
    if rows is None:
        message = "`jobs` is not a list"
        faults.append(Fault(field="jobs", code="wrong-value", message=message))
    elif not 1 <= len(rows) <= BATCH_MAX:
        message = f"`jobs` has {len(rows):,} entries; it must have 1 to {BATCH_MAX:,}"
        faults.append(Fault(field="jobs", code="wrong-value", message=message))
    else:
        faults += [
            Fault(field=f"jobs[{place}]", code="wrong-value", message="expected an object")
            for place, row in enumerate(rows)
            if not isinstance(row, dict)
        ]
    if faults or rows is None:
        reason = Reason(faults[0].code, sentence=faults[0].message)
        raise Problem(422, reason, 'send `{"jobs": [{"command": [...]}, ...]}`', faults=faults)
    return cast("list[dict[str, object]]", rows)


def _check_team(one: Submission, token: Token) -> None:
    if token.sees_all_teams or one.team == token.team:
        return
    message = f"the token belongs to team `{token.team}`, but the job names team `{one.team}`"
    reason = Reason("other-team", sentence=message)
    fault = Fault(field="team", code=reason.code, message=message)
    raise Problem(403, reason, "remove `team`, or use a token of that team", faults=[fault])


def sized(found: Sequence[Submission]) -> tuple[Submission, ...]:
    """Return submissions with the size of their events; raise if it is too much for a request."""
    count = sum(one.array or 1 for one in found)
    if count > ARRAY_MOST:
        message = f"{count:,} jobs in one request; the limit is {ARRAY_MOST:,}"
        raise Problem(
            422, Reason("too-many-jobs", sentence=message), "split them into several requests"
        )
    written = 0
    made: list[Submission] = []
    for one in found:
        made.append(replace(one, event_bytes=_event_bytes(one)))
        written += made[-1].all_bytes
        if written > EVENT_BYTES_MAX:
            message = f"the events of these jobs would have over {EVENT_BYTES_MAX >> 20:,} MiB"
            hint = "submit fewer jobs per request, or move what they share to a file"
            raise Problem(422, Reason("too-many-jobs", sentence=message), hint)
    return tuple(made)


def _event_bytes(one: Submission) -> int:
    """Return the size of the event that records a job, or one member of an array."""
    last = last_member(one, NUMBER, TIME_MS)
    return len(msgspec.json.encode(JobSubmitted(TIME_MS, last.job, last.run_spec)))
