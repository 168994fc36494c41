"""What the documentation shows is what the commands do."""

import doctest
import os
import subprocess
from pathlib import Path

import pytest

from docs.console_blocks import (
    PROGRAMS,
    ROOT,
    blocks,
    commands,
    documents,
    make_file,
    matches,
    prepare,
    run,
)

REFRESH = "if the new output is right: .venv/bin/python tests/docs/refresh.py"
OF_DEVELOPMENT = ("pytest", "hypothesis", "scipy", "polars", "pyarrow", "pynvml", "opentelemetry")
PAGES = [
    page
    for page in documents()
    if any(block.kind in ("console", "pycon") for block in blocks(page.read_text()))
]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
@pytest.mark.timeout(600)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path, programs: Path):
    # A fleet that does not say its name is called after its folder.
    tmp_path = tmp_path / "my-fleet"
    tmp_path.mkdir()
    prepare(tmp_path)
    for block in blocks(page.read_text()):
        if block.verb:
            make_file(block, tmp_path)
        for command in commands(block) if block.kind == "console" else []:
            where = f"{name_of(page)}, block at line {block.line}: $ {command.text}"
            assert command.runs, f"{where}\nonly tenfold and ./dev help run; use a bash block"
            printed = run(command.text, tmp_path, programs)
            assert matches(command.shown, printed), (
                f"{where}\nshown:\n{_text(command.shown)}\nprinted:\n{_text(printed)}\n{REFRESH}"
            )


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_sessions_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session = "\n".join(
        "\n".join([*block.lines, ""]) for block in blocks(page.read_text()) if block.kind == "pycon"
    )
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TENFOLD_FACTS", raising=False)
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    results = doctest.DocTestRunner(verbose=False).run(test, out=os.sys.stderr.write)
    assert results.failed == 0, f"{name_of(page)}: {results}"


@pytest.mark.timeout(600)
def test_the_commands_are_those_of_a_wheel_that_is_installed_alone(programs: Path):
    if programs == PROGRAMS:
        pytest.skip("the wheel could not be installed: see the warnings")
    code = (
        "import importlib.util as u, tenfold; print(tenfold.__file__); "
        f"print(*(name for name in {OF_DEVELOPMENT!r} if u.find_spec(name)))"
    )
    done = subprocess.run(
        [programs / "python", "-I", "-c", code], capture_output=True, text=True, check=True
    )
    file, others = done.stdout.splitlines()
    assert Path(file).is_relative_to(programs.parent)
    assert others == ""


def test_there_is_something_to_run():
    found = [
        command
        for page in documents()
        for block in blocks(page.read_text())
        if block.kind == "console"
        for command in commands(block)
    ]
    assert len(found) >= 20
    assert all(command.shown or ">" in command.text for command in found)


def test_output_is_compared_line_by_line():
    assert matches(["a", "...", "c"], ["a", "b", "b", "c"])
    assert matches(["..."], [])
    assert not matches(["a"], ["a", "b"])
    assert not matches(["a.c"], ["abc"])
    assert matches(["x 2.9340675026120797"], ["x 2.9340675026120812"])
    assert not matches(["x 2.9340675026120797"], ["x 2.9341675026120797"])


def test_a_block_can_make_a_file(tmp_path: Path):
    page = (
        "<!-- file: a/b.toml -->\n```toml\nx = 1\n```\n"
        "<!-- append: a/b.toml -->\n```toml\ny = 2\n```\n"
    )
    for block in blocks(page):
        make_file(block, tmp_path)
    assert (tmp_path / "a/b.toml").read_text() == "x = 1\n\ny = 2\n"


def _text(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)
