"""The glossary has every public noun, and every term of it occurs in the code.

A noun is covered by the glossary if one of these holds, whatever its case, hyphens and plural:
- it is a term (first column; several terms are separated by commas);
- it stands in backticks in the meaning of a term.
Nouns of closed sets (event kinds, policies, placements, layer families, packages) must stand in
backticks in the row of their own term, and that row must list no others.

A term occurs in the code if its words follow each other in an identifier or in a string that is
not a docstring: keys, options, messages and headings are such strings. Words in backticks in a
meaning must occur in the same way, so that a renamed key or class fails here.
"""

import ast
import re
from collections.abc import Iterable
from functools import cache

import pytest

import tenfold
from docs.codes import sources
from docs.console_blocks import ROOT
from tenfold.cli.main import app
from tenfold.files.fleet.rows import SINGLE_TABLES, TABLES
from tenfold.files.growth import MANY, SINGLE
from tenfold.files.policy.read import PolicyRow
from tenfold.model.events import KIND_OF
from tenfold.model.job.spec import JobFile
from tenfold.model.policy.policy import PLACEMENTS, POLICIES
from tenfold.server.routes import dry_run, events, fleet, jobs, logs, models, nodes, tokens, why
from tenfold.server.runtime import health

PAGE = ROOT / "docs" / "reference" / "glossary.md"
PACKAGE = ROOT / "src" / "tenfold"
ROUTES = (dry_run, events, fleet, health, jobs, logs, models, nodes, tokens, why)
OF_THE_API = {"api", "v1"}
ANOTHER_FORM = {
    "advise": "advice",
    "bench": "benchmark",
    "grow": "growth",
    "sim": "simulation",
    "up": "control plane",
    "down": "control plane",
    "status": "control plane",
    "aliases": "alias",
    "expects": "expectation",
    "govern": "governance",
}
"""Commands and tables whose term is another form of the word, which must be in the page."""


def words_of(text: str) -> str:
    """Return `NodeLost`, `node_lost` and `node-losts` alike as `node lost`."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    found = re.findall(r"[a-z0-9]+", parted.lower())
    return " ".join(re.sub(r"(?<=[a-z]{2}[^s])s\Z", "", word) for word in found)


def entries() -> dict[str, str]:
    """Return the meaning of each term; terms of one row share it."""
    found: dict[str, str] = {}
    for line in PAGE.read_text().splitlines():
        if not line.startswith("| ") or line.startswith("| term |"):
            continue
        terms, meaning, _ = (cell.strip() for cell in line.strip("|").split("|"))
        for term in re.sub(r"\(.*?\)", "", terms).split(","):
            assert term.strip() not in found, f"`{term.strip()}` has two rows"
            found[term.strip()] = meaning
    return found


def quoted(text: str) -> list[str]:
    return re.findall(r"`([^`]+)`", text)


def routes() -> set[str]:
    """Return the words of the HTTP API: the fixed parts of its paths."""
    paths = [route.path for module in ROUTES for route in module.ROUTES.routes]
    parts = {part for path in paths for part in path.split("/") if part and "{" not in part}
    return parts - OF_THE_API


def packages() -> set[str]:
    inside = [path.relative_to(PACKAGE).parts for path in sources()]
    return {parts[0] for parts in inside if len(parts) > 1}


def families() -> set[str]:
    folder = PACKAGE / "study" / "grow" / "layers"
    inside = [path.relative_to(folder).parts for path in sources() if folder in path.parents]
    return {parts[0] for parts in inside if len(parts) > 1}


def classes() -> set[str]:
    return {name for name in tenfold.__all__ if name[0].isupper()}


NOUNS: dict[str, Iterable[str]] = {
    "table or key of a fleet file": ["name", *TABLES, *SINGLE_TABLES],
    "key of a policy file": PolicyRow.__struct_encode_fields__,
    "key of a job file": JobFile.__struct_encode_fields__,
    "table of a grow file": [*SINGLE, *MANY],
    "command group": [name for name in app if not name.startswith("-")],
    "part of the HTTP API": routes(),
    "class of the Python API": classes(),
}
CLOSED_SETS = {
    "event": set(KIND_OF.values()),
    "policy": set(POLICIES),
    "placement": set(PLACEMENTS),
    "layer": families(),
    "package": packages(),
}


@pytest.mark.parametrize("kind", NOUNS)
def test_every_public_noun_is_in_the_glossary(kind: str):
    page = entries()
    known = {words_of(term) for term in page}
    known |= {words_of(word) for meaning in page.values() for word in quoted(meaning)}
    missing = [noun for noun in NOUNS[kind] if words_of(ANOTHER_FORM.get(noun, noun)) not in known]
    assert missing == []


@pytest.mark.parametrize("term", CLOSED_SETS)
def test_a_closed_set_is_listed_whole_in_the_row_of_its_term(term: str):
    names = [word for word in quoted(entries()[term]) if not word.startswith("src/")]
    assert sorted(names) == sorted(CLOSED_SETS[term])


@cache
def code_words() -> str:
    """Return the words of all identifiers and strings of the source, docstrings left out."""
    found: set[str] = set()
    for path in sources():
        tree = ast.parse(path.read_text())
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        found.update(path.relative_to(PACKAGE).with_suffix("").parts)
        for node in ast.walk(tree):
            match node:
                case ast.Constant(value=str() as text) if id(node) not in docstrings:
                    found.add(text)
                case ast.Name(id=text) | ast.arg(arg=text) | ast.Attribute(attr=text):
                    found.add(text)
                case ast.ClassDef(name=text) | ast.FunctionDef(name=text):
                    found.add(text)
                case _:
                    pass
    return "\n".join(f" {words_of(text)} " for text in sorted(found))


@pytest.mark.parametrize("term", entries())
def test_a_term_occurs_in_the_code(term: str):
    assert f" {words_of(term)} " in code_words()


@pytest.mark.parametrize("term", entries())
def test_what_a_meaning_quotes_occurs_in_the_code(term: str):
    names = [word for word in quoted(entries()[term]) if not re.search(r"[/\[\]]|\d|^EU$", word)]
    missing = [
        name for name in names if f" {words_of(name.removeprefix('tenfold '))} " not in code_words()
    ]
    assert missing == []


def test_terms_stand_in_order_within_their_table():
    for table in PAGE.read_text().split("\n## ")[1:]:
        terms = re.findall(r"^\| ([^|]+?) \|", table, re.MULTILINE)[1:]
        assert terms == sorted(terms, key=str.lower), table.splitlines()[0]
