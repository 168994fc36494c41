"""Tests that were once blind are not any more: each named mutant of the code is killed."""

import os
import subprocess
import sys

import pytest

from architecture.mutants import CHOSEN, MUTANTS, ROOT


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_killed(name: str):
    mutant = MUTANTS[name]
    # Fails here if the line has gone: a mutant that is not applied proves nothing.
    assert mutant.source() != mutant.path.read_text()
    # Without plugins and fixtures of ours a run of one test takes a second, not four.
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-s", "--noconftest"),
            *("-o", "addopts=--import-mode=importlib", "-p", "no:cacheprovider"),
            *("-p", "architecture.mutants", f"tests/{mutant.killed_by}"),
        ],
        cwd=ROOT,
        env={
            **os.environ,
            CHOSEN: name,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(ROOT / "tests"),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert f"mutated {mutant.module}" in done.stdout, done.stdout + done.stderr
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "AssertionError" in done.stdout, done.stdout


def test_a_line_that_has_gone_is_no_mutant():
    mutant = next(iter(MUTANTS.values()))
    gone = type(mutant)(mutant.file, "no such line", "", mutant.killed_by)
    with pytest.raises(AssertionError, match="stands 0 times"):
        gone.source()
