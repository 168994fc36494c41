"""Write shell scripts with correct quoting."""

import shlex
from collections.abc import Mapping, Sequence

from tenfold.files.launch.payload import PORT, Payload, torchrun_sizes
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

HEADER = ("#!/usr/bin/env bash", "set -euo pipefail")


def torchrun_script(plan: TrainPlan, job: LaunchJob, payload: Payload) -> str:
    """Return a script that starts the payload on this node.

    Over several nodes the same script runs on each, with MASTER_ADDR naming the first.
    """
    lines = [*HEADER, *comments(payload.notes), *settings(job, payload.env)]
    rendezvous = ["--standalone"]
    if plan.nodes > 1:
        lines.append(': "${MASTER_ADDR:?set MASTER_ADDR to the name of the first node}"')
        lines.append(f': "${{MASTER_PORT:={PORT}}}"')
        rendezvous = [
            f"--rdzv-id={shlex.quote(job.name)}",
            "--rdzv-backend=c10d",
            '--rdzv-endpoint="$MASTER_ADDR:$MASTER_PORT"',
        ]
    words = ["torchrun", *torchrun_sizes(plan), *rendezvous, *quoted(payload.argv), '"$@"']
    return "\n".join((*lines, command(["exec", *words]))) + "\n"


def comments(notes: Sequence[str]) -> list[str]:
    """Return notes as comments of a shell script."""
    return [f"# {' '.join(note.split())}" for note in notes]


def settings(job: LaunchJob, env: Mapping[str, str]) -> list[str]:
    """Return the lines that enter the job's folder and export its variables.

    The job's variables override the trainer's.
    """
    lines = [f"cd -- {shlex.quote(job.work_dir)}"] if job.work_dir else []
    merged = {**env, **job.env}
    return [*lines, *(f"export {key}={shlex.quote(value)}" for key, value in merged.items())]


def quoted(words: Sequence[str]) -> list[str]:
    """Return the words quoted for a shell."""
    return [shlex.quote(word) for word in words]


def command(words: Sequence[str]) -> str:
    """Return one command over several lines, one option per line.

    The words are used as shell text: quote untrusted ones first.
    """
    lines: list[list[str]] = [[]]
    for word in words:
        if word.startswith("-") and lines[-1]:
            lines.append([])
        lines[-1].append(word)
    return " \\\n    ".join(" ".join(line) for line in lines)
