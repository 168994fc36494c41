"""The files of `--output` and `--error`: their names are known once the job runs.

The command is wrapped in a shell that opens the files and becomes the command, so the job log has
only the names of the files. `%j` and the like are variables that the job has.
"""

import os
import re
from collections.abc import Iterator, Mapping

_FIELD = re.compile(r"%(\d*)([%AaJjNnstuxbI])")
_VALUES: Mapping[str, str] = {
    "A": "${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}",
    "a": "${SLURM_ARRAY_TASK_ID:-4294967294}",
    "b": "$((${SLURM_ARRAY_TASK_ID:-0} % 10))",
    "J": "${SLURM_JOB_ID}",
    "j": "${SLURM_JOB_ID}",
    "I": "${SLURM_JOB_ID}",
    "N": "${SLURMD_NODENAME}",
    "n": "${SLURM_NODEID}",
    "s": "batch",
    "t": "${SLURM_PROCID}",
    "u": "${USER:-user}",
    "x": "${SLURM_JOB_NAME}",
}


def with_output_files(
    command: tuple[str, ...],
    shell: tuple[str, ...],
    files: tuple[str, str],
    folder: str,
    *,
    appends: bool,
) -> tuple[str, ...]:
    """Return a command that writes to files; empty names leave output in the job log.

    `shell` is that of the script: another one might not pass on shell functions.
    """
    output, error = files
    if not output and not error:
        return command
    sign = ">>" if appends else ">"
    lines: list[str] = []
    if output:
        lines += [f'out="{_shell_text(folder, output)}"', 'echo "output is written to $out"']
    if error:
        lines += [f'err="{_shell_text(folder, error)}"', 'echo "errors are written to $err"']
    parts = [f'{sign}"$out"'] if output else []
    if error:
        parts.append(f'2{sign}"$err"')
    else:
        parts.append("2>&1")
    redirect = " ".join(parts)
    lines += [f"exec {redirect} || exit 1", 'exec "$@"']
    return (*shell, "-c", "\n".join(lines), "sbatch", *command)


def missing_folders(files: tuple[str, str], folder: str) -> Iterator[str]:
    """Yield a note for each folder of these files that does not exist; jobs do not create it."""
    if not os.path.isdir(folder):
        # The job runs on another machine.
        return
    parents = dict.fromkeys(os.path.dirname(one) for one in files if one)
    for parent in parents:
        if "%" not in parent and not os.path.isdir(os.path.join(folder, parent)):
            yield f"the folder `{parent}` does not exist: create it, or the job fails at its start"


def _shell_text(folder: str, pattern: str) -> str:
    """Return a file name for double quotes in a shell."""
    pattern = pattern if pattern.startswith("/") else f"{folder}/{pattern}"
    parts: list[str] = []
    at = 0
    for match in _FIELD.finditer(pattern):
        parts.append(_quoted(pattern[at : match.start()]))
        at = match.end()
        if match[2] == "%":
            parts.append("%")
            continue
        value = _VALUES[match[2]]
        digits = min(int(match[1] or 0), 10)
        parts.append(f"$(printf %0{digits}d {value})" if digits else value)
    return "".join((*parts, _quoted(pattern[at:])))


def _quoted(text: str) -> str:
    return re.sub(r'([\\"$`])', r"\\\1", text)
