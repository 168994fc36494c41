"""Write a plan as launch files."""

from pathlib import Path

from msgspec.structs import replace

from tenfold.cli.output import print_note
from tenfold.files.core.write import write_new_file
from tenfold.files.launch.formats import render_format, unsupported
from tenfold.model.errors import InputError
from tenfold.model.job.launch import LaunchJob, Trainer
from tenfold.model.reason import Misfit
from tenfold.study.plan.train import TrainPlanResult

TRAINERS: tuple[Trainer, ...] = ("example", "megatron", "torchtitan", "deepspeed")


def export_plan(
    planned: TrainPlanResult, name: str, folder: Path, job: LaunchJob, *, force: bool = False
) -> None:
    """Write the files of one format into a folder, creating it if needed."""
    assert not isinstance(planned.answer, Misfit), "a misfit has been reported by now"
    plan = planned.answer.plans[0].plan
    # A launcher starts any trainer: use the simplest one that supports this plan.
    jobs = [replace(job, trainer=trainer) for trainer in TRAINERS]
    able = [job for job in jobs if not unsupported(plan, name, job)]
    files = render_format(plan, name, able[0] if able else jobs[0])
    if folder.exists() and not folder.is_dir():
        raise InputError(
            "cannot-write", f"`{folder}` is not a folder", "choose a folder with `--out`"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            "cannot-write",
            f"cannot create the folder `{folder}`: {error.strerror or error}",
            "choose another folder with `--out`",
        ) from None
    for file, text in files.items():
        write_new_file(folder / file, text, force=force)
        print_note(f"wrote {folder / file}")
