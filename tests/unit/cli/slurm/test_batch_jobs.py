"""Batch scripts on a control plane: their output files, steps, dependencies and teams."""

import threading
from collections.abc import Generator
from pathlib import Path

import pytest

from patience import until
from tenfold.cli.job import batch_output
from tenfold.cli.main import main
from unit.up_process import Up, commands_find, running

Printed = pytest.CaptureFixture[str]
SCRIPT = "#!/bin/bash\n#SBATCH --cpus-per-task=1 --export=NONE\n"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Generator[Up, None, None]:
    with running(tmp_path_factory.mktemp("up") / "home", "--virtual-nodes", "2") as made:
        yield made


@pytest.fixture(autouse=True)
def _at(  # pyright: ignore[reportUnusedFunction]
    up: Up, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands_find(up, monkeypatch)
    tmp_path.chmod(0o777)
    monkeypatch.chdir(tmp_path)


def said(capsys: Printed, *words: str, status: int = 0) -> tuple[str, str]:
    assert main(words) == status
    printed = capsys.readouterr()
    return printed.out, printed.err


def sbatch(capsys: Printed, name: str, body: str, *options: str, status: int = 0) -> str:
    """Run a batch script to its end; return the job."""
    Path(name).write_text(SCRIPT + body)
    words = ("sbatch", "--parsable", "--wait", *options, name)
    return said(capsys, *words, status=status)[0].split()[0]


def test_job_logs_prints_the_output_file_and_job_show_names_it(capsys: Printed):
    body = "#SBATCH -o %x_%j.out\nfor one in 1 2 3; do echo line $one; done; exit 3\n"
    job = sbatch(capsys, "crash.sh", body, status=3)
    path = str(Path(f"crash.sh_{job.rpartition('-')[2]}.out").absolute())
    out, err = said(capsys, "job", "logs", job)
    assert out == "line 1\nline 2\nline 3\n"
    assert f"note: output is in `{path}`" in err
    assert said(capsys, "job", "logs", job, "--lines", "1")[0] == "line 3\n"
    assert said(capsys, "job", "logs", job, "--tail", "2")[0] == "3\n"
    assert said(capsys, "job", "logs", job, "--follow")[0] == out
    shown = said(capsys, "job", "show", job)[0].splitlines()
    assert f"output: {path}" in shown
    assert "command: crash.sh" in shown
    Path(path).unlink()
    gone = f"output is written to `{path}`, which cannot be read here: no such file or directory"
    assert gone in said(capsys, "job", "logs", job)[1]


def test_the_log_of_a_job_whose_output_file_cannot_be_opened_says_why(capsys: Printed):
    body = "#SBATCH -o missing/%j.out\necho hello\n"
    job = sbatch(capsys, "lost.sh", body, status=1)
    for options in ([], ["--follow"]):
        out, err = said(capsys, "job", "logs", job, *options)
        assert "missing/" in out
        assert "No such file or directory" in out
        assert "which cannot be read here" in err


def test_errors_in_a_file_of_their_own_are_printed_after_the_output(capsys: Printed):
    body = "#SBATCH -o out.txt -e err.txt\necho right; echo wrong >&2\n"
    job = sbatch(capsys, "two.sh", body)
    out, err = said(capsys, "job", "logs", job)
    assert out == "right\nwrong\n"
    assert "errors are in" in err
    # Without --output, the job log has the output, and the name of the other file.
    job = sbatch(capsys, "one.sh", "#SBATCH -e err.txt\necho right\n")
    assert said(capsys, "job", "logs", job)[0].splitlines()[1:] == ["right"]


def test_an_output_file_is_followed_until_its_job_ends(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(batch_output, "POLL_S", 0.01)
    body = "#SBATCH -o grow.txt\necho begun\nuntil [ -e go ]; do sleep 0.05; done\necho done\n"
    Path("grow.sh").write_text(SCRIPT + body)
    job = said(capsys, "sbatch", "--parsable", "grow.sh")[0].strip()

    def let_go() -> None:
        until((tmp_path / "grow.txt").exists)
        (tmp_path / "go").touch()

    helper = threading.Thread(target=let_go)
    helper.start()
    out = said(capsys, "job", "logs", "-f", job)[0]
    helper.join()
    assert out == "begun\ndone\n"


def test_a_step_of_one_task_runs_once_in_a_job_of_two_nodes(capsys: Printed):
    body = (
        "#SBATCH -N 2 --gpus-per-node=1 -o steps.txt\n"
        "srun -N1 -n1 bash -c 'echo once $SLURM_PROCID of $SLURM_NTASKS'\n"
        "srun bash -c 'echo each of $SLURM_NTASKS'\n"
    )
    sbatch(capsys, "steps.sh", body)
    assert sorted(Path("steps.txt").read_text().splitlines()) == [
        "each of 2",
        "each of 2",
        "once 0 of 1",
    ]


def test_what_is_unlike_slurm_is_said_unless_it_is_chosen(capsys: Printed):
    Path("a.sh").write_text("#!/bin/bash\n#SBATCH -c 1\ntrue\n")
    out, err = said(capsys, "sbatch", "a.sh")
    assert out.startswith("Submitted batch job")
    assert "note: without -o, `tenfold job logs` has the output" in err
    assert "not all your variables as in Slurm: --export=ALL" in err
    assert said(capsys, "sbatch", "-o", "x.txt", "--export=HOME", "a.sh")[1] == ""
    assert said(capsys, "sbatch", "--parsable", "a.sh")[1] == ""


def test_the_environment_is_passed_with_export_all(
    capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("WANDB_PROJECT", "llama")
    body = 'echo "$WANDB_PROJECT in $SLURM_JOB_NAME"\n'
    job = sbatch(capsys, "env.sh", body, "--export=ALL", "-J", "now")
    assert said(capsys, "job", "logs", job)[0] == "llama in now\n"


def test_a_dependency_on_a_failed_job_names_the_rerun_that_counts(capsys: Printed):
    body = "#SBATCH -J flaky\n[ -e ok ] || exit 1\n"
    failed = sbatch(capsys, "flaky.sh", body, status=1)
    Path("ok").touch()
    again = said(capsys, "job", "rerun", failed)[0].split("`")[1]
    until(lambda: "succeeded" in said(capsys, "job", "show", again)[0])
    number = failed.rpartition("-")[2]
    Path("next.sh").write_text(SCRIPT)
    err = said(capsys, "sbatch", "-d", f"afterok:{number}", "next.sh")[1]
    assert f"note: `{failed}` did not succeed and was rerun: its rerun `{again}` counts" in err


def test_a_team_that_nothing_names_is_noted(capsys: Printed):
    Path("a.sh").write_text(SCRIPT)
    err = said(capsys, "sbatch", "--account=foo", "a.sh")[1]
    assert "note: no other job, token or quota names team `foo`" in err
    assert "names team" not in said(capsys, "sbatch", "--account=foo", "a.sh")[1]


def test_a_job_that_ran_out_of_memory_is_listed_as_such(capsys: Printed):
    body = "#SBATCH --mem=300M -o memory.txt\nexec python3 -c 'b = bytearray(1 << 30)'\n"
    Path("big.sh").write_text(SCRIPT + body)
    main(["sbatch", "--parsable", "--wait", "big.sh"])
    job = capsys.readouterr().out.split()[0]
    shown = said(capsys, "job", "show", job)[0]
    assert "[out-of-memory]" in shown or "[allocation-failed]" in shown
    assert job in said(capsys, "job", "list", "-t", "oom", "-o", "job")[0]
    line = said(capsys, "squeue", "-h", "-t", "OOM")[0]
    assert line.split()[0] == job
    assert line.split()[4] == "OOM"
