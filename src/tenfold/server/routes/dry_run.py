"""Report what would happen to a job if it were submitted now; nothing is submitted or written.

The submission is parsed like a real one, and the real policy decides over a copy of the fleet with
the job in the queue. So a dry run and a submission cannot disagree.
"""

from anyio import to_thread
from litestar import Router, post
from msgspec import UNSET

from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.journal.store import last_seq
from tenfold.model.api import jobs
from tenfold.model.api.jobs import CouldHold, DryRun
from tenfold.model.job.job import Shape
from tenfold.model.reason import Reason
from tenfold.report.reasons.registry import shown_code
from tenfold.report.reasons.render import render
from tenfold.server.auth.access import AuthedRequest, requires_role
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.background.follower import FleetSnapshot
from tenfold.server.dependencies import has_dependencies, resolve_dependencies
from tenfold.server.problems import Problem
from tenfold.server.programs import check_programs, needs_programs
from tenfold.server.routes.jobs import Forecast, read_submissions, with_team_notes
from tenfold.server.routes.why import Seek, plain_why
from tenfold.server.runtime.admission import EXPENSIVE
from tenfold.server.runtime.deps import Control, ControlDep
from tenfold.server.schemas import iso, to_eta
from tenfold.server.submissions import SubmissionRequest, notes_on
from tenfold.server.workdirs import needs_workdirs, with_workdirs
from tenfold.study.why.remedies import RemedySearch

NODES_SHOWN_MAX = 100
"""Nodes listed by name; `count` has the total."""


@post(
    "/jobs/dry-run",
    opt=requires_role(Role.member) | EXPENSIVE,
    status_code=200,
    operation_id="dryRunJob",
)
async def dry_run_job(
    request: AuthedRequest, control: ControlDep, seek: Seek = "cheapest", eta: Forecast = True
) -> DryRun:
    """Report what would happen to a job if it were submitted now; nothing is written."""
    parsed, _ = await read_submissions(await request.body(), request.user)
    if parsed.is_batch:
        reason = Reason(
            "not-an-object", sentence="a dry run takes one job, and the body has several"
        )
        raise Problem(422, reason, "send one request per job")
    body = await request.body()
    return await to_thread.run_sync(_dry_run, control, request.user, parsed, body, seek, eta)


def _dry_run(
    control: Control,
    token: Token,
    parsed: SubmissionRequest,
    body: bytes,
    seek: RemedySearch,
    eta: bool,
) -> DryRun:
    if has_dependencies(parsed):
        parsed = resolve_dependencies(parsed, control.store, token)
    if any(one.team != token.team for one in parsed.submissions):
        parsed = with_team_notes(parsed, control)
    if needs_workdirs(parsed):
        parsed = with_workdirs(parsed, control.machine, control.folder_check)
    if needs_programs(parsed, control.machine):
        check_programs(parsed, control.machine, control.program_check)
    parsed, advice = control.feasibility.advised(parsed, body, token.reader)
    (one,) = parsed.submissions
    with control.store.reading() as connection:
        newest = last_seq(connection)
    snapshot = control.follower.snapshot(newest)
    with control.limiter.slot():
        found = snapshot.dry_run(one, seek, with_eta=eta)
        never = found.why.state == "never"
        could_hold = CouldHold() if never else _could_hold(snapshot, one.shape)
    reason = found.why.reason
    return DryRun(
        name=one.run_spec.name,
        team=one.team,
        count=one.array,
        outcome=found.why.state,
        at=iso(snapshot.at_ms),
        nodes=tuple(slot.node for slot in found.why.slots),
        could_hold=could_hold,
        reason=jobs.Reason(
            code=shown_code(reason.code), sentence=render(reason, token.reader, one.team)
        ),
        why=plain_why(found, snapshot, token),
        eta=to_eta(found.why.eta),
        eta_unknown=found.why.eta_unknown or UNSET,
        is_brief=found.is_brief,
        notes=(*notes_on(parsed, 0, control.follower.policy), *advice),
    )


def _could_hold(snapshot: FleetSnapshot, shape: Shape) -> CouldHold:
    splits = TopologyCapacity.of(snapshot.fleet).splits(shape)
    names = [name for split in splits for name in split.node_index.names]
    return CouldHold(count=len(names), nodes=tuple(names[:NODES_SHOWN_MAX]))


ROUTES = Router("/api/v1", route_handlers=[dry_run_job])
