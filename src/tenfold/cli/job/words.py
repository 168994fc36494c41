"""What the words after `job submit` and `job run` are: a job file, standard input or a command."""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from tenfold.cli.job.live import JobInput
from tenfold.cli.job.options import JobOptions, keys_of
from tenfold.cli.job.scripts import note_directives, note_standard_input
from tenfold.client.endpoint import find_endpoint
from tenfold.files.core.document import SUFFIXES, Document, decode, parse_document
from tenfold.files.jobs.submission import job_source
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
) -> JobInput:
    """Return the job that the words of `job submit` describe; `more` are further keys.

    `is_command` says that the words came after `--`.
    """
    if not words:
        raise InputError(
            "no-job",
            "no job file and no command given",
            "pass a job file, `-` for standard input, or a command after `--`",
        )
    if words == (STDIN,):
        return JobInput(
            job_source(_standard_input(), {**keys_of(options), **more}), options.snapshot
        )
    named = len(words) == 1 and Path(words[0]).suffix.lower() in SUFFIXES
    if named or (len(words) == 1 and not is_command and is_job_file(words[0], options)):
        return JobInput(job_source(Path(words[0]), {**keys_of(options), **more}), options.snapshot)
    note_standard_input(words, always=False)
    return command_input(words, options, more)


def command_input(
    words: tuple[str, ...], options: JobOptions, more: Mapping[str, object] | None = None
) -> JobInput:
    """Return a job that runs a command."""
    if not words:
        raise InputError(
            "no-job",
            "no command given",
            "write it after `--`: `tenfold job run --gpus 8 -- python train.py`",
        )
    keys = {**keys_of(options), **(more or {})}
    note_directives(words, keys)
    if _is_on_this_machine():
        # Those that the user passes win; without this, `python` would be another one than here.
        own = {name: os.environ[name] for name in SHELL_VARIABLES if name in os.environ}
        if options.image is None:
            given = keys.get("env")
            keys["env"] = {**own, **(given if isinstance(given, dict) else {})}
    keys["command"] = list(words)
    keys.setdefault("name", _name_of(words))
    return JobInput(job_source(None, keys), options.snapshot)


def is_job_file(word: str, options: JobOptions) -> bool:
    """Tell whether a single word is a job file; otherwise it is a command without arguments."""
    path = Path(word)
    if path.suffix.lower() in SUFFIXES:
        return True
    if options.image is not None or shutil.which(word) is not None:
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
            "save it, and run it with `tenfold job submit -- bash SCRIPT`",
        )
    return parse_document(text, "standard input")
