"""`--export=ALL` passes the variables of the shell that submits."""

import pytest

from tenfold.files.sbatch.environment import OF_ROOT, passed_on
from tenfold.files.sbatch.script import read_script
from tenfold.files.sbatch.translate import batch_job


def test_variables_of_another_job_of_this_shell_or_of_tenfold_stay_behind():
    given = {
        "WANDB_API_KEY": "k",
        "HOME": "/data/ann",
        "TENFOLD_TOKEN": "secret",
        "SLURM_JOB_ID": "7",
        "MASTER_PORT": "29500",
        "CUDA_VISIBLE_DEVICES": "0",
        "PWD": "/data",
        "BASH_FUNC_module%%": "() { :; }",
        "PS1": "\x1b[1m$",
        "TEXT": "two\nlines",
    }
    assert "HOME" not in passed_on(given, OF_ROOT)
    assert passed_on(given) == {"WANDB_API_KEY": "k", "HOME": "/data/ann", "TEXT": "two\nlines"}


@pytest.mark.parametrize("export", ["ALL", "ALL,LR=1", "LR=1,ALL"])
def test_export_all_passes_the_environment_and_says_that_it_is_stored(
    monkeypatch: pytest.MonkeyPatch, export: str
):
    monkeypatch.setenv("WANDB_API_KEY", "k")
    monkeypatch.setenv("LR", "2")
    script = read_script("run.sh", f"#!/bin/bash\n#SBATCH --export={export}\n")
    job = batch_job(script, (), (), folder="/data", site=None)
    env = job.keys["env"]
    assert isinstance(env, dict)
    assert env["WANDB_API_KEY"] == "k"
    assert env["LR"] == ("1" if "LR" in export else "2")
    assert env["SLURM_SUBMIT_DIR"] == "/data"
    (note,) = job.notes
    assert note.endswith("variables; the journal stores them with the job")


def test_without_export_only_what_is_needed_is_passed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WANDB_API_KEY", "k")
    job = batch_job(read_script("run.sh", "#!/bin/bash\n"), (), (), folder="/data", site=None)
    env = job.keys["env"]
    assert isinstance(env, dict)
    assert "WANDB_API_KEY" not in env


def test_an_image_keeps_its_own_programs(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("WANDB_API_KEY", "k")
    script = read_script("run.sh", "#!/bin/bash\n#SBATCH --export=ALL --container-image=torch\n")
    env = batch_job(script, (), (), folder="/data", site=None).keys["env"]
    assert isinstance(env, dict)
    assert "WANDB_API_KEY" in env
    assert not {"PATH", "HOME"} & env.keys()
