"""What the wheel imports is what it declares, and the other way round."""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import tomli

ROOT = Path(__file__).parents[2]
PROJECT = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]
BY_NAME = {"psycopg": ("postgresql+psycopg",)}
"""Modules that another library loads, and the text in our sources that makes it do so."""
ABSENT = {"ray": ["ray"]}
"""Modules of what need not be installed where the tests run."""


def modules_of(distribution: str) -> list[str]:
    """Return the top-level names that a distribution is imported by."""
    wanted = _normal(distribution)
    names = [
        module
        for module, owners in _owners().items()
        if wanted in [_normal(owner) for owner in owners]
    ]
    found = names or ABSENT.get(wanted)
    assert found, f"`{distribution}` is not installed"
    return found


@cache
def _owners() -> Mapping[str, list[str]]:
    """Return the distributions of each module: read once, from every file list there is."""
    return packages_distributions()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(requirements: list[str]) -> dict[str, list[str]]:
    """Return the modules of each requirement."""
    names = [re.split(r"[\[<>=!~; ]", one, maxsplit=1)[0] for one in requirements]
    return {name: modules_of(name) for name in names}


def imported(sources: Path) -> dict[str, str]:
    """Return the third-party modules that sources import, each with one file that does."""
    found: dict[str, str] = {}
    for path in sorted(sources.rglob("*.py")):
        text = path.read_text()
        for name in _names(ast.parse(text)):
            found.setdefault(name.split(".")[0], str(path.relative_to(sources)))
        for module, marks in BY_NAME.items():
            if any(mark in text for mark in marks):
                found.setdefault(module, str(path.relative_to(sources)))
    known = {*sys.stdlib_module_names, "tenfold"}
    return {module: file for module, file in found.items() if module not in known}


def _names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            yield from (
                one.value
                for one in node.args[:1]
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )


EXTRAS = {
    name: requirements
    for name, requirements in PROJECT["optional-dependencies"].items()
    if name != "dev"
}


# Read when a test asks, not when tests are collected: every worker collects all of them.
@cache
def core() -> dict[str, list[str]]:
    return declared(PROJECT["dependencies"])


@cache
def ours() -> dict[str, str]:
    return imported(ROOT / "src")


def unused(requirements: dict[str, list[str]]) -> list[str]:
    return [
        name
        for name, modules in requirements.items()
        if not any(module in ours() for module in modules)
    ]


def test_everything_that_is_imported_is_declared():
    extras = [declared(requirements) for requirements in EXTRAS.values()]
    known = [
        module for part in (core(), *extras) for modules in part.values() for module in modules
    ]
    assert {module: file for module, file in ours().items() if module not in known} == {}


def test_every_dependency_is_imported():
    assert unused(core()) == []


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_is_imported_and_no_part_of_every_install(extra: str):
    found = declared(EXTRAS[extra])
    assert unused(found) == []
    assert [name for name in found if name in core()] == []


def test_imports_are_found_wherever_they_are(tmp_path: Path):
    (tmp_path / "one.py").write_text(
        "import json, alpha.inner\n"
        "def later():\n    from beta import thing\n"
        "    return import_module('gamma.parquet')\n"
        "DRIVER = 'postgresql+psycopg'\n"
    )
    assert sorted(imported(tmp_path)) == ["alpha", "beta", "gamma", "psycopg"]
