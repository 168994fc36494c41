"""Service commands against a real control plane."""

from collections.abc import Generator
from pathlib import Path

import pytest

from tenfold.cli.main import main
from unit.up_process import Up, commands_find, running


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Generator[Up, None, None]:
    with running(tmp_path_factory.mktemp("up") / "home", "--virtual-nodes", "1") as made:
        yield made


def test_a_service_whose_replicas_exit_names_the_last_one_and_its_exit_code(
    up: Up, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    commands_find(up, monkeypatch)
    file = tmp_path / "service.toml"
    file.write_text('name = "chat"\ncommand = ["sh", "-c", "exit 3", "{port}"]\n')
    assert main(["service", "deploy", str(file), "--wait"]) == 1
    error = capsys.readouterr().err
    assert "replicas of `r1` failed in a row" in error
    assert "exit code 3" in error
    assert "hint: `tenfold job logs chat-" in error
    assert main(["service", "show", "chat"]) == 0
    assert "of `r1` failed in a row" in capsys.readouterr().out
