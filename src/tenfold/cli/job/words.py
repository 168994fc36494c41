"""What the words after `job submit` and `job run` are: a job file, standard input or a command."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from tenfold.cli.job.live import JobInput
from tenfold.cli.job.options import JobOptions, keys_of
from tenfold.cli.job.scripts import note_standard_input
from tenfold.cli.output import print_note
from tenfold.cli.slurm.batch import script_among, shebang_script, translated
from tenfold.client.endpoint import find_endpoint
from tenfold.files.core.document import (
    SUFFIXES,
    Document,
    decode,
    parse_document,
    read_document,
)
from tenfold.files.jobs.submission import job_source
from tenfold.files.jobs.task import is_task, read_task
from tenfold.model.errors import InputError, TenfoldError

STDIN = "/dev/stdin"
STDIN_BYTES_MAX = 4 << 20
"""A submission is no larger."""
SHELL_VARIABLES = ("PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV")
"""Variables that decide which program a command is. A command of this machine gets them."""


def job_input(
    words: tuple[str, ...],
    options: JobOptions,
    more: Mapping[str, object],
    *,
    is_command: bool = False,
    ignores: bool = False,
) -> JobInput:
    """Return the job that the words of `job submit` describe; `more` are further keys.

    `is_command` says that the words came after `--`; `ignores`, that `#SBATCH` options which are
    not supported are left out.
    """
    if not words:
        raise InputError(
            "no-job",
            "no job file and no command given",
            "pass a job file, `-` for standard input, or a command after `--`",
        )
    if words == (STDIN,):
        return _file_input(_standard_input(), options, more)
    named = len(words) == 1 and Path(words[0]).suffix.lower() in SUFFIXES
    if named or (len(words) == 1 and not is_command and is_job_file(words[0], options)):
        return _file_input(read_document(Path(words[0])), options, more)
    note_standard_input(words, always=False)
    return command_input(words, options, more, ignores=ignores)


def _file_input(document: Document, options: JobOptions, more: Mapping[str, object]) -> JobInput:
    """Return the job of a job file, or of a task file in the layout of SkyPilot."""
    keys = {**keys_of(options), **more}
    if is_task(document.values):
        env = keys.get("env")
        task = read_task(document, cast("dict[str, object]", env) if isinstance(env, dict) else {})
        for note in task.notes:
            print_note(note)
        document = task.document
        document.values = with_own_programs(document.values)
    return JobInput(job_source(document, keys), options.snapshot)


def command_input(
    words: tuple[str, ...],
    options: JobOptions,
    more: Mapping[str, object] | None = None,
    *,
    ignores: bool = False,
) -> JobInput:
    """Return a job that runs a command; the `#SBATCH` lines of a script become its keys."""
    if not words:
        raise InputError(
            "no-job",
            "no command given",
            "write it after `--`: `tenfold job run --gpus 8 -- python train.py`",
        )
    if len(words) == 1 and Path(words[0]).suffix.lower() in SUFFIXES:
        raise InputError(
            "no-job",
            f"`{words[0]}` is a job file, not a command",
            f"use `tenfold job submit {shlex.quote(words[0])} --follow`",
            file=words[0],
        )
    keys = {**keys_of(options), **(more or {})}
    found = script_among(words)
    if found is None and len(words) == 1 and shutil.which(words[0]) is None:
        script = shebang_script(words[0])
        found = None if script is None else (script, 0)
    if found is not None:
        script, place = found
        arguments = words[place + 1 :]
        job = translated(script, (), arguments, ignores=ignores, own_keys=keys)
        return JobInput(job_source(None, with_own_programs(job.keys)), options.snapshot)
    keys["command"] = list(words)
    keys.setdefault("name", _name_of(words))
    return JobInput(job_source(None, with_own_programs(keys)), options.snapshot)


def with_own_programs(keys: Mapping[str, object]) -> dict[str, object]:
    """Return a job that finds the programs that its submitter does, if it runs on this machine."""
    if "image" in keys or not _is_on_this_machine():
        return dict(keys)
    # Those that the user passes win; without this, `python` would be another one than here.
    own = {name: os.environ[name] for name in SHELL_VARIABLES if name in os.environ}
    given = keys.get("env")
    return {**keys, "env": {**own, **(given if isinstance(given, dict) else {})}}


def is_job_file(word: str, options: JobOptions) -> bool:
    """Tell whether a single word is a job file; otherwise it is a command without arguments."""
    path = Path(word)
    if path.suffix.lower() in SUFFIXES:
        return True
    if options.image is not None or shutil.which(word) is not None:
        return False
    if path.is_file() and shebang_script(word) is not None:
        return False
    if path.is_file():
        interpreter = "python" if path.suffix == ".py" else "bash"
        raise InputError(
            "unknown-suffix",
            f"`{word}` is not a job file: it does not end in .toml or .yaml",
            f"to run it, use `tenfold job submit -- {interpreter} {shlex.quote(word)}`",
            file=word,
        )
    return True


def _name_of(words: tuple[str, ...]) -> str:
    """Return a name for a command: that of its script, or of its program."""
    named = next((word for word in words[1:] if word.endswith((".py", ".sh"))), words[0])
    stem = "".join(
        c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in Path(named).stem
    )
    return stem.strip("-_")[:40] or "job"


def _is_on_this_machine() -> bool:
    try:
        return find_endpoint().is_local
    except TenfoldError:
        return False


def _standard_input() -> Document:
    content = sys.stdin.buffer.read(STDIN_BYTES_MAX + 1)
    if len(content) > STDIN_BYTES_MAX:
        raise InputError(
            "file-too-large",
            f"standard input has over {STDIN_BYTES_MAX >> 20} MiB",
            "submit several jobs with the Python client instead",
        )
    text = decode(content, Path(STDIN))
    if text.startswith("#!"):
        raise InputError(
            "not-a-job-file",
            "standard input is a script, not a job file",
            "submit it with `tenfold sbatch`, which reads standard input too",
        )
    return parse_document(text, "standard input")
