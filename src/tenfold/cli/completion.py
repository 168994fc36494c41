"""`tenfold completion`: commands, options, values, names and files completed with the Tab key."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from tenfold.cli.output import print_file, print_line, show
from tenfold.model.errors import InputError, TenfoldError

Shell = Literal["bash", "zsh", "fish"]

NAMES_MOST = 300
"""Names that are offered, newest jobs first."""
NAMED_BY = {
    "job cancel": "jobs pending,starting,running",
    "job logs": "jobs",
    "job release": "jobs pending",
    "job rerun": "jobs",
    "job shell": "jobs running",
    "job show": "jobs",
    "job why": "jobs pending",
    "node accept": "nodes",
    "node cordon": "nodes",
    "node fail": "nodes",
    "node test": "nodes",
    "node uncordon": "nodes",
}
"""Commands that take the names of jobs or nodes, and which of them to offer."""
AFTER = "jobs pending,starting,running,succeeded"
"""Jobs that another may depend on."""

app = App(
    name="completion",
    help="Print a shell completion script.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)


@app.default
def completion_command(
    shell: Annotated[Shell, Parameter(help="The shell")],
    *,
    install: Annotated[
        bool,
        Parameter(
            negative="",
            help="Write the script to your home directory, and load it in ~/.bashrc or ~/.zshrc",
        ),
    ] = False,
) -> None:
    """Print a completion script for bash, zsh or fish.

    Load it in the current shell with `source <(tenfold completion bash)`, or in fish with
    `tenfold completion fish | source`. With --install, new shells load it.
    """
    from tenfold.cli.main import app as tenfold  # noqa: PLC0415 - it imports this module

    script = tenfold.generate_completion(prog_name="tenfold", shell=shell)
    script = _with_names(shell, script)
    if not install:
        print_file(script)
        return
    try:
        path: Path = tenfold.install_completion(shell=shell)
        path.write_text(script)
    except OSError as error:
        raise InputError(
            "cannot-write",
            f"cannot install the completion script: {error.strerror or error}",
            f"write it yourself: `tenfold completion {shell} > FILE`",
        ) from None
    show(f"wrote `{path}`; start a new shell to use it")


@app.command(name="names", show=False)
def names_command(
    kind: Annotated[Literal["jobs", "nodes"], Parameter(help="Kind of names to print")],
    states: Annotated[
        str | None, Parameter(help="Only jobs in these states, separated by commas")
    ] = None,
) -> None:
    """Print the names that a completion script offers; prints none if the control plane is down."""
    from tenfold.cli.job.listing import (  # noqa: PLC0415 - the script itself needs no client
        ListFilters,
        checked_states,
        find_in_states,
    )
    from tenfold.cli.job.names import array_of  # noqa: PLC0415 - likewise
    from tenfold.client.client import Client  # noqa: PLC0415 - likewise

    try:
        with Client() as client:
            if kind == "nodes":
                names = [node.id for node in client.nodes()]
            else:
                filters = ListFilters(limit=NAMES_MOST)
                found = find_in_states(client, filters, checked_states(states), None)
                # An array before its members.
                names = [name for job in found.jobs for name in (array_of(job), job.id)]
    except TenfoldError:
        # A message in the middle of a command line helps less than no completion.
        return
    for name in list(dict.fromkeys(names))[:NAMES_MOST]:
        print_line(name)


def _with_names(shell: Shell, script: str) -> str:
    """Return the script of the options' parser with names of jobs and nodes, and files."""
    if shell == "fish":
        return (
            script
            + "".join(
                f"complete -c tenfold -n '__fish_tenfold_using_command {command}' -f"
                f" -a '(tenfold completion names {what} 2>/dev/null)'\n"
                for command, what in NAMED_BY.items()
            )
            + "".join((*_fish_dependencies(), *_fish_sbatch()))
        )
    cases = "".join(
        f'    "{command}") offer="{what}" ;;\n' for command, what in sorted(NAMED_BY.items())
    )
    if shell == "zsh":
        return script + ZSH_END.replace("@CASES@", cases)
    return script.replace(BASH_LAST, _bash_end().replace("@CASES@", cases))


def _fish_dependencies() -> Iterator[str]:
    for command in ("job submit", "job run", "sbatch"):
        yield (
            f"complete -c tenfold -n '__fish_tenfold_using_command {command}'"
            " -s d -l dependency -l after -x"
            f" -a 'singleton (tenfold completion names {AFTER} 2>/dev/null)'\n"
        )


def _fish_sbatch() -> Iterator[str]:
    for name in _sbatch_options():
        yield f"complete -c tenfold -n '__fish_tenfold_using_command sbatch' -l {name}\n"


def _sbatch_options() -> list[str]:
    """Return the options of Slurm's sbatch that have an effect."""
    from tenfold.files.sbatch.tables import HANDLED  # noqa: PLC0415 - only the script needs it

    return sorted((*HANDLED, "partition"))


def _bash_end() -> str:
    """Return the end of the bash script, with the values of options that have a fixed set."""
    from typing import get_args  # noqa: PLC0415 - only the script needs it

    from tenfold.cli.job.columns import COLUMNS  # noqa: PLC0415 - likewise
    from tenfold.cli.job.listing import SLURM_STATES, STATES  # noqa: PLC0415 - likewise
    from tenfold.model.policy.policy import PolicyName  # noqa: PLC0415 - likewise

    states = " ".join((*STATES, *(name for name in SLURM_STATES if len(name) > 3)))
    return (
        BASH_END.replace("@STATES@", states)
        .replace("@COLUMNS@", " ".join(COLUMNS))
        .replace("@POLICIES@", " ".join(get_args(PolicyName)))
        .replace("@AFTER@", AFTER)
        .replace("@SBATCH@", " ".join(f"--{name}" for name in _sbatch_options()))
    )


