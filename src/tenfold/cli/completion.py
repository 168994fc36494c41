"""`tenfold completion`: commands, options and values completed with the Tab key."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from tenfold.cli.output import print_file, show
from tenfold.model.errors import InputError

ZSH_END = """
# A file in $fpath is the function itself; a script that is sourced registers it.
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _cyclopts_tenfold "$@"
else
  compdef _cyclopts_tenfold tenfold
fi
"""

app = App(
    name="completion",
    help="Print a shell completion script.",
    help_format="plaintext",
    default_parameter=Parameter(show_default=False),
)


@app.default
def completion_command(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell")],
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

    if not install:
        script = tenfold.generate_completion(prog_name="tenfold", shell=shell)
        print_file(script + ZSH_END if shell == "zsh" else script)
        return
    try:
        path: Path = tenfold.install_completion(shell=shell)
    except OSError as error:
        raise InputError(
            "cannot-write",
            f"cannot install the completion script: {error.strerror or error}",
            f"write it yourself: `tenfold completion {shell} > FILE`",
        ) from None
    show(f"wrote `{path}`; start a new shell to use it")
