"""The options of `job run` and `job submit` that describe a job: the keys of a job file.

Their values are checked with those of the file, by the reader of job files. Only what that reader
cannot know is checked here: the form of `--env` and `--mem`.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from tenfold.cli.job.scripts import array_size
from tenfold.model.errors import InputError

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
        float | None, Parameter(name=("--gpus", "-G"), help="GPUs of the whole job")
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
    mem: Annotated[str | None, Parameter(help="The same with a unit, such as 64G or 512M")] = None
    time_limit: Annotated[
        str | None,
        Parameter(
            name=("--time-limit", "--time", "-t"),
            help="Longest run time: 90m, 12h, 2d or Slurm's 1-12:00:00; a number is minutes",
        ),
    ] = None
    priority: Annotated[int | None, Parameter(help="Higher starts first in your team")] = None
    preemptible: Annotated[
        bool | None,
        Parameter(
            negative="--no-preemptible",
            help="Whether the job may be stopped for another job (default: only with a checkpoint,"
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
            name=("--after", "-d"), help="Job that must succeed first (repeatable)", negative=""
        ),
    ] = ()
    needs: Annotated[
        tuple[str, ...], Parameter(help="Tag that nodes must have (repeatable)", negative="")
    ] = ()
    snapshot: Annotated[
        bool,
        Parameter(
            negative="--no-snapshot",
            help="Record the git revision and the uncommitted changes of your folder"
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
        keys["after"] = [name for one in options.after for name in _dependency(one)]
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


def array_of(text: str) -> int:
    """Return the size of an array as it is given on the command line."""
    if text.isdecimal() and text.isascii():
        return int(text)
    size = array_size(text)
    hint = "write the number of members; their indexes begin at 0"
    raise InputError(
        "wrong-value",
        f"`--array` must be the number of members, got `{text}`",
        hint if size is None else f"use `--array {size}`",
        field="--array",
    )


def _dependency(text: str) -> list[str]:
    """Return the jobs that `--after` names, also in Slurm's form `afterok:1:2`."""
    kind, colon, rest = text.partition(":")
    if kind == "afterok" and rest:
        return [name for one in rest.split(",") for name in one.removeprefix("afterok:").split(":")]
    if colon and kind in ("after", "afterany", "afternotok", "aftercorr"):
        raise InputError(
            "wrong-value",
            f"`{kind}` is not supported: a job starts after others have succeeded",
            f"use `--after {rest or 'JOB'}`",
            field="--after",
        )
    return [text]


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
