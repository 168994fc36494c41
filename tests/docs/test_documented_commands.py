"""What the documentation shows is what the commands do; no block is only for looking at."""

import doctest
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from cyclopts import CycloptsError

from docs.console_blocks import (
    PROGRAMS,
    ROOT,
    Block,
    blocks,
    commands,
    documents,
    make_file,
    matches,
    trimmed,
)
from docs.page_session import page_session, without_what_varies
from docs.record_first_ten_minutes import CAST, PAGE, STEPS, page
from docs.shown_files import DATA, READERS, check_shown_file
from tenfold.cli.main import app

REFRESH = "if the new output is right: .venv/bin/python tests/docs/refresh.py"
OF_DEVELOPMENT = ("pytest", "hypothesis", "scipy", "polars", "pyarrow", "pynvml", "opentelemetry")
NEEDS = re.compile(r"^<!-- needs: (?P<packages>[\w ]+) -->$", re.MULTILINE)
"""Packages that the commands of a page need and a small install does not have."""
RUN = ("console", "bash", "python", "setup")
LOOKS_LIKE_CODE = re.compile(r"^(?:\$ |tenfold |\./dev |python |import |from \S+ import |\[\[?\w)")


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def test_the_recorded_session_is_what_the_recorder_writes():
    """Record it anew with tests/docs/record_first_ten_minutes.py."""
    recorded = [line[2:] for line in page().splitlines() if line.startswith("$ ")]
    assert page() == PAGE.read_text()
    assert recorded == [command for _, command in STEPS]
    assert "tf_..." in page()
    assert not re.search(r"tf_\w", PAGE.read_text() + CAST.read_text())


def pages_with(*kinds: str) -> list[Path]:
    return [
        page
        for page in documents()
        if any(
            block.kind in kinds and block.verb != "not-run" for block in blocks(page.read_text())
        )
    ]


@pytest.mark.parametrize("page", pages_with(*RUN), ids=name_of)
@pytest.mark.timeout(600)
def test_a_page_runs_and_prints_what_it_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest
):
    text = page.read_text()
    with page_session(tmp_path, programs_of(text, request)) as session:
        for block in blocks(text):
            where = f"{name_of(page)}, block at line {block.line}"
            try:
                for command, printed in session.play(block):
                    shown = command.shown
                    assert _is_as_shown(shown, printed, is_live=session.is_live), (
                        f"{where}: $ {command.text}\nshown:\n{_text(shown)}\n"
                        f"printed:\n{_text(printed)}\n{REFRESH}"
                    )
            except Exception as error:
                error.add_note(where)
                raise


def programs_of(text: str, request: pytest.FixtureRequest) -> Path:
    """Return the folder of `tenfold`; one with the packages that a page needs, if it says so."""
    needs = NEEDS.search(text)
    if needs is None:
        return request.getfixturevalue("programs")
    for name in needs["packages"].split():
        pytest.importorskip(name)
    return PROGRAMS


@pytest.mark.parametrize("page", pages_with("pycon"), ids=name_of)
def test_python_sessions_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session = "\n".join(
        "\n".join([*block.lines, ""]) for block in blocks(page.read_text()) if block.kind == "pycon"
    )
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TENFOLD_FACTS", raising=False)
    test = doctest.DocTestParser().get_doctest(session, {}, page.name, str(page), 0)
    results = doctest.DocTestRunner(verbose=False).run(test, out=os.sys.stderr.write)
    assert results.failed == 0, f"{name_of(page)}: {results}"


@pytest.mark.parametrize("page", documents(), ids=name_of)
def test_every_block_is_run_or_read_or_says_why_not(page: Path, tmp_path: Path):
    found = list(blocks(page.read_text()))
    for place, block in enumerate(found):
        fault = _fault(block, found[place + 1 :])
        where = f"{name_of(page)}, block at line {block.line}"
        assert fault is None, f"{where}: {fault}"
        if block.verb == "check":
            check_shown_file(block, tmp_path)
        if block.verb == "not-run":
            for line in _tenfold_lines(block):
                _parse(line, where)


