"""Ray Train: a driver that runs the program in the workers of a TorchTrainer.

Ray starts the processes and sets up the process group, so there is no torchrun: each
worker runs the program directly.
"""

from tenfold.files.launch.job_checks import check_job
from tenfold.files.launch.limits import Unsupported, launcher_unsupported, refuse_unsupported
from tenfold.files.launch.shell import comments
from tenfold.files.launch.trainers import launcher_payload
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

_DRIVER = '''\
"""Train a Tenfold plan with Ray Train: python ray_train.py [--cpu]."""

import runpy
import sys
from pathlib import Path

import ray
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

NAME = {name!a}
ARGV = {argv!a}
ENV = {env!a}
FOLDER = {folder!a} or str(Path(__file__).resolve().parent)
WORKERS = {workers}


def train(config: dict) -> None:
    """Run the program in this worker; Ray has set its rank and the process group."""
    sys.argv = list(config["argv"])
    runpy.run_path(sys.argv[0], run_name="__main__")


def main() -> None:
    """Start one worker for each accelerator of the plan, packed on as few nodes as possible."""
    ray.init(runtime_env={{"working_dir": FOLDER, "env_vars": ENV}})
    trainer = TorchTrainer(
        train,
        train_loop_config={{"argv": ARGV}},
        scaling_config=ScalingConfig(
            num_workers=WORKERS,
            use_gpu="--cpu" not in sys.argv,
            placement_strategy="PACK",
        ),
        run_config=RunConfig(name=NAME),
    )
    trainer.fit()


if __name__ == "__main__":
    main()
'''


def render(plan: TrainPlan, job: LaunchJob) -> dict[str, str]:
    """Return the driver and the files that its workers run."""
    check_job(job)
    refuse_unsupported(unsupported(plan, job), plan, "ray-train")
    payload = launcher_payload(plan, job, "ray-train")
    driver = _DRIVER.format(
        name=job.name,
        argv=list(payload.argv),
        env={**payload.env, **job.env},
        folder=job.work_dir,
        workers=plan.gpus,
    )
    notes = "".join(f"{line}\n" for line in comments(payload.notes))
    return {"ray_train.py": notes + driver, **payload.files}


def unsupported(plan: TrainPlan, job: LaunchJob) -> list[Unsupported]:
    """Return why Ray's workers cannot run the job's program for this plan."""
    reasons = launcher_unsupported(plan, job)
    if job.trainer == "torchtitan":
        sentence = "TorchTitan creates its own process group, but Ray's workers already have one"
        reasons.append(Unsupported("own-process-group", sentence))
    return reasons
