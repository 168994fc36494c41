"""`tenfold sbatch`: what it refuses before it asks a control plane."""

from pathlib import Path

import pytest

from tenfold.cli.main import main

Printed = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TENFOLD_STATE_DIR", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("train.py", "#!/usr/bin/env python3, or use `tenfold job submit -- python train.py`"),
        ("train.sh", "#!/bin/bash"),
    ],
)
def test_a_file_without_an_interpreter_is_no_batch_script(name: str, hint: str, capsys: Printed):
    Path(name).write_text("print(1)\n")
    assert main(["sbatch", "--test-only", name]) == 2
    assert capsys.readouterr().err.splitlines() == [
        f"error: `{name}` is not a batch script: its first line does not begin with #!",
        f"hint: begin it with {hint}",
    ]


def test_an_error_names_the_option_and_the_line(capsys: Printed):
    Path("a.sh").write_text("#!/bin/bash\n#SBATCH -t banana\ntrue\n")
    assert main(["sbatch", "--test-only", "a.sh"]) == 2
    assert capsys.readouterr().err.splitlines() == [
        "error: a.sh:2: `--time` expects a duration, got the string `banana`",
        "hint: write minutes, `HH:MM:SS` or `D-HH:MM:SS`: --time=90, --time=1-12:00:00",
    ]


def test_allow_pending_is_an_option_before_the_script(capsys: Printed):
    Path("a.sh").write_text("#!/bin/bash\ntrue\n")
    assert main(["sbatch", "--test-only", "--allow-pending", "a.sh"]) == 0
    assert "is valid" in capsys.readouterr().out
