"""What users of Slurm type: bare times, ranges, dependencies and `#SBATCH` lines."""

import os
from pathlib import Path

import pytest

from tenfold.cli.job.options import JobOptions, array_of, keys_of
from tenfold.cli.job.scripts import note_standard_input
from tenfold.cli.job.words import job_input
from tenfold.cli.main import main
from tenfold.files.jobs.submission import with_options
from tenfold.model.errors import InputError

Printed = pytest.CaptureFixture[str]
LEGACY = """#!/bin/bash
#SBATCH --job-name=train
#SBATCH -N 2 --gres=gpu:h100:8
#SBATCH --time 1-00:00:00
#SBATCH --array=0-19
#SBATCH --mail-type=END
srun python train.py
#SBATCH --mem=1G
"""


def test_a_bare_time_on_the_command_line_is_minutes():
    assert keys_of(JobOptions(time_limit="10"))["time_limit"] == "10m"
    assert keys_of(JobOptions(time_limit="1:30:00"))["time_limit"] == "1:30:00"


def test_a_time_out_of_range_names_the_option(capsys: Printed):
    assert main(["job", "submit", "--dry-run", "-t", "1:99", "--", "true"]) == 2
    printed = capsys.readouterr().err
    assert "`--time-limit` expects a duration" in printed
    assert "use minutes, or a duration" in printed


def test_a_range_as_array_keeps_its_indexes_and_its_limit():
    assert array_of("20") == 20
    assert array_of("1-9:2%3") == "1-9:2%3"
    with pytest.raises(InputError, match="neither an index nor a range"):
        array_of("1..9")


def test_a_dependency_in_the_form_of_slurm_is_taken():
    assert keys_of(JobOptions(after=("afterok:a-1:a-2", "b-1")))["after"] == ["a-1", "a-2", "b-1"]
    keys = keys_of(JobOptions(after=("afterok:1,2,afterany:a-1:a-2,singleton",)))
    assert keys == {"after": ["1", "2"], "after_any": ["a-1", "a-2"], "singleton": True}
    with pytest.raises(InputError, match="`afternotok` is not supported"):
        keys_of(JobOptions(after=("afternotok:a-1",)))


@pytest.mark.parametrize("interpreter", [("bash",), ()])
def test_the_sbatch_lines_of_a_script_apply_and_options_replace_them(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch, interpreter: tuple[str, ...]
):
    monkeypatch.setenv("TENFOLD_STATE_DIR", str(tmp_path / "none"))
    script = tmp_path / "legacy.sh"
    script.write_text(LEGACY)
    script.chmod(0o755)
    words = (*interpreter, str(script), "--lr", "1")
    job = job_input(words, JobOptions(nodes=1), {}, is_command=True)
    options = job.source.options
    assert (options["name"], options["nodes"], options["array"]) == ("train", 1, "0-19")
    assert (options["gpus_per_node"], options["accelerator"]) == (8.0, ["h100"])
    assert (options["time_limit"], options.get("memory_gib_per_node")) == ("1-00:00:00", None)
    command = options["command"]
    assert isinstance(command, list)
    assert command[-4:] == [LEGACY, "legacy.sh", "--lr", "1"]
    printed = capsys.readouterr().err
    assert "note: --mail-type=END: ignored: no mail is sent" in printed
    assert "note: `srun` is a function here" in printed


def test_what_cannot_be_honoured_is_refused_with_its_line_unless_it_is_to_be_ignored(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TENFOLD_STATE_DIR", str(tmp_path / "none"))
    script = tmp_path / "old.sh"
    script.write_text("#!/bin/bash\n#SBATCH -p gpu\n#SBATCH --begin=now+1hour\ntrue\n")
    words = ["job", "submit", "--dry-run", "--", "bash", str(script)]
    assert main(words) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"error: {script}:2: no partition `gpu`",
        "hint: remove it; choose nodes with --gpus-per-node=TYPE:NUMBER or --constraint=TAG",
        f"error: {script}:3: `--begin=now+1hour` is not supported",
        "hint: submit it at that time; to submit it without what is not supported,"
        " add --ignore-directives",
    ]
    assert main([*words[:3], "--ignore-directives", *words[3:]]) == 0
    assert "note: ignored: no partition `gpu`" in capsys.readouterr().err


def test_a_script_without_such_lines_prints_nothing(tmp_path: Path, capsys: Printed):
    script = tmp_path / "plain.sh"
    script.write_text("echo '#SBATCH --nodes 2'\n")
    job = job_input(("bash", str(script)), JobOptions(), {}, is_command=True)
    assert job.source.options["command"] == ["bash", str(script)]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["srun"], "hint: use `tenfold job run -- COMMAND`; see docs/how-to/slurm-users.md"),
        (["job", "submit", "--gres=gpu:1", "--", "x"], "hint: use --gpus-per-node, and"),
        (["job", "submit", "-n", "4", "--", "x"], "hint: a job has one process per node"),
    ],
)
def test_a_command_or_option_of_slurm_says_what_to_use_instead(
    words: list[str], hint: str, capsys: Printed
):
    assert main(words) == 2
    assert hint in capsys.readouterr().err


def test_a_job_that_is_run_with_a_pipe_says_that_it_is_not_connected(
    monkeypatch: pytest.MonkeyPatch, capsys: Printed
):
    reads, writes = os.pipe()
    os.write(writes, b"echo hello\n")
    os.close(writes)
    with open(reads) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        note_standard_input(["bash", "train.sh"], always=False)
        assert capsys.readouterr().err == ""
        note_standard_input(["bash"], always=False)
    assert "standard input is not connected to the job" in capsys.readouterr().err


def test_one_word_after_the_dashes_is_a_command(monkeypatch: pytest.MonkeyPatch):
    words = job_input(("/somewhere/else/tool",), JobOptions(), {}, is_command=True)
    assert words.source.options["command"] == ["/somewhere/else/tool"]
    with pytest.raises(InputError):
        job_input(("/somewhere/else/tool",), JobOptions(), {})


def test_hints_for_a_command_line_name_options():
    hint = 'use `time_limit = "23h"`, set `preemptible = false`; or set `kind = "batch"`'
    assert with_options(hint) == (
        'use `--time-limit 23h`, use `--no-preemptible`; or set `kind = "batch"` in a job file'
    )


def test_to_leave_out_an_option_is_no_advice_for_a_value_that_is_mistyped(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TENFOLD_STATE_DIR", str(tmp_path / "none"))
    assert main(["sbatch", "--test-only", "--mem=64X", "--wrap", "true"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: `--mem=64X` is not a size",
        "hint: write --mem=4G",
    ]
