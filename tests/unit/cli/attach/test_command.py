"""`tenfold attach slurm`: which options go together, and what `--act` needs."""

from pathlib import Path

import pytest

from tenfold.cli.attach.render import show_status
from tenfold.cli.main import main
from tenfold.study.attach.act import ActCounts
from tenfold.study.attach.recorder import AttachStatus

Printed = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--act"], "--act needs a partition or an account"),
        (["--act", "--recommend", "--partition", "gpu"], "--recommend and --act cannot be"),
        (["--observe", "--act", "--partition", "gpu"], "--observe and --act cannot be combined"),
        (["--act", "--partition", "gpu", "--from", "."], "--from and --act cannot be combined"),
        (["--recommend", "--account", "vision"], "--account needs --act"),
        (["--partition", "gpu"], "--partition needs --act"),
        (["--under", "fair"], "--under needs --recommend or --act"),
    ],
)
def test_options_that_do_not_go_together_are_named(
    options: list[str], message: str, tmp_path: Path, capsys: Printed
):
    assert main(["attach", "slurm", "--state-dir", str(tmp_path), *options]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert "hint: " in said
    assert list(tmp_path.iterdir()) == []


def test_a_status_says_what_was_placed_and_what_was_not(tmp_path: Path, capsys: Printed):
    skipped = {str(number): "its user named nodes" for number in range(7)}
    counts = ActCounts(released=3, started=2, late=1, skipped=skipped)
    show_status(tmp_path, AttachStatus(source="live", mode="act", acted=counts))
    said = " ".join(capsys.readouterr().out.split())
    assert "3 released, 2 of them started, 0 rejected by Slurm, 1 not started in time" in said
    assert said.count("its user named nodes") == 5
    assert "and 2 more" in said


def test_a_partition_that_slurm_does_not_have_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Printed
):
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\necho PartitionName=gpu State=UP Nodes=n1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    state = tmp_path / "state"
    state.mkdir()
    options = ["--act", "--partition", "gup", "--state-dir", str(state), "--once"]
    assert main(["attach", "slurm", *options]) == 2
    said = capsys.readouterr().err
    assert "--partition `gup` is no partition of this cluster" in said
    assert "use one of gpu" in said
