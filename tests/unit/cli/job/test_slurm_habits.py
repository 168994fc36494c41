"""What users of Slurm type: bare times, ranges, dependencies and `#SBATCH` lines."""

import os
from pathlib import Path

import pytest

from tenfold.cli.job.options import JobOptions, array_of, keys_of
from tenfold.cli.job.scripts import directives, note_directives, note_standard_input
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


def test_a_range_as_array_gets_its_size_as_a_hint():
    assert array_of("20") == 20
    with pytest.raises(InputError) as caught:
        array_of("0-19")
    assert caught.value.hint == "use `--array 20`"


def test_a_dependency_in_the_form_of_slurm_is_taken():
    assert keys_of(JobOptions(after=("afterok:a-1:a-2", "b-1")))["after"] == ["a-1", "a-2", "b-1"]
    with pytest.raises(InputError, match="`afterany` is not supported"):
        keys_of(JobOptions(after=("afterany:a-1",)))


def test_ignored_sbatch_lines_are_named_with_the_options_to_use(tmp_path: Path, capsys: Printed):
    script = tmp_path / "legacy.sh"
    script.write_text(LEGACY)
    note_directives(["bash", str(script)], {"nodes": 2})
    printed = capsys.readouterr().err
    assert "--job-name=train, --gres=gpu:h100:8, --time 1-00:00:00, --array=0-19" in printed
    assert "--mail-type=END; use" in printed
    assert "`--name train --gpus-per-node 8 --time-limit 1-00:00:00 --array 20` before" in printed
    assert "--mem" not in printed


def test_a_script_without_such_lines_prints_nothing(tmp_path: Path, capsys: Printed):
    script = tmp_path / "plain.sh"
    script.write_text("echo '#SBATCH --nodes 2'\n")
    note_directives(["bash", str(script)], {})
    assert not list(directives("#!/bin/bash\nx=1\n#SBATCH -N 2\n"))
    assert capsys.readouterr().err == ""


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
