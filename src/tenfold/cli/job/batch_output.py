"""What is different about the job of a batch script: its command, and files with its output.

The command of such a job is the text of its script. With `--output` it is wrapped in a shell that
opens the files, whose names are known once it runs: the first lines of the job log.
"""

import codecs
import os
import re
import stat
from collections.abc import Iterator
from time import sleep

from msgspec import UNSET, Struct

from tenfold.cli.output import print_log, print_note
from tenfold.client.client import Client
from tenfold.model.api.jobs import Job

WRAPPER, OPENS = "sbatch", 'exec "$@"'
"""The name and the last line of the shell that opens the files."""
MARK = "SLURM_SUBMIT_DIR"
"""A variable that all jobs of batch scripts have."""
HEAD_BYTES = 4 << 20
"""As much of a log as can be read; with `--error` alone, output follows the name of the file."""
TAIL_BYTES = 64 << 10
"""Bytes of a log that the control plane returns by default; as many of a file are printed."""
LINES_BYTES = 4 << 20
"""Bytes in which the last lines are looked for."""
POLL_S = 0.5
_NAMES = re.compile(r"^(output is|errors are) written to (.+)$", re.MULTILINE)
_OF_NODE = ("SLURMD_NODENAME", "SLURM_NODEID", "SLURM_PROCID")


class Reading(Struct, frozen=True, kw_only=True):
    """What of a log to print: which process, which attempt, and how much of its end."""

    member: int = 0
    attempt: int | None = None
    tail: int | None = None
    """Bytes."""
    lines: int | None = None
    raw: bool = False


class OutputFiles(Struct, frozen=True):
    """The files that one process of a job writes; empty names for none."""

    output: str = ""
    errors: str = ""
    is_of_node: bool = False
    """Whether each node has its own."""
    not_opened: str = ""
    """What the shell that opens them said: why it could not."""

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield what each file has, and its path."""
        if self.output:
            yield "output", self.output
        if self.errors and self.errors != self.output:
            yield "errors", self.errors


def batch_command(job: Job) -> tuple[str, ...]:
    """Return the command of a job; that of a batch script is its name with its arguments."""
    command = () if job.requested is UNSET else job.requested.command
    if job.requested is UNSET or MARK not in job.requested.env:
        return command
    _, command = _unwrapped(command)
    if "-c" in command[:3]:
        place = command.index("-c")
        if len(command) > place + 2:
            return command[place + 2 :]
    return command


def output_files(client: Client, job: Job, how: Reading | None = None) -> OutputFiles:
    """Return the files that a process of a job writes; none before it runs."""
    if job.requested is UNSET or not job.attempts or job.array:
        return OutputFiles()
    opening, _ = _unwrapped(job.requested.command)
    if not opening:
        return OutputFiles()
    how = how or Reading()
    log = client.logs(job.id, member=how.member, attempt=how.attempt, tail=HEAD_BYTES)
    found: dict[str, str] = {}
    for what, path in _NAMES.findall(log):
        found.setdefault(what, path)
    is_of_node = any(name in opening for name in _OF_NODE)
    # A name that the wrapper does not print is text of the job itself.
    output = found.get("output is", "") if 'echo "output is written' in opening else ""
    errors = found.get("errors are", "") if 'echo "errors are written' in opening else ""
    # Once it is open, the file has all output.
    left = "".join(one for one in log.splitlines(keepends=True) if not _NAMES.match(one))
    return OutputFiles(output, errors, is_of_node, left if output else "")


def awaited_files(client: Client, job: Job, how: Reading) -> OutputFiles:
    """Return the files of a process once it runs; none if the job ends before that."""
    if job.requested is UNSET or not _unwrapped(job.requested.command)[0]:
        return OutputFiles()
    while True:
        found = output_files(client, job, how)
        if job.is_over or found.output or found.errors:
            return found
        sleep(POLL_S)
        job = client.job(job.id, attempts=1)


def print_output_files(files: OutputFiles, how: Reading) -> None:
    """Print the ends of these files, or say why they cannot be read here."""
    for what, path in files.named():
        text, why = _end_of(path, how)
        are = "are" if what == "errors" else "is"
        if why:
            print_note(f"{what} {are} written to `{path}`, which cannot be read here: {why}")
            continue
        print_note(f"{what} {are} in `{path}`")
        print_log([text], raw=how.raw)
    if files.not_opened:
        print_log([files.not_opened], raw=how.raw)
    if files.is_of_node:
        print_note("each node has its own file; use --member for the others")


def follow_output(client: Client, job_id: str, files: OutputFiles, how: Reading) -> None:
    """Print a job's output file as it grows, until the job ends."""
    path = files.output
    text, why = _end_of(path, how)
    if why:
        print_note(f"output is written to `{path}`, which cannot be read here: {why}")
        said = output_files(client, client.wait(job_id), how).not_opened
        print_log([said] if said else [], raw=how.raw)
        return
    print_note(f"output is in `{path}`")
    print_log(_growing(client, job_id, path, text), raw=how.raw)


def _growing(client: Client, job_id: str, path: str, begin: str) -> Iterator[str]:
    """Yield what a file has, and what is added to it until its job ends."""
    yield begin
    at = os.path.getsize(path)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while True:
        # Asked before the file is read: what was written before the end is printed.
        is_over = client.job(job_id, attempts=1).is_over
        size = os.path.getsize(path)
        # A job that started again may write the file anew.
        at = 0 if size < at else at
        with open(path, "rb") as file:
            file.seek(at)
            while chunk := file.read(TAIL_BYTES):
                at += len(chunk)
                yield decoder.decode(chunk)
        if is_over:
            return
        sleep(POLL_S)


def _end_of(path: str, how: Reading) -> tuple[str, str]:
    """Return the end of a file, or why it cannot be read."""
    lines, tail = how.lines, how.tail
    most = LINES_BYTES if lines is not None else TAIL_BYTES if tail is None else tail
    try:
        # A pipe must not be waited for.
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(opened, "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                return "", "it is not a file"
            file.seek(max(0, found.st_size - most))
            text = file.read(most).decode(errors="replace")
    except OSError as error:
        return "", (error.strerror or str(error)).lower()
    if lines is None:
        return text, ""
    return "".join(text.splitlines(keepends=True)[-lines:] if lines else ()), ""


def _unwrapped(command: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """Return the text that opens the files of a command, and the command itself."""
    for place, word in enumerate(command[:-2]):
        if word == "-c" and command[place + 2] == WRAPPER and command[place + 1].endswith(OPENS):
            return command[place + 1], command[place + 3 :]
    return "", command
