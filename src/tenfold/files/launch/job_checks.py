"""Check a job's names, so that none can break a launch file.

Slurm reads `#SBATCH` lines without a shell and Kubernetes rejects most characters, so
names are checked once for all formats instead of being quoted in each.
"""

import re

from tenfold.model.errors import InputError
from tenfold.model.job.launch import LaunchJob

# A Kubernetes service name starts with a letter, and its pods append a suffix.
_NAME = re.compile(r"[a-z]([a-z0-9-]{0,48}[a-z0-9])?\Z")
_LABEL = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?\Z")
_PLACES = {
    "partition": re.compile(r"[A-Za-z0-9_.,-]+\Z"),
    "namespace": re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\Z"),
    "queue": _LABEL,
    "team": _LABEL,
}
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+#-]*\Z")


def check_job(job: LaunchJob) -> None:
    """Raise an input error for the first field that is not valid in a launch file."""
    if not _NAME.match(job.name):
        raise InputError(
            "bad-name",
            f"job name `{job.name}` is not valid for all launchers",
            "use a letter, then up to 49 lower-case letters, digits and dashes: `llama-70b`",
            field="name",
        )
    for field, pattern in _PLACES.items():
        value: str = getattr(job, field)
        if value and not pattern.match(value):
            raise InputError(
                "bad-name",
                f"{field} `{value}` has characters that Slurm or Kubernetes reject",
                "use lower-case letters, digits and dashes",
                field=field,
            )
    if job.image and not _IMAGE.match(job.image):
        raise InputError(
            "bad-name",
            f"`{job.image}` is not a valid image name",
            "write it as `registry/name:tag`",
            field="image",
        )
    _check_variables(job)
    _check_amounts(job)


def _check_variables(job: LaunchJob) -> None:
    for key, value in job.env.items():
        if not _VARIABLE.match(key) or "\0" in value:
            raise InputError(
                "bad-name",
                f"`{key}` is not a valid environment variable",
                "use letters, digits and underscores, and a value without null characters",
                field="env",
            )
    if any("\0" in word for word in (*job.script, job.work_dir)):
        raise InputError(
            "bad-name",
            "null characters are not allowed in a command or folder",
            "remove it from `script` or `work_dir`",
            field="script",
        )


def _check_amounts(job: LaunchJob) -> None:
    for field, amount in (
        ("steps", job.steps),
        ("save_steps", job.save_steps),
        ("time_limit_s", job.time_limit_s),
    ):
        if amount is not None and amount < 1:
            raise InputError(
                "bad-amount",
                f"`{field}` must be at least 1, got {amount}",
                f"raise `{field}`",
                field=field,
            )
