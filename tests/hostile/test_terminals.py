"""No control or bidirectional character of a user's reaches a screen, a log or a report."""

import ast
import importlib
import inspect
import io
import json
import logging
import pkgutil
import re
import sys
import types
import typing
import unicodedata
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tenfold.cli
from tenfold.cli import output
from tenfold.cli.main import main
from tenfold.model.reason import Reason, Text
from tenfold.report.charts.svg import clean
from tenfold.report.pages.html import list_html, prose_html, table_html
from tenfold.report.reasons.render import render
from tenfold.report.visible import visible, visible_line
from tenfold.server.runtime.logs import JsonLines

EVIL = (
    "a\x1b]0;title\x07b\x1b[2Jc\rd\x08e\x7ff\x9b1Ag\x00h"
    "\u202ei\u2066j\u200fk\u061cl\u2028m\U000e0041n"
)
NEW_LINE = "x\nerror: forged"
BIDI = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
MARKS = "\u200e\u200f\u061c"
OWN_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
WRITERS = {"output.py", "screen.py", "process_exit.py"}
CLI = Path(tenfold.cli.__path__[0])


def harmful(text: str, *, but: str = "\n\t") -> list[str]:
    """Return the characters of a text that must not reach a terminal, by Unicode's own tables."""
    return [
        hex(ord(one))
        for one in text
        if one not in but
        and (
            unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp")
            or unicodedata.bidirectional(one) in BIDI
            or one in MARKS
        )
    ]


characters = st.text(
    st.characters(exclude_categories=())
    | st.sampled_from([chr(one) for one in range(0xA0)])
    | st.sampled_from("\u202a\u202e\u2066\u2069\u200e\u200f\u061c\u2028\u2029\ufeff\U000e0001")
)


@given(characters)
def test_whatever_the_text_nothing_harmful_is_left(text: str):
    assert harmful(visible(text)) == []
    assert harmful(visible_line(text), but="") == []
    assert visible(visible(text)) == visible(text)


@given(st.text(st.characters(categories=("L", "M", "N", "P", "S", "Zs"))))
def test_text_that_people_write_is_left_alone(text: str):
    assert visible(text) == text


@given(st.text(st.characters(exclude_categories=("Cs",))))
def test_escaped_json_is_the_same_data(text: str):
    shown = visible(msgspec.json.encode([text]).decode())
    assert harmful(shown) == []
    assert json.loads(shown) == [text]


def hostile(kind: Any) -> Any:
    """Return a value of a type whose every string is hostile."""
    origin, inside = typing.get_origin(kind), typing.get_args(kind)
    if origin in (types.UnionType, typing.Union):
        return hostile(next(one for one in inside if one is not type(None)))
    if origin is typing.Annotated:
        return hostile(inside[0])
    if origin is Literal:
        return inside[0]
    if isinstance(kind, typing.NewType):
        return hostile(kind.__supertype__)
    if origin is tuple:
        return tuple(hostile(one) for one in inside if one is not Ellipsis)
    if origin is not None and issubclass(origin, typing.Mapping):
        return {hostile(inside[0]): hostile(inside[1])}
    if origin is not None and issubclass(origin, typing.Iterable):
        return [hostile(inside[0])]
    if inspect.isclass(kind) and issubclass(kind, msgspec.Struct):
        hints = typing.get_type_hints(kind)
        return kind(**{name: hostile(hints[name]) for name in kind.__struct_fields__})
    known = {str: EVIL, int: 7, float: 0.5, bool: True, object: EVIL, Any: EVIL, dict: {EVIL: EVIL}}
    return known[kind]


