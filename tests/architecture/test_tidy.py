"""Properties of the code itself: sizes, names, words and purity, file by file."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
CORE = [
    path
    for path in SOURCES
    if path.relative_to(ROOT / "src" / "tenfold").parts[0] in ("model", "physics", "decide")
]
FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 50
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
IMPURE_CALLS = {"open", "print", "input", "eval", "exec", "__import__"}


def tracked() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


def functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text())
    return [
        node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def too_long(path: Path) -> list[str]:
    return [
        node.name
        for node in functions(path)
        if (node.end_lineno or 0) - node.lineno + 1 > FUNCTION_LINES_MAX
    ]


def impure(path: Path) -> list[str]:
    """Calls that reach outside, and loops over a set, whose order is not fixed."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in IMPURE_CALLS:
                found.append(f"{node.func.id}() at line {node.lineno}")
        elif isinstance(node, ast.For | ast.comprehension) and _is_set(node.iter):
            found.append("a loop over a set")
    return found


def _is_set(node: ast.expr) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("set", "frozenset")
    )


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_a_file_holds_one_idea(path: Path):
    text = path.read_text()
    assert len(text.splitlines()) <= FILE_LINES_MAX
    assert too_long(path) == []
    assert path.stem not in BANNED_NAMES
    assert text.isascii()
    assert ast.get_docstring(ast.parse(text)), "a module says what it is about"


@pytest.mark.parametrize("path", CORE, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_the_core_reaches_nothing_outside(path: Path):
    assert impure(path) == []


def test_these_checks_can_fail(tmp_path: Path):
    planted = tmp_path / "planted.py"
    body = "\n".join(f"    a = {number}" for number in range(60))
    planted.write_text(f"def long():\n{body}\nfor x in set([1]):\n    print(x)\n")
    assert too_long(planted) == ["long"]
    assert len(impure(planted)) == 2


def test_every_public_name_has_a_docstring():
    bare = [
        f"{path.relative_to(ROOT)}: {node.name}"
        for path in SOURCES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef)
        and not node.name.startswith("_")
        and not ast.get_docstring(node)
    ]
    assert bare == []


def test_no_tracked_file_names_a_machine_or_a_registry():
    here = re.escape(str(ROOT.parent)) if ROOT.parent != Path("/") else "(?!)"
    home = re.compile(rf"/(?:home|root|Users)/\w+|{here}/|pypi\.org/simple")
    for path in tracked():
        if path.suffix in (".png", ".svg") or path == Path(__file__):
            continue
        text = path.read_text(errors="replace")
        assert not home.search(text), path
        assert path.name not in ("uv.lock", "poetry.lock", "pdm.lock")


def test_every_room_says_what_it_is_for():
    rooms = sorted(path for path in (ROOT / "src" / "tenfold").iterdir() if path.is_dir())
    for room in rooms:
        if room.name != "__pycache__":
            assert ast.get_docstring(ast.parse((room / "__init__.py").read_text())), room.name