def test_blocks_that_are_neither_run_nor_marked_are_found():
    def fault(page: str) -> str | None:
        first, *rest = blocks(page)
        return _fault(first, rest)

    assert fault("```\nspeed = 1 / 2\n```\n") == "say what it is: ```text, ```bash ..."
    assert fault("```text\ntenfold job list\n```\n") is not None
    assert fault("```rust\nfn main() {}\n```\n") is not None
    assert fault("```toml\nx = 1\n```\n") is not None
    assert fault("<!-- check: nothing -->\n```toml\nx = 1\n```\n") is not None
    assert fault("<!-- file: a.toml -->\n```toml\nx = 1\n```\n") is not None
    assert fault("*Not run in tests: no.*\n```bash\nx\n```\n") is not None
    named = "<!-- file: a.toml -->\n```toml\nx = 1\n```\n```bash\ntenfold fleet check a.toml\n```\n"
    assert fault(named) is None
    assert fault("*Not run in tests: needs podman.*\n\n```bash\npodman pull x\n```\n") is None
    with pytest.raises(AssertionError, match="no-such"):
        _parse("tenfold job list --no-such", "a page")


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


def test_output_of_a_control_plane_is_compared_without_what_varies():
    shown = [
        "job  age",
        "a-1   4m  ann@laptop",
        "at http://127.0.0.1:7410, 2026-11-16 23:26:27 UTC",
    ]
    printed = ["job    age", "a-1  13s  ops@vm", "at http://127.0.0.1:9, 2027-01-01 00:00:00 UTC"]
    assert without_what_varies(shown) == without_what_varies(printed)
    assert without_what_varies(["16 GPUs"]) != without_what_varies(["8 GPUs"])


def test_a_block_can_make_a_file(tmp_path: Path):
    page = (
        "<!-- file: a/b.toml -->\n```toml\nx = 1\n```\n"
        "<!-- append: a/b.toml -->\n```toml\ny = 2\n```\n"
    )
    for block in blocks(page):
        make_file(block, tmp_path)
    assert (tmp_path / "a/b.toml").read_text() == "x = 1\n\ny = 2\n"


def _fault(block: Block, later: list[Block]) -> str | None:
    """Return why a block is neither run nor read nor marked; None if it is."""
    if block.verb == "not-run":
        is_long = len(block.name.split()) > 1
        return (
            None
            if block.kind in ("bash", "console", "python", "text") and is_long
            else "only code and output, with a reason"
        )
    if block.kind in ("console", "bash", "python", "pycon", "setup"):
        return None
    if not block.kind:
        return "say what it is: ```text, ```bash ..."
    if block.verb in ("file", "append"):
        # A file in a folder may be read with its folder.
        names = {Path(block.name).name, Path(block.name).parts[0]}
        is_used = any(name in line for one in later for line in one.lines for name in names)
        return None if is_used else f"no later block uses `{block.name}`"
    if block.kind in DATA:
        return None if block.name in READERS else f"`<!-- check: ... -->` of {sorted(READERS)}"
    if block.kind != "text":
        return "only text, console, bash, python, pycon and data files are known"
    if any(LOOKS_LIKE_CODE.match(line) for line in block.lines):
        return "a block with commands or code is not text"
    return None


def _tenfold_lines(block: Block) -> list[str]:
    joined = "\n".join(block.lines).replace("\\\n", " ").splitlines()
    bare = [re.sub(r"^(?:\$ )?(?:[A-Z_]+=\S+ )*", "", line.strip()) for line in joined]
    if block.kind == "console":
        bare = [line for line, whole in zip(bare, joined, strict=True) if whole.startswith("$ ")]
    return [line for line in bare if line.startswith("tenfold ")]


def _parse(line: str, where: str) -> None:
    """Read a line as the command would; nothing runs."""
    words = re.split(r"\s[|>&;]", line)[0]
    try:
        app.parse_args(
            shlex.split(words, comments=True)[1:], print_error=False, exit_on_error=False
        )
    except CycloptsError as error:
        raise AssertionError(f"{where}: {line}\n{error}") from None


def _is_as_shown(shown: list[str], printed: list[str], *, is_live: bool) -> bool:
    if is_live:
        return matches(without_what_varies(shown), without_what_varies(printed))
    return matches(shown, printed)


def _text(lines: list[str]) -> str:
    return "\n".join(f"  {line}" for line in lines)


def test_notes_on_progress_are_not_part_of_what_a_page_shows():
    printed = "note: 14 simulation runs done after 12 s\nfirst to break\nnote: 2 jobs left out\n"
    assert trimmed(printed) == ["first to break", "note: 2 jobs left out"]
    for shown in documents():
        assert not any(
            line.startswith("note: ") and "done after" in line
            for line in shown.read_text().splitlines()
        ), shown
