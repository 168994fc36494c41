"""Folders: small, without shared prefixes, mirrored by the unit tests; compose only wires."""

import ast
from pathlib import Path

import pytest

from benchmarks.counted import (
    FOLDER_MODULES_MAX,
    modules_by_folder,
    shared_prefixes,
)

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "tenfold"
UNIT = ROOT / "tests" / "unit"
PHYSICS_IN_COMPOSE = ("layout", "limits", "nodes", "shared_layers")
"""What wiring needs of physics: where nodes are, and what they share. The rest is computation."""
COMPUTES = (ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)


def test_no_folder_holds_more_than_twenty_modules():
    sizes = modules_by_folder(PACKAGE.rglob("*.py"), PACKAGE.parent)
    assert len(sizes) > 10
    assert {folder: size for folder, size in sizes.items() if size > FOLDER_MODULES_MAX} == {}


def test_files_with_one_prefix_are_a_folder():
    assert shared_prefixes(PACKAGE.rglob("*.py"), PACKAGE.parent) == {}


def test_unit_tests_are_where_their_modules_are():
    folders = {path.relative_to(UNIT).parent for path in UNIT.rglob("test_*.py")}
    assert len(folders) > 1
    homeless = sorted(str(folder) for folder in folders if not (PACKAGE / folder).is_dir())
    assert homeless == []


def computations(tree: ast.Module) -> list[int]:
    """Return the lines on which a module multiplies or divides, constants at its top left out."""
    constants = {
        id(node)
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for node in ast.walk(statement)
    }
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, COMPUTES)
        and id(node) not in constants
        and not _is_path(node)
    ]


def _is_path(node: ast.BinOp) -> bool:
    """`folder / "name"` joins a path."""
    if not isinstance(node.op, ast.Div):
        return False
    name = node.right
    return isinstance(name, ast.JoinedStr) or (
        isinstance(name, ast.Constant) and isinstance(name.value, str)
    )


def physics_used(tree: ast.Module) -> set[str]:
    """Return the modules of physics, and numpy, that a module imports."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = node.module.split(".")
            if parts[:2] == ["tenfold", "physics"]:
                found.add(parts[2] if len(parts) > 2 else "physics")
            elif parts[0] == "numpy":
                found.add("numpy")
        elif isinstance(node, ast.Import):
            found.update("numpy" for name in node.names if name.name.split(".")[0] == "numpy")
    return found


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "compose").rglob("*.py")), ids=lambda path: path.stem
)
def test_compose_wires_and_computes_nothing(path: Path):
    tree = ast.parse(path.read_text())
    assert computations(tree) == [], "what computes belongs to study, physics or model"
    assert physics_used(tree) <= set(PHYSICS_IN_COMPOSE)


@pytest.mark.parametrize(
    "text",
    [
        "def bill(hours, price):\n    return hours * price",
        "def share(part, whole):\n    return part / whole",
    ],
)
def test_a_computation_is_found(text: str):
    assert computations(ast.parse(text)) == [2]


def test_constants_and_paths_are_no_computation():
    text = 'LIMIT = 60 * 1000\ndef file(folder, day):\n    return folder / "a" / f"{day}.json"'
    assert computations(ast.parse(text)) == []


def test_numpy_and_other_physics_are_found():
    text = "import numpy as np\nfrom tenfold.physics.blast import losses\n"
    assert physics_used(ast.parse(text)) == {"numpy", "blast"}
