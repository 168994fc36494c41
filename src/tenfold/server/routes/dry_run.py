"""What would become of a job if it were handed in now: nothing is handed in, nothing written.

The submission is read as if it were meant, and the real policy is asked over a copy of the
fleet in which it waits. So a dry run and the real thing cannot come to differ.
"""

from anyio import to_thread
from litestar import Router, post

from tenfold.decide.place.job_keys import passed_over
from tenfold.fleet.topology.topology import TopologyCapacity
from tenfold.journal.store import last_seq
from tenfold.model.api import jobs
from tenfold.model.api.jobs import CouldHold, DryRun
from tenfold.model.job.job import Shape
from tenfold.model.reason import Reason
from tenfold.report.reasons.render import render
from tenfold.server.auth.access import Asked, needs
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.background.follower import Moment
from tenfold.server.dependencies import comes_after, with_after
from tenfold.server.problems import Problem
from tenfold.server.routes.jobs import Forecast, read_submissions
from tenfold.server.routes.why import Seek, plain_why
from tenfold.server.runtime.deps import Control, Given
from tenfold.server.schemas import eta_told, iso
from tenfold.server.submissions import HandedIn
from tenfold.study.why.remedies import RemedySearch

NODES_SHOWN_MOST = 100
"""Nodes that are named; the others are counted."""


@post("/jobs/dry-run", opt=needs(Role.member), status_code=200, operation_id="dryRunJob")
async def dry_run_job(
    request: Asked, control: Given, seek: Seek = "cheapest", eta: Forecast = True
) -> DryRun:
    """Say what would become of a job if it were handed in now; nothing is written."""
    asked, _ = await read_submissions(await request.body(), request.user)
    if asked.is_batch:
        reason = Reason(
            "not-an-object", sentence="a dry run is of one job, and the body holds several"
        )
        raise Problem(422, reason, "ask for one after the other")
    return await to_thread.run_sync(_tried, control, request.user, asked, seek, eta)


def _tried(
    control: Control, token: Token, asked: HandedIn, seek: RemedySearch, eta: bool
) -> DryRun:
    if comes_after(asked):
        asked = with_after(asked, control.store, token)
    (one,) = asked.submissions
    with control.store.reading() as connection:
        newest = last_seq(connection)
    moment = control.follower.moment(newest)
    with control.gate.entered():
        found = moment.dry_run(one, seek, with_eta=eta)
        never = found.why.state == "never"
        could_hold = CouldHold() if never else _could_hold(moment, one.shape)
    reason = found.why.reason
    return DryRun(
        name=one.run_spec.name,
        team=one.team,
        count=one.array,
        outcome=found.why.state,
        at=iso(moment.at_ms),
        nodes=tuple(slot.node for slot in found.why.slots),
        could_hold=could_hold,
        reason=jobs.Reason(code=reason.code, sentence=render(reason, token.reader, one.team)),
        why=plain_why(found, moment, token),
        eta=eta_told(found.eta),
        is_brief=found.is_brief,
        notes=passed_over(control.follower.policy, one),
    )


def _could_hold(moment: Moment, shape: Shape) -> CouldHold:
    splits = TopologyCapacity.of(moment.fleet).splits(shape)
    names = [name for split in splits for name in split.node_index.names]
    return CouldHold(count=len(names), nodes=tuple(names[:NODES_SHOWN_MOST]))


ROUTES = Router("/api/v1", route_handlers=[dry_run_job])
