"""Say what is wrong with a command line: the option, what it expects, and what was typed."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from enum import Enum
from typing import Literal, get_args, get_origin

from cyclopts import (
    CoercionError,
    CycloptsError,
    MissingArgumentError,
    RepeatArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)
from cyclopts.argument import Argument

ALIKE = 0.7
CONTAINED_LENGTH_MIN = 3
KINDS: dict[type, str] = {int: "a whole number", float: "a number", bool: "true or false"}
BOUNDS = {">=": "at least", ">": "greater than", "<=": "at most", "<": "less than"}
SLURM_PAGE = "see docs/how-to/slurm-users.md"
SLURM_COMMANDS = {
    "srun": "use `tenfold job run -- COMMAND`",
    "salloc": "use `tenfold job submit -- sleep 4h`, then `tenfold job shell JOB`",
    "sacct": "use `tenfold job list --since 7d`, or `tenfold job show JOB`",
    "sstat": "use `tenfold job show JOB`",
    "sprio": "use `tenfold job why JOB`",
    "sshare": "use `tenfold policy show`",
    "scontrol": "use `tenfold job show`, `tenfold node list` or `tenfold node cordon`",
    "sacctmgr": "use `tenfold token create` and a policy file",
    "sattach": "use `tenfold job logs -f JOB`",
    "strigger": "use `tenfold alarms`",
    "sreport": "use `tenfold cost report`, or `tenfold job list --since 7d -o job,team,gpu_hours`",
    "sdiag": "use `tenfold status`, or the metrics at /metrics",
    "smap": "use `tenfold top`",
    "sview": "use `tenfold top`, or the dashboard at the address that `tenfold status` prints",
    "scrontab": "use cron with `tenfold sbatch`",
}
"""Commands of Slurm that are none here, and what to use instead."""
SLURM_OPTIONS = {
    "--output": "use `tenfold job logs`, or a script with `tenfold sbatch`, which writes files",
    "--error": "use `tenfold job logs`, or a script with `tenfold sbatch`, which writes files",
    "--gres": "use --gpus-per-node, and --accelerator for the type",
    "--partition": "there are no partitions: use --accelerator, or --needs with a tag",
    "-p": "there are no partitions: use --accelerator, or --needs with a tag",
    "-o": "use `tenfold job logs`, or a script with `tenfold sbatch`, which writes files",
    "-n": "a job has one process per node: use --nodes for nodes, or --cpus for CPUs",
    "--ntasks": "a job has one process per node: use --nodes for nodes, or --cpus for CPUs",
    "--ntasks-per-node": "a job has one process per node: use torchrun, or `tenfold sbatch`",
    "--constraint": "use --needs with a tag",
    "-C": "use --needs with a tag",
    "--qos": "use teams with quotas: docs/how-to/govern-teams.md",
    "--exclusive": "request all GPUs and CPUs of the node",
    "--mem-per-cpu": "use --mem, which is for each node",
    "--cpus-per-task": "use --cpus-per-node",
    "--account": "use --team",
    "--wrap": "write the command after `--`",
}
"""Options of Slurm's commands, and what to use instead."""
VIEW_OPTIONS = {
    "-O": 'use -o with letters, such as -o "%i %j %T", or `tenfold job list -o COLUMNS`',
    "--Format": 'use -o with letters, such as -o "%i %j %T", or `tenfold job list -o COLUMNS`',
    "--json": "use `tenfold job list --json` or `tenfold node list --json`",
    "-r": "use `tenfold job list --array JOB`",
    "--array": "use `tenfold job list --array JOB`",
    "-S": "lines are sorted by submission; pipe them into sort",
    "--sort": "lines are sorted by submission; pipe them into sort",
    "-w": "use `tenfold job list -o job,nodes` and grep",
    "--nodelist": "use `tenfold job list -o job,nodes` and grep",
    "-q": "there are no QOS: use -A with a team",
    "--qos": "there are no QOS: use -A with a team",
    "-a": "leave it out: nothing is hidden",
    "--all": "leave it out: nothing is hidden",
}
"""The same, of squeue and sinfo."""
UP_OPTIONS: dict[str, str] = {
    name: "use --listen ADDRESS:PORT" for name in ("--port", "--host", "--bind", "-p")
}
"""Options that other servers have, and what `tenfold up` has."""
COMMAND = re.compile(r"[a-z][a-z-]*")


def usage_text(error: CycloptsError) -> tuple[str, str]:
    """Return the message and the hint for a command line that cannot be parsed."""
    command = _command(error)
    see = f"see `{command} --help`"
    if isinstance(error, UnknownCommandError):
        return _unknown_command(error, command, see)
    if isinstance(error, UnknownOptionError):
        word = (error.token.keyword or error.token.value).split("=", 1)[0]
        if (hint := _foreign_option(command, word)) is not None:
            return f"unknown option `{word}`", hint
        known = [name for one in error.argument_collection if one.parse for name in one.names]
        return f"unknown option `{word}`", _did_you_mean(word, known, see)
    if isinstance(error, UnusedCliTokensError):
        return f"unexpected argument `{(error.unused_tokens or [''])[0]}`", see
    if isinstance(error, RepeatArgumentError):
        return f"`{error.token.keyword}` is given more than once", "give it once"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        return _missing(error, error.argument), see
    if isinstance(error, CoercionError) and error.token is not None and error.msg is None:
        return _wrong_type(error, see)
    if isinstance(error, ValidationError) and error.argument is not None:
        return _out_of_range(error, error.argument), see
    text = " ".join(str(error).split()).rstrip(".").replace('"', "`")
    return text[:1].lower() + text[1:], see


