"""What a command costs before it does anything."""

import subprocess
import sys
from pathlib import Path

HEAVY = ("numpy", "scipy", "polars", "pyarrow", "litestar", "sqlalchemy", "yaml", "psutil")


def modules_after(code: str) -> list[str]:
    program = f"{code}\nimport sys\nprint(' '.join(sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return result.stdout.splitlines()[-1].split()


def test_help_imports_nothing_heavy():
    loaded = modules_after("from tenfold.cli.main import main\nmain(['--help'])")
    assert [name for name in HEAVY if name in loaded] == []
    assert "cyclopts" in loaded


def test_importing_tenfold_imports_nothing_of_it():
    loaded = modules_after("import tenfold")
    assert [name for name in loaded if name.startswith("tenfold.")] == []
    assert "msgspec" not in loaded


def test_public_names_are_there_when_asked_for():
    loaded = modules_after("import tenfold\nassert callable(tenfold.load_fleet)")
    assert "tenfold.compose.fleet" in loaded
    listed = modules_after(
        "import tenfold\nassert all(hasattr(tenfold, n) for n in tenfold.__all__)"
    )
    assert "tenfold.files.models.hf_config" in listed


def test_python_without_assertions_is_refused():
    result = subprocess.run(
        [sys.executable, "-O", "-m", "tenfold", "facts", "list"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert "assertions" in result.stderr


def test_every_benchmark_can_be_imported():
    result = subprocess.run(
        [sys.executable, "-m", "benchmarks", "no-such-benchmark"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert (result.returncode, result.stdout) == (2, "")
    assert "there is no benchmark `no-such-benchmark`" in result.stderr