def renderers() -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield every function of the command line that prints an answer."""
    for found in pkgutil.walk_packages(tenfold.cli.__path__, "tenfold.cli."):
        module = importlib.import_module(found.name)
        for name, one in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("show") and one.__module__ == found.name:
                yield f"{found.name}.{name}", one


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def a_terminal(monkeypatch: pytest.MonkeyPatch) -> Generator[Terminal]:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.delenv("NO_COLOR", raising=False)
    output.console.cache_clear()
    yield screen
    output.console.cache_clear()
    monkeypatch.undo()


def test_every_renderer_of_an_answer_escapes_what_it_prints(monkeypatch: pytest.MonkeyPatch):
    with a_terminal(monkeypatch) as terminal:
        printed: list[str] = []
        for name, one in renderers():
            terminal.seek(0)
            terminal.truncate()
            with suppress(Exception):
                # An answer of nothing but nonsense: what cannot be shown need not be.
                hints = typing.get_type_hints(one)
                hints.pop("return", None)
                wanted = inspect.signature(one).parameters
                one(**{key: hostile(hints[key]) for key in wanted})
            said = OWN_COLOURS.sub("", terminal.getvalue())
            assert harmful(said) == [], name
            if "\\u001b]0;title" in said:
                printed.append(name)
        assert len(printed) >= 10, printed
        for name in ("listing.show_jobs", "details.show_job"):
            assert f"tenfold.cli.job.{name}" in printed
        for name in ("show_nodes", "show_tokens"):
            assert f"tenfold.cli.job.live_render.{name}" in printed


def test_rich_text_tables_and_brackets_are_escaped_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    with a_terminal(monkeypatch) as terminal:
        from rich.text import Text as RichText  # noqa: PLC0415
        from rich.tree import Tree  # noqa: PLC0415

        output.show(EVIL, RichText(EVIL), Tree(EVIL), output.table(EVIL, [EVIL], [[EVIL]]))
        said = OWN_COLOURS.sub("", terminal.getvalue())
        assert harmful(said) == []
        assert said.count("\\u202e") >= 5


def test_a_value_cannot_forge_a_line(capsys: pytest.CaptureFixture[str]):
    output.show(f"name: {NEW_LINE}", output.table("", ["name"], [[NEW_LINE]]))
    output.print_note(NEW_LINE)
    output.print_line(NEW_LINE)
    out, err = capsys.readouterr()
    assert not [line for line in (out + err).splitlines() if line.startswith("error:")]


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_errors_escape_the_names_in_them(
    words: Sequence[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / f"{EVIL.replace(chr(0), '')}.toml"
    key = json.dumps(EVIL.replace("\0", ""))
    for text in (f"{key} = 1\n{key} = 2\n", f"[pool.{key}]\nnodes = {key}\n"):
        path.write_text(text)
        assert main(["fleet", "check", str(path), *words]) != 0
        assert main(["fleet", "show", str(path), *words]) != 0
    assert main(["policy", "check", f"/nowhere/{EVIL}", *words]) != 0
    assert main([f"{EVIL}", *words]) != 0
    out, err = capsys.readouterr()
    assert harmful(out + err) == []
    assert "\\u001b" in out + err


def test_json_on_standard_output_escapes_them(capsys: pytest.CaptureFixture[str]):
    output.print_json({"name": EVIL})
    output.print_json_line(msgspec.json.encode({"name": EVIL}))
    out, _ = capsys.readouterr()
    assert harmful(out) == []
    assert json.loads(out[: out.index("}") + 1]) == {"name": EVIL}


def test_a_log_is_escaped_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch):
    with a_terminal(monkeypatch) as terminal:
        output.print_log([EVIL, "\tb\n"])
        assert harmful(terminal.getvalue()) == []
        assert terminal.getvalue().endswith("\tb\n")
        output.print_log([EVIL], raw=True)
        assert EVIL in terminal.getvalue()
        piped = io.StringIO()
        monkeypatch.setattr(sys, "stdout", piped)
        output.print_log([EVIL, "\n"])
        assert piped.getvalue() == f"{EVIL}\n"


def test_sentences_of_reasons_are_one_safe_line():
    reasons = [
        Reason("start-failed", {"said": Text(EVIL + NEW_LINE)}),
        Reason(EVIL),
        Reason("x", sentence=EVIL + NEW_LINE),
    ]
    for reason in reasons:
        assert harmful(render(reason), but="") == []


def test_log_lines_of_the_control_plane_are_escaped():
    try:
        raise ValueError(EVIL)
    except ValueError:
        info = sys.exc_info()
    record = logging.LogRecord("tenfold", 20, "x", 1, "job %s", (EVIL,), info)
    record.fields = {"job": EVIL}
    line = JsonLines().format(record)
    assert harmful(line, but="") == []
    assert json.loads(line)["job"] == EVIL


def test_reports_are_escaped():
    parts = [clean(EVIL), prose_html(EVIL), list_html([EVIL]), table_html([EVIL], [[EVIL]])]
    for part in parts:
        assert harmful(part) == []
        assert "\\u202e" in part


def test_only_the_output_module_writes_to_a_stream():
    """A module that wrote by itself would get round all of this."""
    found: list[str] = []
    for path in CLI.rglob("*.py"):
        if path.name in WRITERS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Call(func=ast.Name(id="print")):
                    found.append(f"{path.name}:{node.lineno}")
                case ast.Call(func=ast.Attribute(attr="write", value=ast.Attribute(attr=name))):
                    if name in ("stdout", "stderr"):
                        found.append(f"{path.name}:{node.lineno}")
                case ast.ImportFrom(module="rich.console", names=names):
                    if (
                        any(one.name == "Console" for one in names)
                        and path.name != "help_format.py"
                    ):
                        found.append(f"{path.name}:{node.lineno}")
                case _:
                    pass
    assert found == []
