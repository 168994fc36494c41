"""What `job run` prints about the job itself."""

import pytest

from tenfold.cli.job.foreground import Interrupts, _Foreground  # pyright: ignore[reportPrivateUsage]
from tenfold.client.client import Client
from tenfold.model.api.jobs import Attempt, Job, Reason
from tenfold.model.job.job import JobState

AT = "2026-11-18T03:20:00.000Z"


def told(state: JobState, number: int, ended: str | None, sentence: str) -> Job:
    attempt = Attempt(
        number=number, started_at=AT, ended_at=ended, nodes=("n1",), exit_code=None, reason=""
    )
    return Job(
        id="pretrain-68",
        name="pretrain",
        team="admin",
        state=state,
        attempts=(attempt,),
        reason=Reason(code="any", sentence=sentence),
        elapsed_s=201.0,
    )


def test_a_stopped_attempt_and_the_next_start_are_printed_once(
    capsys: pytest.CaptureFixture[str],
):
    client = Client("http://127.0.0.1:1", "none")
    shown = _Foreground(client, "pretrain-68", Interrupts(), label=False)
    stop = "preempted under policy `tenfold` for job `debug-69`"
    for job in (
        told("running", 1, None, "running"),
        told("pending", 1, AT, f"{stop}; needs 32 GPUs"),
        told("pending", 1, AT, f"{stop}; needs 32 GPUs"),
        told("running", 2, None, "running"),
        told("running", 2, None, "running"),
    ):
        shown._report_restart(job)  # pyright: ignore[reportPrivateUsage]
    assert capsys.readouterr().err.splitlines() == [
        f"`pretrain-68` attempt 1 stopped after 3m21s: {stop}; waiting to restart",
        "`pretrain-68` attempt 2 started",
    ]
