"""The documentation is whole: every page, command, code, key and room stands in it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from docs import generate_reference
from docs.codes import codes, reasons, sources
from docs.console_blocks import ROOT, documents, run
from docs.meanings import (
    ANSWER_KEYS,
    ESTIMATE_KEYS,
    FACT_KEYS,
    FLEET_KEYS,
    FLEET_TABLES,
    GROW_KEYS,
    GROW_TABLES,
    GROW_TAKES,
)
from docs.refresh import PICTURE, PICTURED
from tenfold.compose.fleet import load_facts
from tenfold.facts.kinds import KINDS
from tenfold.files.core.json_lines import read_json_lines
from tenfold.files.growth import MANY, SINGLE
from tenfold.files.traces.columns import JOB_COLUMNS, TERM_COLUMNS
from tenfold.model.estimate import LoadEstimate, ServeEstimate, ServeRow, TrainEstimate, TrainRow
from tenfold.model.facts.fact import Fact
from tenfold.model.facts.shape import Mla, ModelShape
from tenfold.study.estimate.cache.cache import CacheAnswer, CacheSize
from tenfold.study.estimate.money import MonthAnswer, OwnAnswer, OwnAt
from tenfold.study.estimate.serve import estimate_serve
from tenfold.study.estimate.train import estimate_train

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
HEADS = [
    "Context",
    "Decision",
    "Alternatives and why not",
    "Consequences",
    "How we would know it was wrong",
]
REFRESH = "run .venv/bin/python tests/docs/refresh.py"


def name_of(page: Path) -> str:
    return str(page.relative_to(DOCS))


def in_nav(entries: object) -> list[str]:
    if isinstance(entries, str):
        return [entries]
    values = entries.values() if isinstance(entries, dict) else entries
    return [file for value in values for file in in_nav(value)]


def test_every_page_is_in_the_navigation_once():
    nav = in_nav(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"])
    assert sorted(nav) == sorted(name_of(page) for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_begins_with_a_plain_sentence_on_what_it_is_for(page: Path):
    text = re.sub(r"<!--.*?-->", "", page.read_text())
    title, first, *_ = [part for part in text.split("\n\n") if part.strip()]
    assert title.startswith("# ")
    assert re.match(r"[A-Z`*].*[.:]\Z", first.strip(), re.DOTALL), first


@pytest.mark.parametrize("page", sorted((DOCS / "decisions").glob("*.md")), ids=name_of)
def test_a_decision_has_the_fixed_heads(page: Path):
    assert re.findall(r"^## (.+)$", page.read_text(), re.MULTILINE) == HEADS
    assert re.match(r"\d{4}-[a-z0-9-]+\.md\Z", page.name)
    number = int(page.name[:4])
    assert page.read_text().startswith(f"# {number}. ")


@pytest.mark.parametrize("file", sorted(generate_reference.WRITERS))
def test_generated_pages_are_current(file: str):
    fresh = generate_reference.WRITERS[file]()
    assert (generate_reference.REFERENCE / file).read_text() == fresh, REFRESH


def test_every_key_has_a_meaning_and_every_meaning_a_key():
    tables = generate_reference.fleet_tables()
    assert sorted(FLEET_TABLES) == sorted(FLEET_KEYS) == sorted(tables)
    for table, row in tables.items():
        assert sorted(FLEET_KEYS[table]) == sorted(row.__struct_encode_fields__)
    common = Fact.__struct_fields__
    structs = {kind.name: kind.struct for kind in KINDS.values()}
    for name, struct in {**structs, "shape": ModelShape, "mla": Mla}.items():
        own = [field for field in struct.__struct_fields__ if field not in common]
        assert sorted(FACT_KEYS[name]) == sorted(own), name
    assert sorted(FACT_KEYS["fact"]) == sorted(common)


def test_every_key_of_a_grow_file_has_a_meaning():
    tables = {**SINGLE, **MANY}
    assert sorted(GROW_TABLES) == sorted(GROW_KEYS) == sorted(tables)
    for table, row in tables.items():
        assert sorted(GROW_KEYS[table]) == sorted(row.__struct_encode_fields__)
    known = {f"{table}.{key}" for table, keys in GROW_KEYS.items() for key in keys}
    assert set(GROW_TAKES) <= known


def test_every_key_of_an_estimate_has_a_meaning():
    assert sorted(ESTIMATE_KEYS) == sorted(generate_reference.ESTIMATE_ROWS)
    for name, row in generate_reference.ESTIMATE_ROWS.items():
        assert sorted(ESTIMATE_KEYS[name]) == sorted(row.__struct_encode_fields__)
    rows = ROOT / "examples" / "estimates"
    catalogue = load_facts()
    trained = estimate_train(read_json_lines(rows / "train.jsonl", TrainRow), catalogue)
    served = estimate_serve(read_json_lines(rows / "serve.jsonl", ServeRow), catalogue)
    assert isinstance(trained[0], TrainEstimate)
    assert isinstance(served[0], ServeEstimate)
    assert list(trained[0].breakdown_s) == list(ANSWER_KEYS["breakdown"])
    structs = {
        "train": TrainEstimate,
        "serve": ServeEstimate,
        "under_load": LoadEstimate,
        "cache": CacheAnswer,
        "size": CacheSize,
        "month": MonthAnswer,
        "own": OwnAnswer,
        "busy": OwnAt,
    }
    for name, struct in structs.items():
        assert list(struct.__struct_fields__) == list(ANSWER_KEYS[name])


def test_every_column_of_a_job_table_is_documented_and_no_other():
    page = (DOCS / "reference" / "job-traces.md").read_text().split("\n## Invalid rows")[0]
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", page, re.MULTILINE)
    documented = [name for row in rows for name in re.findall(r"`([a-z_]+)`", row)]
    declared = [*JOB_COLUMNS.values(), *TERM_COLUMNS.values()]
    assert sorted(documented) == sorted(column.name for column in declared)


def test_every_reason_of_the_planner_is_documented():
    page = (DOCS / "reference" / "planner-output.md").read_text()
    documented = re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE)
    assert [code for code in reasons() if code not in documented] == []


def test_every_command_is_documented_outside_its_own_reference():
    text = "\n".join(
        page.read_text() for page in documents() if page.name not in generate_reference.WRITERS
    )
    leaves = [words for words in generate_reference.commands() if words]
    groups = {words[:-1] for words in leaves}
    for words in leaves:
        if words not in groups:
            assert f"tenfold {' '.join(words)}" in text, words


def test_every_code_is_documented_once_and_no_other():
    page = (DOCS / "reference" / "errors.md").read_text()
    documented = re.findall(r"^\| `([a-z0-9-]+)` \|", page, re.MULTILINE)
    assert sorted(documented) == sorted(dict.fromkeys(documented))
    known = codes()
    missing = {code: file for code, file in known.items() if code not in documented}
    assert missing == {}
    assert [code for code in documented if code not in known] == []


def test_codes_are_kebab_case():
    assert [code for code in codes() if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", code)] == []


def test_the_picture_is_what_the_command_draws(tmp_path: Path):
    picture = tmp_path / "fresh.svg"
    run(f"tenfold fleet show {PICTURED} --svg {picture}", ROOT)
    assert (ROOT / PICTURE).read_text() == picture.read_text(), REFRESH
    assert PICTURE in (ROOT / "README.md").read_text()


def test_every_room_stands_in_the_architecture():
    page = (ROOT / "ARCHITECTURE.md").read_text()
    package = ROOT / "src" / "tenfold"
    rooms = {path.relative_to(package).parts[0] for path in sources() if path.parent != package}
    assert len(rooms) >= 8
    for room in rooms:
        assert re.search(rf"\b{room}\b", page.split("To come")[0]), room


def test_the_documentation_builds_without_a_warning(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "how-to" / "check-a-fleet" / "index.html").is_file()


def test_links_of_the_top_pages_lead_somewhere():
    for page in ("README.md", "ARCHITECTURE.md"):
        for target in re.findall(r"\]\(([^)]+)\)", (ROOT / page).read_text()):
            assert target.startswith("https://") or (ROOT / target).exists(), (page, target)
