"""`tenfold cost report` without a record is about the control plane on this machine."""

from pathlib import Path

import pytest

from tenfold.cli.main import main
from unit.up_process import Up


def test_without_a_journal_it_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TENFOLD_STATE_DIR", str(tmp_path))
    assert main(["cost", "report"]) == 2
    said = capsys.readouterr().err
    assert f"no usage to report: no `--bundle` or `--jobs`, and no journal in `{tmp_path}`" in said
    assert "hint: use `--bundle`" in said


def test_the_journal_of_this_machine_is_read_and_jobs_list_their_gpu_hours(
    up: Up, capsys: pytest.CaptureFixture[str]
):
    up.start("--virtual-nodes", "1")
    assert main(["job", "submit", "--gpus", "2", "--wait", "--", "sleep", "0.1"]) == 0
    capsys.readouterr()
    assert main(["job", "list", "--since", "today", "--format", "job,gpu_hours"]) == 0
    heading, line = capsys.readouterr().out.splitlines()
    assert heading.split() == ["job", "GPU-hours"]
    assert float(line.split()[1]) >= 0
    assert main(["cost", "report"]) == 0
    assert "the fleet had" in capsys.readouterr().out
    up.interrupt()
