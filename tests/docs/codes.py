"""Every code of an error or finding that the source can give, found by reading it.

A code is the first argument of a function that calls it `code`, the first argument of
an error class, or the keyword `code` beside a `message`. Codes made of a kind or table
are spelled out.
"""

import ast
import subprocess
from functools import cache
from pathlib import Path

from tenfold.facts.kinds import KINDS
from tenfold.report.reasons.plans import PLANS

ROOT = Path(__file__).parents[2]
NOT_OF_PLANS = ("no-model", "deadline-before-quorum", "does-not-fit")
"""Codes of other answers that are told in the same words as plans."""
MADE_OF_TABLES = ("site", "fabric", "team")


def sources() -> list[Path]:
    """Return the source files that git knows; all of them where there is no git.

    A room that is still being written is documented when it is added, not before.
    """
    listing = subprocess.run(
        ["git", "ls-files", "src"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    known = [ROOT / name for name in listing.stdout.splitlines() if name.endswith(".py")]
    known = [path for path in known if path.is_file()]
    return known or sorted((ROOT / "src").rglob("*.py"))


@cache
def codes() -> dict[str, str]:
    """Return each code with the file that gives it."""
    trees = {path: ast.parse(path.read_text()) for path in sources()}
    takers = {name for tree in trees.values() for name in _takers(tree)}
    found: dict[str, str] = {}
    for path, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                for text in _stated(node, takers):
                    found.setdefault(text, str(path.relative_to(ROOT)))
    for name in (*KINDS, *MADE_OF_TABLES):
        found.setdefault(f"unknown-{name}", "src/tenfold/model/facts/catalogue.py")
    return found


def reasons() -> list[str]:
    """Return the codes of the reasons that a plan gives."""
    return sorted(code for code in PLANS if code not in NOT_OF_PLANS)


def _takers(tree: ast.Module) -> set[str]:
    """Return functions whose first argument is a code, and the error classes."""
    names = {"TenfoldError"}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            arguments = [one.arg for one in node.args.args if one.arg != "self"]
            if arguments[:1] == ["code"] and node.name != "__init__":
                names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            bases = [base.id for base in node.bases if isinstance(base, ast.Name)]
            if "TenfoldError" in bases:
                names.add(node.name)
    return names


def _stated(call: ast.Call, takers: set[str]) -> list[str]:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else None
    name = call.func.id if isinstance(call.func, ast.Name) else name
    if ast.unparse(call.func).startswith("_LOG."):
        # What is logged is a sentence, whatever else goes by the name of the method.
        name = None
    words = {word.arg: word.value for word in call.keywords}
    # Other records have a `code` as well; an error or finding has a message beside it.
    values = [words["code"]] if "code" in words and "message" in words else []
    # A set has `add` too, but a code never comes without its sentence.
    # An error class of its own states its code to the class above it.
    is_above = ast.unparse(call.func) == "super().__init__" and len(call.args) == 3
    if (name in takers or is_above) and call.args and len(call.args) + len(call.keywords) > 1:
        values.append(call.args[0])
    return [
        value.value
        for value in values
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    ]
