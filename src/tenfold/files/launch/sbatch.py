"""Slurm: one batch script that starts torchrun once on each node."""

import shlex

from tenfold.files.launch.job_checks import check_job
from tenfold.files.launch.payload import processes_per_node, torchrun_sizes
from tenfold.files.launch.shell import HEADER, command, comments, quoted, settings
from tenfold.files.launch.trainers import launcher_payload
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

# Jobs on the same node must use different ports.
_RENDEZVOUS = (
    'mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")',
    'endpoint="${nodes[0]}:$((20000 + SLURM_JOB_ID % 20000))"',
)


def render(plan: TrainPlan, job: LaunchJob) -> dict[str, str]:
    """Return the batch script and the files it needs; submit it from their folder."""
    check_job(job)
    payload = launcher_payload(plan, job, "sbatch")
    start = [
        "srun",
        "--kill-on-bad-exit=1",
        *_container(job),
        "torchrun",
        *torchrun_sizes(plan),
        '--rdzv-id="$SLURM_JOB_ID"',
        "--rdzv-backend=c10d",
        '--rdzv-endpoint="$endpoint"',
        *quoted(payload.argv),
    ]
    first, *rest = HEADER
    lines = [first, *_directives(plan, job), *_missing(job), "", *rest]
    lines += [*comments(payload.notes), *settings(job, payload.env)]
    return {"job.sbatch": "\n".join((*lines, *_RENDEZVOUS, command(start))) + "\n", **payload.files}


def _directives(plan: TrainPlan, job: LaunchJob) -> list[str]:
    options = {
        "job-name": job.name,
        "nodes": str(plan.nodes),
        "ntasks-per-node": "1",
        "gpus-per-node": str(processes_per_node(plan)),
        "time": _clock(job.time_limit_s),
        "partition": job.partition,
        "account": job.team,
        "output": "%x-%j.out",
    }
    # A shared node would slow down the whole gang.
    whole = ["#SBATCH --exclusive"] if processes_per_node(plan) == plan.gpus_per_node else []
    return [f"#SBATCH --{name}={value}" for name, value in options.items() if value] + whole


def _missing(job: LaunchJob) -> list[str]:
    """Return comments on directives that only the user's site can fill in."""
    given = {"partition": job.partition, "account": job.team, "time": job.time_limit_s}
    names = [name for name, value in given.items() if not value]
    if not names:
        return []
    listed = ", ".join(f"--{name}" for name in names)
    return comments([f"PLACEHOLDER: add {listed} if your cluster has no default"])


def _clock(seconds: int | None) -> str:
    """Return a time limit in Slurm's format, rounded up to whole minutes."""
    if seconds is None:
        return ""
    minutes = -(-seconds // 60)
    days, rest = divmod(minutes, 24 * 60)
    return f"{days}-{rest // 60:02}:{rest % 60:02}:00"


def _container(job: LaunchJob) -> list[str]:
    if not job.image:
        return []
    folder = shlex.quote(job.work_dir) if job.work_dir else '"$PWD"'
    return [
        f"--container-image={shlex.quote(job.image)}",
        f"--container-mounts={folder}:{folder}",
        f"--container-workdir={folder}",
    ]
