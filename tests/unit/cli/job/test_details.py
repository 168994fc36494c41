"""`tenfold job show` prints what a job requested, and what its limits mean."""

import pytest
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from tenfold.cli.job.batch_output import OutputFiles, batch_command
from tenfold.cli.job.details import show_job
from tenfold.model.api.jobs import Attempt, Job, Reason, Requested


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        ("job", "4 GiB of memory (limits the job as a whole)\n"),
        ("process", "4 GiB of memory (limits each process, not the job as a whole)\n"),
        (UNSET, "4 GiB of memory\n"),
    ],
)
def test_the_memory_of_a_job_says_what_it_limits(
    capsys: pytest.CaptureFixture[str], scope: str | UnsetType, text: str
):
    show_job(
        Job(
            id="a-1",
            name="a",
            team="t",
            state="running",
            attempts=(),
            reason=Reason(code="running", sentence="running"),
            requested=Requested(memory_gib=4.0, memory_limit_of=scope),
        )
    )
    assert f"resources: {text}" in capsys.readouterr().out


LIMITED = "memory: each process was limited to 1 GiB; the output shows whether this was the cause\n"


def ended(code: int | None, *, reason: str = "failed", scope: str = "process") -> Job:
    attempt = Attempt(
        number=1, started_at=None, ended_at=None, nodes=("a", "b"), exit_code=code, reason="failed"
    )
    return Job(
        id="a-1",
        name="a",
        team="t",
        state="failed",
        attempts=(attempt,),
        reason=Reason(code=reason, sentence="the command failed"),
        requested=Requested(memory_gib=2.0, memory_limit_of=scope),
    )


@pytest.mark.parametrize(
    ("job", "is_said"),
    [
        (ended(1), True),
        (ended(137, scope="job"), False),
        (ended(1, reason="allocation-failed"), False),
        (ended(1, reason="out-of-memory"), False),
        (ended(0), False),
        (ended(None), False),
    ],
)
def test_a_failure_under_a_limit_of_each_process_names_it(
    capsys: pytest.CaptureFixture[str], job: Job, *, is_said: bool
):
    show_job(job)
    assert (LIMITED in capsys.readouterr().out) is is_said


def test_a_batch_script_is_shown_by_its_name_with_its_output_files(
    capsys: pytest.CaptureFixture[str],
):
    script = "#!/bin/bash\necho one\n"
    opens = 'out="/data/x"\necho "output is written to $out"\nexec >"$out"\nexec "$@"'
    wrapped = ("/bin/bash", "-c", opens, "sbatch", "/bin/bash", "-c", script, "train.sh", "--lr")
    for command in (wrapped, wrapped[4:]):
        job = replace(ended(1), requested=Requested(command=command, env=("SLURM_SUBMIT_DIR",)))
        show_job(job, OutputFiles(output="/data/x", errors="/data/y"))
        lines = capsys.readouterr().out.splitlines()
        assert "command: train.sh --lr" in lines
        assert ("output: /data/x" in lines, "errors: /data/y" in lines) == (True, True)
    plain = replace(ended(1), requested=Requested(command=("bash", "-c", "a\nb", "x")))
    assert batch_command(plain) == ("bash", "-c", "a\nb", "x")
