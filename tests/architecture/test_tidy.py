"""Properties of the code itself: sizes, names and words, file by file."""

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
FILE_LINES_MAX = 700
"""A hint at about 400; a file that is one idea may be longer, up to this."""
FUNCTION_LINES_MAX = 50
BANNED_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}


def tracked() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listing.stdout.splitlines() if (ROOT / name).is_file()]


def too_long(tree: ast.Module) -> list[str]:
    """Functions with too long a body; a command has as many options as its users need."""
    return [
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.body[0].lineno + 1 > FUNCTION_LINES_MAX
    ]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_a_file_holds_one_idea(path: Path):
    text = path.read_text()
    tree = ast.parse(text)
    assert len(text.splitlines()) <= FILE_LINES_MAX
    assert too_long(tree) == []
    assert path.stem not in BANNED_NAMES
    assert text.isascii()
    assert ast.get_docstring(tree), "a module says what it is about"


def test_these_checks_can_fail():
    body = "\n".join(f"    a = {number}" for number in range(60))
    assert too_long(ast.parse(f"def long():\n{body}\n")) == ["long"]


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
    # A clone in a folder of its own names the machine; `/tmp` and the like name any machine.
    here = re.escape(str(ROOT.parent)) if len(ROOT.parent.parts) > 2 else "(?!)"
    home = re.compile(rf"/(?:home|root|Users)/\w+|{here}/|pypi\.org/simple")
    for path in tracked():
        if path.suffix in (".png", ".svg") or path == Path(__file__):
            continue
        text = path.read_text(errors="replace")
        assert not home.search(text), path
        assert path.name not in ("uv.lock", "poetry.lock", "pdm.lock")


def test_every_room_says_what_belongs_there_and_what_does_not():
    rooms = [path.parent for path in (ROOT / "src" / "tenfold").glob("*/__init__.py")]
    assert len(rooms) > 10
    for room in rooms:
        text = ast.get_docstring(ast.parse((room / "__init__.py").read_text())) or ""
        assert "Belongs here:" in text, room.name
        assert "Does not belong here:" in text, room.name


def test_every_folder_says_what_it_is_about():
    for path in (ROOT / "src" / "tenfold").rglob("__init__.py"):
        text = ast.get_docstring(ast.parse(path.read_text())) or ""
        assert len(text.split()) >= 5, path
