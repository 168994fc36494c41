"""Notes on a batch script: what fails first, and few on what is ignored."""

import pytest

from tenfold.files.sbatch.notes import ordered_notes
from tenfold.files.sbatch.script import read_script
from tenfold.files.sbatch.translate import batch_job


def notes_on(text: str) -> list[str]:
    job = batch_job(read_script("run.sh", text), (), (), folder="/data", site=None)
    return ordered_notes(job.notes)


def test_module_is_noted_with_its_line():
    notes = notes_on("#!/bin/bash\n# module load x\n./a && module load cuda\nmodule load b\n")
    assert len(notes) == 1
    assert notes[0].startswith("line 3: `module` is not available in jobs")


@pytest.mark.parametrize(
    "text",
    [
        "#!/bin/bash -l\nmodule load cuda\n",
        "#!/bin/bash\nsource /etc/profile.d/modules.sh\nmodule load cuda\n",
        "#!/usr/bin/env python3\nmodule = 1\n",
        "#!/bin/bash\necho module load\n",
    ],
)
def test_a_script_that_sets_up_module_or_does_not_call_it_has_no_note(text: str):
    assert notes_on(text) == []


def test_notes_on_commands_that_fail_come_first_and_ignored_options_are_one_note():
    lines = "#SBATCH --mail-type=END --comment=x --signal=B:USR1@60\n"
    notes = notes_on(f"#!/bin/bash\n{lines}srun ./a\nsqueue\nsinfo\nmodule load x\ncd ~/run\n")
    begins = [
        "line 6: `module`",
        "`squeue`, `sinfo` are no programs here",
        "`srun` is a function",
        "`~` and `$HOME`",
        "--signal=B:USR1@60: ",
        "ignored, with no effect on what runs: --mail-type=END, --comment=x",
    ]
    assert len(notes) == len(begins)
    assert all(note.startswith(begin) for note, begin in zip(notes, begins, strict=True))


def test_few_notes_say_why_an_option_is_ignored():
    notes = notes_on("#!/bin/bash\n#SBATCH --mail-type=END --comment=x\n")
    assert notes[1] == "--comment=x: ignored: comments are not stored"


TWO_NODES = "#!/bin/bash\n#SBATCH -N 2 --gpus-per-node=8\n"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("export MASTER_PORT=29500", "`MASTER_PORT=29500` is a fixed port"),
        ('MASTER_PORT="29500" srun ./x', "remove the line"),
        ("torchrun --master_port 29500 x.py", "`--master_port 29500` is a fixed port"),
        ("torchrun --master-port=29500 x.py", "use that"),
        ("torchrun --rdzv_endpoint=$head:29500 x.py", "`--rdzv_endpoint=$head:29500` is a fixed"),
        ("torchrun --rdzv-endpoint $head:29500 x.py", "two jobs with the same port"),
    ],
)
def test_a_fixed_port_is_noted_with_its_line_and_what_to_do(line: str, says: str):
    found = [note for note in notes_on(f"{TWO_NODES}{line}\n") if "fixed port" in note]
    assert len(found) == 1
    assert found[0].startswith("line 3: ")
    assert says in found[0]
    assert "$MASTER_PORT" in found[0]


@pytest.mark.parametrize(
    "line",
    [
        "# export MASTER_PORT=29500",
        "export MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000))",
        "export MASTER_PORT=${MASTER_PORT:-29500}",
        "torchrun --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT x.py",
    ],
)
def test_a_port_that_differs_between_jobs_has_no_note(line: str):
    assert not [note for note in notes_on(f"{TWO_NODES}{line}\n") if "fixed port" in note]


def test_a_step_on_fewer_nodes_is_noted_with_its_line():
    for step in ("srun -N1 -n1", "srun --ntasks=1", "srun -N 1 --exact"):
        found = notes_on(f"{TWO_NODES}srun ./a\n{step} ./b\nsrun -n1 ./c\n")
        (note,) = [one for one in found if "the first node only" in one]
        assert note.startswith(f"line 4: `{step}` runs on the first node")
    assert not [one for one in notes_on(f"{TWO_NODES}x=$(srun -n 1 ./a)\n") if "only;" in one]
    assert not [one for one in notes_on(f"{TWO_NODES}srun -N2 -n16 ./a\n") if "only;" in one]


def test_a_script_on_several_nodes_is_said_to_run_on_each():
    (note,) = notes_on(f"{TWO_NODES}./a\n")
    assert "all of the script runs on each of the 2 nodes, in Slurm only on the first" in note
    assert "`srun -N1 -n1`" in note


def test_a_quote_that_does_not_end_is_a_character_of_the_interpreter():
    assert read_script("run.sh", '#!/bin/ba"sh -e\ntrue\n').interpreter == ('/bin/ba"sh', "-e")