BASH_LAST = "complete -F _tenfold tenfold\n"
BASH_END = """\
# Names that the control plane has, after what was typed before a colon or a comma.
_tenfold_names() {
  local before="$1" begin="$2" offer="$3" name quoted
  # Not `compgen -W`, which would expand what a name contains. Quoted: it is typed as it is.
  while read -r name; do
    printf -v quoted %q "$name"
    [[ "$name" == "$begin"* ]] && COMPREPLY+=("$before$quoted")
  done < <(tenfold completion names $offer 2>/dev/null)
}

# `-d afterok:1:2` and `--after train-1,train-2`; bash makes a word of each colon.
_tenfold_dependency() {
  local at=$COMP_CWORD cur="${COMP_WORDS[COMP_CWORD]}" typed=""
  while [[ $at -gt 2 && ( "${COMP_WORDS[at]}" == ":" || "${COMP_WORDS[at-1]}" == ":" ) ]]; do
    ((at--))
  done
  typed="${COMP_WORDS[*]:at:COMP_CWORD-at+1}"
  [[ "${COMP_WORDS[at]}" == "=" ]] && { ((at++)); typed=""; cur=""; }
  [[ "${COMP_WORDS[at-1]}" == "=" ]] && ((at--))
  case "${COMP_WORDS[1]} ${COMP_WORDS[at-1]}" in
    "job --after"|"job --dependency"|"job -d"|"sbatch --dependency"|"sbatch -d") ;;
    *) return 1 ;;
  esac
  [[ "$cur" == ":" ]] && cur=""
  local begin="${cur##*[:,]}"
  if [[ "$typed" != *:* ]]; then
    compopt -o nospace 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -W "afterok: afterany: singleton" -- "$cur")
  fi
  if [[ "$typed" == *:* || "${COMP_WORDS[1]}" == job ]]; then
    _tenfold_names "${cur%"$begin"}" "$begin" "@AFTER@"
  fi
}

# Names of jobs and nodes come from the control plane; other words may be files.
_tenfold_or_names() {
  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"
  local offer="" values="" word
  _tenfold_dependency && return
  [[ "$cur" == "=" ]] && cur=""
  [[ "$prev" == "=" ]] && prev="${COMP_WORDS[COMP_CWORD-2]}"
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    # A command and its arguments follow.
    [[ "$word" == "--" ]] && prev="--"
  done
  case "${COMP_WORDS[1]} $prev" in
    *" --") ;;
    "job -t"|"job --state"|"squeue -t"|"squeue --states"|"scancel -t") values="@STATES@" ;;
    "job -o"|"job --format") values="@COLUMNS@" ;;
    *" --policy"|*" --shadow") values="@POLICIES@" ;;
  esac
  if [[ -n "$values" && "${COMP_WORDS[2]}" != submit && "${COMP_WORDS[2]}" != run ]]; then
    # Values may be separated by commas.
    local before=""
    [[ "$cur" == *,* ]] && before="${cur%,*},"
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$values" -- "${cur##*,}")
    [[ "$prev" == "--policy" || "$prev" == "--shadow" ]] || return
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
  if [[ "$prev" == "--" ]]; then
    compopt -o filenames 2>/dev/null
    [[ "${COMP_WORDS[COMP_CWORD-1]}" == "--" ]] && mapfile -t COMPREPLY < <(compgen -c -- "$cur")
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$cur")
    return
  fi
  _tenfold
  if [[ "${COMP_WORDS[1]}" == sbatch && "$cur" == --* ]]; then
    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -W "@SBATCH@" -- "$cur")
  fi
  [[ ${#COMPREPLY[@]} -gt 0 || "$cur" == -* ]] && return
  [[ "${COMP_WORDS[1]}" == scancel ]] && offer="jobs pending,starting,running"
  case "${COMP_WORDS[1]} ${COMP_WORDS[2]}" in
@CASES@  esac
  if [[ -n "$offer" && ( $COMP_CWORD -gt 2 || "${COMP_WORDS[1]}" == scancel ) ]]; then
    _tenfold_names "" "$cur" "$offer"
    return
  fi
  compopt -o filenames 2>/dev/null
  mapfile -t COMPREPLY < <(compgen -f -- "$cur")
}

complete -F _tenfold_or_names tenfold
"""
ZSH_END = """
# Names of jobs and nodes come from the control plane; other words may be files.
_tenfold_or_names() {
  local offer="" first="$words[2] $words[3]"
  case "$first" in
@CASES@  esac
  if [[ -n "$offer" && $CURRENT -gt 3 && "$words[CURRENT]" != -* ]]; then
    local -a names
    names=(${(f)"$(tenfold completion names ${=offer} 2>/dev/null)"})
    (( $#names )) && compadd -- $names && return
  fi
  _cyclopts_tenfold "$@" || _files
}
# A file in $fpath is the function itself; a script that is sourced registers it.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _tenfold_or_names "$@"
else
  compdef _tenfold_or_names tenfold
fi
"""
