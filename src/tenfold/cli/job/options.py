"""The options of `job run` and `job submit` that describe a job: the keys of a job file.

Their values are checked with those of the file, by the reader of job files. Only what that reader
cannot know is checked here: the form of `--env` and `--mem`.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

from cyclopts import Parameter

from tenfold.files.sbatch.values import read_dependency
from tenfold.model.errors import InputError
from tenfold.model.job.array_spec import read_array
from tenfold.model.job.submission import ARRAY_MOST

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)(K|M|G|T)(?:i?B)?\Z", re.IGNORECASE)
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?\Z")
_GIB = {"k": 1 / (1 << 20), "m": 1 / (1 << 10), "g": 1.0, "t": 1_024.0}


@dataclass(frozen=True, kw_only=True)
class JobOptions:
    """Keys of a job file; with a file, they override it."""

    name: Annotated[
        str | None, Parameter(name=("--name", "-J"), help="Job name (default: job)")
    ] = None
    team: Annotated[
        str | None, Parameter(name=("--team", "-A"), help="Team (default: your token's)")
    ] = None
    nodes: Annotated[int | None, Parameter(name=("--nodes", "-N"), help="Number of nodes")] = None
    gpus: Annotated[
        float | None, Parameter(name=("--gpus", "-G"), help="Total GPUs for the job")
    ] = None
    gpus_per_node: Annotated[float | None, Parameter(help="GPUs on each node")] = None
    accelerator: Annotated[
        tuple[str, ...], Parameter(help="Acceptable accelerator types (repeatable)", negative="")
    ] = ()
    cpus_per_node: Annotated[
        float | None,
        Parameter(name=("--cpus-per-node", "--cpus", "-c"), help="CPUs on each node (default: 1)"),
    ] = None
    memory_gib_per_node: Annotated[float | None, Parameter(help="Memory on each node, in GiB")] = (
        None
    )
    mem: Annotated[
        str | None, Parameter(help="Memory on each node with a unit, such as 64G or 512M")
    ] = None
    time_limit: Annotated[
        str | None,
        Parameter(
            name=("--time-limit", "--time", "-t"),
            help="Longest run time: 90m, 12h, 2d or Slurm's 1-12:00:00; a number is minutes",
        ),
    ] = None
    priority: Annotated[
        int | None,
        Parameter(
            help="Higher starts first: within your team (`governed`) or across all jobs "
            "(`slurm`); ignored by other policies"
        ),
    ] = None
    preemptible: Annotated[
        bool | None,
        Parameter(
            negative="--no-preemptible",
            help="Whether the job may be preempted (default: only with a checkpoint,"
            " or to return borrowed quota)",
        ),
    ] = None
    env: Annotated[
        tuple[str, ...],
        Parameter(
            name=("--env", "-e"),
            help="Variable for the job, as NAME=VALUE, or NAME for your own value (repeatable)",
            negative="",
        ),
    ] = ()
    workdir: Annotated[
        str | None,
        Parameter(
            name=("--workdir", "--chdir", "-D"),
            help="Working directory (default: yours, if the control plane is on this machine)",
        ),
    ] = None
    image: Annotated[str | None, Parameter(help="Container image")] = None
    after: Annotated[
        tuple[str, ...],
        Parameter(
            name=("--after", "--dependency", "-d"),
            help="Job that must succeed first (repeatable); also Slurm's `afterany:JOB` "
            "(succeeded or not) and `singleton`",
            negative="",
        ),
    ] = ()
    needs: Annotated[
        tuple[str, ...], Parameter(help="Tag that nodes must have (repeatable)", negative="")
    ] = ()
    snapshot: Annotated[
        bool,
        Parameter(
            negative="--no-snapshot",
            help="Record the git revision and the uncommitted changes of your directory"
            " (default: yes)",
        ),
    ] = True


NO_OPTIONS = JobOptions()


def keys_of(options: JobOptions) -> dict[str, object]:
    """Return the keys of a job file that the options set."""
    if options.mem is not None and options.memory_gib_per_node is not None:
        raise InputError(
            "two-questions",
            "`--mem` and `--memory-gib-per-node` cannot be used together: they mean the same",
            "use one of them",
        )
    lists = ("accelerator", "after", "needs")
    keys: dict[str, object] = {key: list(found) for key in lists if (found := _get(options, key))}
    if options.after:
        keys.pop("after")
        keys |= _dependencies(options.after)
    single = ("name", "team", "nodes", "gpus", "gpus_per_node", "cpus_per_node")
    single += ("memory_gib_per_node", "time_limit", "priority", "preemptible", "image")
    keys |= {key: value for key in single if (value := getattr(options, key)) is not None}
    if options.time_limit is not None and _NUMBER.match(options.time_limit):
        # As in Slurm; in a job file a number is seconds.
        keys["time_limit"] = f"{options.time_limit}m"
    if options.mem is not None:
        keys["memory_gib_per_node"] = _gib(options.mem)
    if options.workdir is not None:
        # Relative to the submitter's folder, as everywhere on a command line.
        keys["workdir"] = str(Path(options.workdir).expanduser().absolute())
    if options.env:
        keys["env"] = dict(_variable(one) for one in options.env)
    return keys


def array_of(text: str) -> int | str:
    """Return the members of an array as they are given on the command line."""
    try:
        found = read_array(text, ARRAY_MOST)
    except ValueError as error:
        raise InputError(
            "wrong-value",
            f"`--array` is `{text[:60]}`: {error}",
            "write the number of tasks, or indexes such as 0-19, 1-9:2, 1,3,7 or 0-19%4",
            field="--array",
        ) from None
    return found.count if text.strip().isdecimal() else text.strip()


def _dependencies(texts: tuple[str, ...]) -> dict[str, object]:
    """Return the keys for `--after`: names of jobs, or Slurm's form `afterok:1:2,afterany:3`."""
    after, after_any, is_singleton = list[str](), list[str](), False
    for text in texts:
        if ":" not in text and text != "singleton":
            after += [name for name in text.split(",") if name]
            continue
        found = read_dependency(text)
        if isinstance(found, str):
            raise InputError(
                "wrong-value",
                f"`--after {text}`: {found}",
                "use a job, afterok:JOB, afterany:JOB or singleton",
                field="--after",
            )
        after += cast("list[str]", found["after"])
        after_any += cast("list[str]", found["after_any"])
        is_singleton = is_singleton or found["singleton"] is True
    keys: dict[str, object] = {"after": after, "after_any": after_any, "singleton": is_singleton}
    return {key: value for key, value in keys.items() if value}


def _get(options: JobOptions, key: str) -> tuple[str, ...]:
    found: tuple[str, ...] = getattr(options, key)
    return found


def _variable(text: str) -> tuple[str, str]:
    name, is_set, value = text.partition("=")
    if is_set:
        return name, value
    own = os.environ.get(name)
    if own is None:
        raise InputError(
            "wrong-value",
            f"`--env {name}` passes your own value of `{name}`, but it is not set",
            f"set it, or write `--env {name}=VALUE`",
            field="--env",
        )
    return name, own


def _gib(text: str) -> float:
    match = _SIZE.match(text.strip())
    if match is None:
        raise InputError(
            "wrong-value",
            f"`--mem` must be a size with a unit, got `{text}`",
            "write it as 64G or 512M",
            field="--mem",
        )
    return float(match[1]) * _GIB[match[2].lower()]
