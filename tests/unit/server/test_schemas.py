"""Jobs as they are told: a start that was reserved is said without being asked for."""

import pytest
from msgspec.structs import replace

from tenfold.fleet.fleet import Fleet
from tenfold.journal.rows import JobRow
from tenfold.model.actions import ReserveStart
from tenfold.model.events import ActionOrdered, JobSubmitted, NodeJoined
from tenfold.model.ids import JobId
from tenfold.model.job.job import JobState, Slot
from tenfold.model.policy.policy import Policy
from tenfold.model.reason import Causes, Reason, Text
from tenfold.model.units import HOUR, Millis
from tenfold.server.auth.tokens import Role, Token
from tenfold.server.background.follower import FleetSnapshot
from tenfold.server.schemas import to_job
from tenfold.testing.builders import job, nodes

TOKEN = Token(
    id="t", name="t", team="red", role=Role.viewer, created_ms=0, expires_ms=1, revoked_ms=None
)


def row(number: int, state: JobState = "pending") -> JobRow:
    return JobRow(
        id=JobId(f"job-{number}"),
        seq=number,
        number=number,
        team="red",
        user_name="",
        name="job",
        state=state,
        gpus_milli=1_000,
        submitted_ms=0,
        changed_ms=0,
        changed_seq=number,
    )


def test_a_listing_tells_the_start_that_a_waiting_job_was_promised():
    fleet, at = Fleet(), Millis(0)
    node, *_ = nodes(1)
    fleet.apply(NodeJoined(at, node))
    for number in (1, 2):
        fleet.apply(JobSubmitted(at, job(number, 1, team="red")))
    reservation = ReserveStart(JobId("job-1"), (Slot(node.id, 1),), Millis(HOUR), at)
    fleet.apply(ActionOrdered(at, reservation))
    snapshot = FleetSnapshot(fleet, at, Policy())
    reserved = to_job(row(1), (), TOKEN, snapshot).eta
    assert reserved is not None
    assert reserved.p50_at == reserved.p90_at == "1970-01-01T01:00:00.000Z"
    assert to_job(row(2), (), TOKEN, snapshot).eta is None
    assert to_job(row(1, "starting"), (), TOKEN, snapshot).eta is None


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        ("out-of-memory", "out-of-memory"),
        ("allocation-failed", "allocation-failed"),
        ("start-failed", "failed"),
    ],
)
def test_a_job_that_failed_for_want_of_memory_has_that_as_its_reason(cause: str, code: str):
    why = Reason(cause, {"said": Text("it used more than it requested")})
    ended = replace(row(1, "failed"), reason="failed", fields={"cause": Causes((why,))})
    found = to_job(ended, (), TOKEN, None).reason
    assert found.code == code