ELSEWHERE = {
    **{
        word: f"did you mean `tenfold job {word}`?"
        for word in ("cancel", "logs", "rerun", "run", "shell", "show", "submit", "why")
    },
    **dict.fromkeys(("list", "ls", "jobs", "ps"), "did you mean `tenfold job list`?"),
    "cordon": "did you mean `tenfold node cordon`?",
    "nodes": "did you mean `tenfold node list`?",
    "start": "did you mean `tenfold up`?",
    "stop": "did you mean `tenfold down`?",
    "team": "teams are defined in the policy file: see `tenfold policy show`",
    "teams": "teams are defined in the policy file: see `tenfold policy show`",
}
"""Commands that users look for at the top level, and where they are."""


def _unknown_command(error: UnknownCommandError, command: str, see: str) -> tuple[str, str]:
    word = (error.unused_tokens or [""])[0]
    if word.startswith("-"):
        return f"unknown option `{word}`", see
    if command == f"tenfold {word}":
        # With --help, the word is also taken for a part of the command.
        command, see = "tenfold", "see `tenfold --help`"
    if word in SLURM_COMMANDS and command == "tenfold":
        return f"unknown command `tenfold {word}`", f"{SLURM_COMMANDS[word]}; {SLURM_PAGE}"
    if word in ELSEWHERE and command == "tenfold":
        return f"unknown command `tenfold {word}`", ELSEWHERE[word]
    return f"unknown command `{command} {word}`", _did_you_mean(word, _commands(error), see)


def _foreign_option(command: str, word: str) -> str | None:
    """Return what to use instead of an option that other programs have."""
    if command in ("tenfold squeue", "tenfold sinfo"):
        return VIEW_OPTIONS.get(word)
    if command == "tenfold up":
        return UP_OPTIONS.get(word)
    return SLURM_OPTIONS.get(word) if command in ("tenfold job submit", "tenfold job run") else None


def _command(error: CycloptsError) -> str:
    """Return the command as typed, such as `tenfold fleet check`."""
    words = list(error.command_chain or ())
    if not words and isinstance(error, UnknownCommandError):
        typed = error.root_input_tokens or []
        words = typed[: len(typed) - len(error.unused_tokens or [])]
    return " ".join(["tenfold", *words])


def _commands(error: UnknownCommandError) -> list[str]:
    return [] if error.app is None else [name for name in error.app if COMMAND.fullmatch(name)]


def _did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    near = closest(word, known)
    return otherwise if near is None else f"did you mean `{near}`?"


def closest(word: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most like a word, or None if none is."""
    plain = word.strip("-").lower()

    def likeness(name: str) -> float:
        other = name.strip("-").lower()
        if len(plain) >= CONTAINED_LENGTH_MIN and plain in other:
            return 1.0
        return SequenceMatcher(None, plain, other).ratio()

    best = max(known, key=likeness, default=None)
    return best if best is not None and likeness(best) >= ALIKE else None


def _missing(error: MissingArgumentError, argument: Argument) -> str:
    name = error.keyword or next((one.keyword for one in argument.tokens if one.keyword), None)
    if name is not None:
        return f"`{name}` needs a value"
    if argument.field_info.is_positional:
        return f"missing argument `{_upper(argument)}`"
    return f"missing option `{argument.name}`"


def _upper(argument: Argument) -> str:
    return argument.name.lstrip("-").upper()


def _wrong_type(error: CoercionError, see: str) -> tuple[str, str]:
    token = error.token
    assert token is not None, "the caller checks that there is a token"
    name = token.keyword or ("" if error.argument is None else _upper(error.argument))
    choices = _choices(error.target_type)
    if choices:
        message = f"`{name}` must be one of {', '.join(choices)}, got `{token.value}`"
        return message, _did_you_mean(token.value, choices, see)
    kind = KINDS.get(error.target_type or str, "a valid value")
    return f"`{name}` must be {kind}, got `{token.value}`", see


def _choices(kind: type | None) -> list[str]:
    if get_origin(kind) is Literal:
        return [str(one) for one in get_args(kind)]
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [name.replace("_", "-") for name in kind.__members__]
    return []


def _out_of_range(error: ValidationError, argument: Argument) -> str:
    typed = " ".join(one.value for one in argument.tokens)
    named = next((one.keyword for one in argument.tokens if one.keyword), None)
    name = named or _upper(argument)
    text = error.exception_message.rstrip(".")
    found = re.fullmatch(r"Must be (>=|>|<=|<) (\S+)", text)
    if found is None:
        return f"`{name}` cannot be `{typed}`: {text[:1].lower()}{text[1:]}"
    return f"`{name}` must be {BOUNDS[found[1]]} {float(found[2]):,.12g}, got `{typed}`"
