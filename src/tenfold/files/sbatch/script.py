"""Read the options of a batch script: those of its `#SBATCH` lines and of the command line.

Values are kept as they are written. Slurm's rules apply: lines count up to the first command, an
option of the command line replaces that of a line, and an option may be given several times.
"""

import shlex
from collections.abc import Sequence

from msgspec import Struct

SHELLS = frozenset({"bash", "sh", "dash", "zsh", "ksh"})
SHORT = {
    "A": "account",
    "a": "array",
    "B": "extra-node-info",
    "b": "begin",
    "C": "constraint",
    "c": "cpus-per-task",
    "D": "chdir",
    "d": "dependency",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "H": "hold",
    "I": "immediate",
    "i": "input",
    "J": "job-name",
    "k": "no-kill",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "O": "overcommit",
    "o": "output",
    "p": "partition",
    "Q": "quiet",
    "q": "qos",
    "S": "core-spec",
    "s": "oversubscribe",
    "t": "time",
    "v": "verbose",
    "W": "wait",
    "w": "nodelist",
    "x": "exclude",
}
FLAGS = frozenset(
    {
        "contiguous",
        "hold",
        "ignore-pbs",
        "immediate",
        "no-requeue",
        "overcommit",
        "oversubscribe",
        "parsable",
        "quiet",
        "reboot",
        "requeue",
        "share",
        "spread-job",
        "test-only",
        "use-min-nodes",
        "verbose",
        "wait",
    }
)
"""Options without a value."""
MAY_HAVE_VALUE = frozenset({"exclusive", "get-user-env", "nice", "no-kill", "propagate"})
"""Options whose value, if there is one, is after `=`."""


class SlurmOption(Struct, frozen=True):
    """One option, with the long name that Slurm has for it."""

    text: str
    """As it is written."""
    name: str
    value: str
    line: int = 0
    """Its line in the script; 0 on the command line."""


class BatchScript(Struct, frozen=True):
    """A script and what its lines say."""

    path: str
    text: str
    options: tuple[SlurmOption, ...]
    interpreter: tuple[str, ...]
    """The words after `#!`."""

    @property
    def is_shell(self) -> bool:
        """Whether a shell runs it."""
        names = [word.rpartition("/")[2] for word in self.interpreter[:2]]
        return any(name in SHELLS for name in names)


def read_script(path: str, text: str) -> BatchScript:
    """Return a script; without a first line `#!`, the shell runs it."""
    first = text.split("\n", 1)[0]
    words = tuple(_words(first[2:])) if first.startswith("#!") else ("/bin/sh",)
    options: list[SlurmOption] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            break
        if line.startswith("#SBATCH"):
            given = _words(line.removeprefix("#SBATCH"), comments=True)
            found, left = read_options(given, number)
            options += found
            options += [SlurmOption(word, "", word, number) for word in left]
    return BatchScript(path, text, tuple(options), words or ("/bin/sh",))


def _words(text: str, *, comments: bool = False) -> list[str]:
    """Return the words of a line; a quote that does not end is a character like others."""
    try:
        return shlex.split(text, comments=comments)
    except ValueError:
        return text.split()


def has_directives(text: str) -> bool:
    """Tell whether a script has `#SBATCH` lines."""
    return bool(read_script("", text).options)


def read_options(words: Sequence[str], line: int = 0) -> tuple[list[SlurmOption], list[str]]:
    """Return the options at the beginning of a command line, and the words after them."""
    left, found = list(words), list[SlurmOption]()
    while left and left[0].startswith("-") and left[0] != "-":
        word = left.pop(0)
        if word == "--":
            break
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
        else:
            name, value = SHORT.get(word[1], word[:2]), word[2:]
            equals = value[:1] if value.startswith("=") else ""
            value = value.removeprefix("=")
            if name in FLAGS and value and not equals:
                # `-HW` is two options.
                left.insert(0, f"-{value}")
                value = ""
        name = _whole_name(name)
        takes = name not in FLAGS and name not in MAY_HAVE_VALUE
        if takes and not equals and not value and left:
            value = left.pop(0)
            word = f"{word} {value}"
        found.append(SlurmOption(word, name, value, line))
    return found, left


def with_same_random(script: BatchScript) -> str:
    """Return the text of a script whose `$RANDOM`, such as torchrun's id, is that of each node.

    The first line is a comment: lines keep their numbers.
    """
    if "RANDOM" not in script.text or "bash" not in " ".join(script.interpreter):
        return script.text
    return f"RANDOM=$SLURM_JOB_ID; {script.text}"


def _whole_name(name: str) -> str:
    return {"tasks": "ntasks", "workdir": "chdir", "share": "oversubscribe"}.get(name, name)
