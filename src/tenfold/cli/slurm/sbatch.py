"""`tenfold sbatch`: submit a batch script that was written for Slurm."""

import shlex
import sys
from collections.abc import Iterator
from typing import Annotated

from cyclopts import App, Parameter

from tenfold.cli.output import print_note
from tenfold.cli.slurm.batch import read_script_file, script_text, translated
from tenfold.files.jobs.submission import JobSource, body_of, job_source
from tenfold.files.sbatch.script import BatchScript, SlurmOption, read_options, read_script
from tenfold.files.sbatch.translate import BatchJob
from tenfold.model.errors import InputError, InvalidFile

app = App(
    name="sbatch",
    help="Submit a batch script with #SBATCH lines.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)
OWN_OPTIONS = ("--ignore-directives", "--allow-pending", "--json")
STDIN = "/dev/stdin"


@app.default
def sbatch_command(
    *words: Annotated[
        str,
        Parameter(
            name="WORDS",
            allow_leading_hyphen=True,
            help="Options of Slurm's sbatch, the script file, and the arguments of the script",
        ),
    ],
) -> None:
    """Submit a batch script; `tenfold.cli.main` has the help."""
    own, rest = _own_options(words)
    options, left = read_options(rest)
    script, arguments = _script(options, left)
    ignores, as_json = "--ignore-directives" in own, "--json" in own
    job = translated(script, options, arguments, ignores=ignores)
    # The client is not needed for what is wrong with the options.
    from tenfold.cli.job import live  # noqa: PLC0415
    from tenfold.cli.job.words import with_own_programs  # noqa: PLC0415

    waits = "--allow-pending" in own
    keys = with_own_programs(job.keys)
    source = live.JobInput(job_source(None, keys), wording=job.wording.text)
    try:
        if job.test_only:
            live.dry_run(source, "none", as_json=as_json, allow_pending=waits)
            return
        if not (job.parsable or job.quiet) and _is_valid(source.source):
            for note in _unlike_slurm(job):
                print_note(note)
        style = "id" if job.parsable else "slurm"
        options_of_submit = live.SubmitOptions(
            wait=job.wait, as_json=as_json, allow_pending=waits, style=style
        )
        live.submit(source, options_of_submit)
    except InvalidFile as error:
        raise job.wording.error(error) from None


def _is_valid(source: JobSource) -> bool:
    """Return whether a job has no errors that are found before it is submitted."""
    try:
        body_of(source)
    except InvalidFile:
        return False
    return True


def _unlike_slurm(job: BatchJob) -> Iterator[str]:
    """Yield where a job differs from one of Slurm because options are not given."""
    given = job.wording.given
    if "export" not in given:
        yield (
            "the job gets PATH and the active Python environment, not all your variables as in"
            " Slurm: --export=ALL or --export=NAME passes more"
        )
    if "output" not in given:
        yield "without -o, `tenfold job logs` has the output; no file slurm-%j.out is written"


def _own_options(words: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Return Tenfold's own options and the other words; those after the script are its own."""
    own: list[str] = []
    rest = list(words)
    for name in OWN_OPTIONS:
        options, left = read_options([word for word in rest if word != name])
        before = len(rest) - len(left)
        if name in rest[:before]:
            own.append(name)
            rest.remove(name)
        del options
    return own, rest


def _script(options: list[SlurmOption], left: list[str]) -> tuple[BatchScript, list[str]]:
    if any(one.name == "wrap" for one in options):
        if left:
            raise InputError(
                "two-questions",
                f"`--wrap` and the script `{left[0]}` cannot be used together",
                "use one of them",
            )
        return BatchScript("", "", (), ("/bin/sh",)), []
    if left:
        text = read_script_file(left[0])
        return read_script(left[0], _with_interpreter(text, left[0])), left[1:]
    if sys.stdin.isatty():
        raise InputError("no-job", "no script given", "pass a script: `tenfold sbatch train.sh`")
    text = script_text(sys.stdin.buffer.read((4 << 20) + 1), "standard input")
    return read_script("standard input", _with_interpreter(text, "")), []


def _with_interpreter(text: str, path: str) -> str:
    """Return a script whose first line says what runs it; raise for another, as Slurm does."""
    if text.startswith("#!"):
        return text
    hint = "begin it with #!/bin/bash"
    if path.endswith(".py"):
        command = f"tenfold job submit -- python {shlex.quote(path)}"
        hint = f"begin it with #!/usr/bin/env python3, or use `{command}`"
    name = f"`{path}`" if path else "standard input"
    message = f"{name} is not a batch script: its first line does not begin with #!"
    raise InputError("not-a-script", message, hint, file=path)
