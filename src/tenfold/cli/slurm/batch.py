"""Batch scripts as jobs: for `tenfold sbatch`, and for `job submit` and `job run` of a script."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import UNSET
from msgspec.structs import replace

from tenfold.cli.output import print_note
from tenfold.client.client import Client
from tenfold.client.endpoint import find_endpoint
from tenfold.files.sbatch.notes import ordered_notes
from tenfold.files.sbatch.script import BatchScript, SlurmOption, has_directives, read_script
from tenfold.files.sbatch.site import NodeKind, NodeSize, Site
from tenfold.files.sbatch.translate import BatchJob, batch_job
from tenfold.model.errors import InputError, InvalidFile, TenfoldError, Unreachable
from tenfold.model.fleet.finding import Finding

SCRIPT_BYTES_MAX = 4 << 20
"""As much as a submission has; Slurm's default limit is the same."""
INTERPRETERS = frozenset({"bash", "sh", "dash", "zsh", "ksh", "python", "python3"})
ANYWAY = "to submit it without what is not supported, add --ignore-directives"


def script_among(words: Sequence[str]) -> tuple[BatchScript, int] | None:
    """Return the batch script that a command runs, and its place; None if it runs none."""
    for place, word in enumerate(words[:3]):
        if place and (Path(words[0]).name not in INTERPRETERS or "-c" in words[:place]):
            return None
        text = _text_of(word)
        if text is not None and has_directives(text):
            found = read_script(word, text)
            return (replace(found, interpreter=tuple(words[:place])) if place else found), place
    return None


def shebang_script(word: str) -> BatchScript | None:
    """Return a script by its file, if its first line says what runs it."""
    text = _text_of(word)
    return read_script(word, text) if text is not None and text.startswith("#!") else None


def translated(
    script: BatchScript,
    options: Sequence[SlurmOption],
    arguments: Sequence[str],
    *,
    ignores: bool,
    own_keys: Mapping[str, object] | None = None,
) -> BatchJob:
    """Return the job of a script; print its notes, and raise for what is not supported."""
    job = batch_job(script, options, arguments, folder=os.getcwd(), site=_site(), own_keys=own_keys)
    faults = sorted(job.faults, key=lambda one: one.option.line)
    if faults and not ignores:
        # For what is mistyped, to leave it out is no advice.
        anyway = f"; {ANYWAY}" if any(one.is_unsupported for one in faults) else ""
        raise InvalidFile(
            script.path,
            [
                Finding(
                    code="unsupported-option",
                    message=one.message,
                    hint=one.hint if place < len(faults) else f"{one.hint}{anyway}",
                    path=(),
                    file=script.path if one.option.line else "",
                    line=one.option.line or None,
                )
                for place, one in enumerate(faults, start=1)
            ],
        )
    if not job.quiet:
        for note in ordered_notes(job.notes):
            print_note(note)
    for one in job.faults:
        print_note(f"ignored: {one.message}")
    return job


def read_script_file(path: str) -> str:
    """Return the text of a script, or raise."""
    try:
        content = Path(path).read_bytes()[: SCRIPT_BYTES_MAX + 1]
    except OSError as error:
        raise InputError(
            "cannot-read",
            f"cannot read the script `{path}`: {error.strerror or error}",
            "check its name and permissions",
            file=path,
        ) from None
    return script_text(content, path)


def script_text(content: bytes, path: str) -> str:
    """Return a script as text; raise if it is none."""
    if len(content) > SCRIPT_BYTES_MAX or b"\0" in content:
        what = "has over 4 MiB" if len(content) > SCRIPT_BYTES_MAX else "is a binary file"
        raise InputError(
            "not-a-script",
            f"`{path}` {what}",
            "to run a program, use `tenfold job submit -- PROGRAM`",
            file=path,
        )
    return content.decode(errors="replace").replace("\r\n", "\n")


def _text_of(word: str) -> str | None:
    try:
        path = Path(word)
        if not path.is_file() or path.stat().st_size > SCRIPT_BYTES_MAX:
            return None
        content = path.read_bytes()
    except (OSError, ValueError):
        return None
    return None if b"\0" in content else content.decode(errors="replace").replace("\r\n", "\n")


def _site() -> Site | None:
    """Return what the fleet has; None if there is no control plane to ask."""
    try:
        find_endpoint()
        with Client() as client:
            nodes = client.nodes()
    except Unreachable:
        return None
    except TenfoldError:
        return None
    sizes = [
        NodeSize(
            one.accelerator if one.gpus else "",
            one.gpus,
            one.cpus or 0.0,
            one.memory_gib or 0.0,
            one.pool,
        )
        for one in nodes
        if one.state != "down"
    ]
    kinds = [
        NodeKind(
            one.pool, one.accelerator if one.gpus else "", () if one.tags is UNSET else one.tags
        )
        for one in nodes
    ]
    return Site(tuple(dict.fromkeys(sizes)), tuple(dict.fromkeys(kinds)))
