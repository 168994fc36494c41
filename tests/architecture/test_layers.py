"""The folder tree is the architecture; this is where that is checked."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINT_IMPORTS = Path(sys.executable).with_name("lint-imports")


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    return subprocess.run(
        [LINT_IMPORTS, "--no-cache"],
        cwd=root,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the sources in which a test may plant a violation."""
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_imports_follow_the_layers():
    result = lint_imports(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("room", "statement", "broken"),
    [
        ("model", "from tenfold.files import document", "Layers"),
        ("physics", "from tenfold.facts import loader", "Layers"),
        ("files", "from tenfold.report import figures", "Layers"),
        ("facts", "import tenfold.cli.main", "Layers"),
        ("sim", "from tenfold.decide.place import after", "Worlds"),
    ],
)
def test_a_planted_violation_is_caught(copy: Path, room: str, statement: str, broken: str):
    (copy / "src" / "tenfold" / room / "planted.py").write_text(f'"""Planted."""\n\n{statement}\n')
    result = lint_imports(copy)
    assert result.returncode != 0
    lines = [line for line in result.stdout.splitlines() if "BROKEN" in line]
    assert any(broken in line for line in lines), result.stdout


def test_a_room_that_the_layers_do_not_name_is_caught(copy: Path):
    room = copy / "src" / "tenfold" / "utils"
    room.mkdir()
    (room / "__init__.py").write_text('"""Planted."""\n')
    assert lint_imports(copy).returncode != 0
