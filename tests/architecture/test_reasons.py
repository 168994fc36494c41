"""Reasons are data: every constructor keeps to the registry, and prose is left to the edge."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.reason import (
    Amount,
    Causes,
    JobRef,
    NodeRef,
    Reason,
    TeamRef,
    Text,
    UserRef,
    Value,
)
from tenfold.report.reasons.registry import PARTS, REASONS
from tenfold.report.reasons.render import OPERATOR, Reader, redacted, render
from tenfold.report.reasons.template import IDENTIFYING, OPEN, WORDS

SRC = Path(__file__).parents[2] / "src" / "tenfold"
EDGES = ("server", "cli")
"""Who may say a sentence at once: it goes back to the one who asked, and nowhere else."""
SECRET = "blue-secret"
RED = Reader(team="red")
BLUE = TeamId(f"team-{SECRET}")
JOB, NODE = JobRef(JobId(f"job-of-{SECRET}"), BLUE), NodeRef(NodeId("n0"))
FAILED = Reason("attempt-failed", {"job": JOB, "attempt": 1, "how": "lost"})
PLANTED: dict[str, Value] = {
    "job": JOB,
    "jobs": (JOB,),
    "team": TeamRef(BLUE),
    "user": UserRef(f"user-of-{SECRET}", BLUE),
    "text": Text(f"words of {SECRET}"),
    "causes": Causes((FAILED, Reason("gave-way", sentence=f"for {SECRET}"))),
    "steps": Causes((FAILED, Reason("gave-way", sentence=f"for {SECRET}"))),
    "node": NODE,
    "nodes": (NODE,),
    "amount": Amount(1_000, "any"),
    "number": Amount(1_000, "any"),
    "names": ("a", "b"),
    "listed": ("a", "b"),
    "all": ("a", "b"),
    "words": ("a", "b"),
    "word": "word",
    "name": "word",
    "level": "rack",
}
"""By kind, a value with another team's name wherever it can hold one; all others are numbers."""


@cache
def constructors() -> list[tuple[str, ast.Call]]:
    """Return every call that makes a reason, with the file that it is in."""
    return [
        (str(path.relative_to(SRC)), node)
        for path in sorted(SRC.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Reason"
    ]


def test_a_code_is_declared_once():
    assert sum(len(part) for part in PARTS) == len(REASONS)


def test_every_code_that_is_made_is_in_the_registry():
    missing = [
        (file, call.lineno, code.value)
        for file, call in constructors()
        if call.args and isinstance(code := call.args[0], ast.Constant)
        if code.value and code.value not in REASONS and file.split("/")[0] not in EDGES
    ]
    assert missing == []


def test_fields_that_are_written_out_are_those_of_the_registry():
    wrong: list[tuple[str, int, str]] = []
    for file, call in constructors():
        if len(call.args) < 2 or not isinstance(call.args[0], ast.Constant):
            continue
        if isinstance(fields := call.args[1], ast.Dict):
            known = REASONS[str(call.args[0].value)].kinds
            names = [key.value for key in fields.keys if isinstance(key, ast.Constant)]
            wrong += [(file, call.lineno, str(name)) for name in names if name not in known]
    assert wrong == []


def test_sentences_are_said_at_the_edge_alone():
    prose = [
        (file, call.lineno)
        for file, call in constructors()
        if any(word.arg == "sentence" for word in call.keywords) and file.split("/")[0] not in EDGES
    ]
    assert prose == []


def test_a_field_is_of_a_known_kind():
    kinds = {kind for one in REASONS.values() for kind in one.kinds.values()}
    numbers = {kind for kind in kinds if kind in ("ms", "s", "GiB") or kind[0] in "#,.+:g"}
    assert kinds - numbers <= {*IDENTIFYING, *OPEN, *WORDS}


def planted(kind: str) -> Value:
    """Return a value of a kind."""
    return PLANTED.get(kind, 2)


@pytest.mark.parametrize("code", REASONS)
def test_no_name_of_another_team_comes_out(code: str):
    reason = Reason(code, {name: planted(kind) for name, kind in REASONS[code].kinds.items()})
    for about in (None, "blue", f"team-{SECRET}"):
        assert SECRET not in render(reason, RED, about)
        assert SECRET not in str(redacted(reason, RED, about))
    if any(kind in IDENTIFYING for kind in REASONS[code].kinds.values()):
        assert SECRET in str(redacted(reason, OPERATOR))
    for name, value in reason.fields.items():
        alone = Reason(code, {name: value})
        assert SECRET not in render(alone, RED), name
        assert SECRET not in str(redacted(alone, RED)), name


@pytest.mark.parametrize("code", REASONS)
def test_every_reason_reads_as_a_sentence_with_fields_and_without(code: str):
    reason = Reason(code, {name: planted(kind) for name, kind in REASONS[code].kinds.items()})
    for said in (render(reason), render(Reason(code)), render(reason, RED)):
        assert said
        assert not any(mark in said for mark in "{}[]|")
        assert "  " not in said


def test_prose_from_before_is_shown_to_who_sees_all_and_to_nobody_else():
    old = Reason("gave-way", sentence=f"job `{SECRET}` goes first")
    assert render(old) == f"job `{SECRET}` goes first"
    assert render(old, RED) == "preempted for another job"
    assert SECRET not in str(redacted(old, RED, "red"))


def test_a_code_that_nobody_knows_reads_as_its_words():
    assert render(Reason("made-up-code", {"job": planted("job")}), RED) == "made up code"
