"""Completion scripts, in the shells themselves where they are installed."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import pytest

from patience import HANG_S, until
from tenfold.cli.main import main
from unit.up_process import commands_find, running

Printed = pytest.CaptureFixture[str]
# Each prints the completions of the words before the cursor, one on a line.
ASK = {
    "bash": """
source "$1"; shift
COMP_WORDS=(tenfold "$@"); COMP_CWORD=$#; COMP_LINE="tenfold $*"; COMP_POINT=${#COMP_LINE}
_tenfold_or_names; printf '%s\\n' "${COMPREPLY[@]}"
""",
    "fish": """
source $argv[1]
complete -C "tenfold $argv[2..-1]"
""",
    "zsh": """
autoload -Uz compinit; compinit -u -d "$1.dump"
source "$1"
print "registered: ${_comps[tenfold]}"; functions "${_comps[tenfold]}" _cyclopts_tenfold
tenfold() { print "train-7"; print "asked: $*" >&2 }
compadd() { print "offered: ${@[2,-1]}" }
words=(tenfold job cancel ""); CURRENT=4; _tenfold_or_names
""",
}


def needs(shell: str) -> str:
    path = shutil.which(shell)
    if path is None:
        if os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1":
            pytest.fail(f"TENFOLD_REQUIRE_ENGINES=1, but {shell} is not installed")
        pytest.skip(f"{shell} is not installed")
    return path


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Written once: a script names every option of every command."""
    folder, found = tmp_path_factory.mktemp("completion"), dict[str, Path]()
    for shell in ASK:
        with redirect_stdout(StringIO()) as printed:
            assert main(["completion", shell]) == 0
        found[shell] = folder / f"tenfold.{shell}"
        found[shell].write_text(printed.getvalue())
    return found


def completed(shell: str, script: Path, *words: str) -> str:
    path = needs(shell)
    start = [path, "--noprofile", "--norc"] if shell == "bash" else [path]
    start = [path, "-f"] if shell == "zsh" else start
    ask = [*start, "-c", ASK[shell], *(["shell"] if shell != "fish" else []), str(script), *words]
    home = {**os.environ, "HOME": str(script.parent), "XDG_CONFIG_HOME": str(script.parent)}
    done = subprocess.run(
        ask, capture_output=True, text=True, timeout=HANG_S, env=home, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes_commands_options_and_values(shell: str, scripts: dict[str, Path]):
    script = scripts[shell]
    assert "status" in completed(shell, script, "stat")
    assert "logs" in completed(shell, script, "job", "lo")
    assert "--watch" in completed(shell, script, "job", "list", "--wat")
    assert "fish" in completed(shell, script, "completion", "")


def test_zsh_loads_the_script_and_knows_the_commands(scripts: dict[str, Path]):
    loaded = completed("zsh", scripts["zsh"])
    assert loaded.startswith("registered: _")
    for word in ("whoami", "--watch", "--lines"):
        assert word in loaded, word
    assert "offered: train-7" in loaded


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes_names_of_files_jobs_and_nodes(
    shell: str, scripts: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "long-train.py").touch()
    monkeypatch.chdir(tmp_path)
    with running(tmp_path / "home", "--virtual-nodes", "2") as up:
        commands_find(up, monkeypatch)
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
        command = ["--name", "wait", "--gpus-per-node", "8", "--", "sleep", "600"]
        ended = ["--name", "over", "--", "true"]
        ids = [submitted(*words) for words in (command, ended)]
        until(lambda: "over" in listed("succeeded"))
        assert ids[0] in completed(shell, scripts[shell], "job", "cancel", "")
        assert ids[1] not in completed(shell, scripts[shell], "job", "cancel", "")
        assert ids[1] in completed(shell, scripts[shell], "job", "logs", "-f", "o")
        assert "virtual-2" in completed(shell, scripts[shell], "node", "cordon", "virt")
        assert "long-train.py" in completed(shell, scripts[shell], "job", "submit", "long")
        depends = ("job", "submit", "--after", "")
        assert set(ids) <= set(completed(shell, scripts[shell], *depends).split())
        array = submitted("--name", "sweep", "-a", "2", "-G", "8", "--", "true")
        assert array in completed(shell, scripts[shell], "job", "show", "swe").split()
        if shell == "bash":
            # Bash makes a word of a colon.
            for words in ((":",), (":", ids[0][:2]), (":", "7", ":", ids[0][:2])):
                typed = ("sbatch", "-d", "afterany", *words)
                assert completed(shell, scripts[shell], *typed).split()[0] in (array, ids[0])
            typed = ("job", "submit", "--after", f"{ids[1]},{ids[0][:2]}")
            assert completed(shell, scripts[shell], *typed).split() == [f"{ids[1]},{ids[0]}"]
        assert main(["job", "cancel", ids[0]]) == 0
    assert completed(shell, scripts[shell], "job", "cancel", "").strip() == ""


def test_bash_types_a_name_that_it_would_run_as_text(
    scripts: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    answers = tmp_path / "bin" / "tenfold"
    answers.parent.mkdir()
    answers.write_text("#!/bin/sh\necho '$(touch made);node-1'\n")
    answers.chmod(0o755)
    monkeypatch.setenv("PATH", f"{answers.parent}:{os.environ['PATH']}")
    offered = completed("bash", scripts["bash"], "node", "cordon", "")
    assert "\\$\\(touch\\ made\\)\\;node-1" in offered


def submitted(*words: str) -> str:
    with redirect_stdout(StringIO()) as printed:
        assert main(["job", "submit", "--json", *words]) == 0
    return json.loads(printed.getvalue())["id"]


def listed(state: str) -> str:
    with redirect_stdout(StringIO()) as printed:
        assert main(["job", "list", "--state", state, "--json"]) == 0
    return printed.getvalue()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("job", "list", "-t", "pend"), "pending"),
        (("job", "list", "-o", "job,sta"), "job,state"),
        (("up", "--policy", "gov"), "governed"),
        (("sbatch", "--gr"), "--gres"),
        (("sbatch", "--part"), "--partition"),
        (("sbatch", "-d", "aftero"), "afterok:"),
        (("sbatch", "--dependency", "=", "sing"), "singleton"),
        (("job", "submit", "--", "./tests/unit/cli/test_compl"), "test_completion.py"),
    ],
)
def test_bash_completes_values_of_options_and_files_after_the_dashes(
    words: tuple[str, ...], offered: str, scripts: dict[str, Path]
):
    assert offered in completed("bash", scripts["bash"], *words)


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_an_old_option_is_not_offered(shell: str, scripts: dict[str, Path]):
    offered = completed(shell, scripts[shell], "job", "list", "--st")
    assert "--state" in offered
    assert "--state-of" not in offered


def test_an_unknown_shell_is_refused_with_those_that_exist(capsys: Printed):
    assert main(["completion", "tcsh"]) == 2
    assert "fish" in capsys.readouterr().err


def test_installing_writes_the_script_in_the_home_directory(
    tmp_path: Path, capsys: Printed, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert main(["completion", "fish", "--install"]) == 0
    path = tmp_path / ".config" / "fish" / "completions" / "tenfold.fish"
    assert f"wrote `{path}`" in capsys.readouterr().out
    assert "whoami" in path.read_text()
