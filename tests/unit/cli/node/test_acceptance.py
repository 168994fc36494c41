"""Tests of nodes as people read them."""

import pytest
from msgspec.structs import replace

from tenfold.cli.node.acceptance import show_refused, show_test
from tenfold.model.api.nodes import Node, NodeFigure, NodeTest

SLOW = NodeFigure(
    name="core-float",
    value=40.0,
    unit="GFLOP/s",
    median=100.0,
    deviation=-0.6,
    allowed=0.2,
    judged="slow",
)
MISSING = NodeFigure(name="disk-write", value=None, unit="MB/s", median=500.0, judged="missing")
TEST = NodeTest(
    tested_at="2026-01-01T00:00:00.000Z",
    outcome="refused",
    accepted_by="",
    basis="pool",
    nodes=3,
    code="acceptance-refused",
    sentence="held against 3 of its pool: core-float is 40 GFLOP/s",
    figures=(SLOW, MISSING),
    unmeasured=(),
    notes=("far faster than 3 of its pool: memory-copy",),
)
NODE = Node(
    id="n2",
    site="s",
    pool="p",
    accelerator="",
    gpus=0,
    state="cordoned",
    cause=TEST.code,
    changed_at=None,
    sentence=TEST.sentence,
    test=TEST,
)
UP = replace(NODE, id="n1", state="up", cause="", sentence="", test=None)


def test_every_figure_stands_beside_that_of_its_pool(capsys: pytest.CaptureFixture[str]):
    show_test(NODE)
    said = capsys.readouterr().out
    assert "`n2`: rejected; held against 3 of its pool" in said
    assert "core-float        40     100       -60%     -20%  GFLOP/s  slow" in said
    assert "disk-write               500                      MB/s     missing" in said
    assert "note: far faster than 3 of its pool: memory-copy" in said


def test_a_node_that_somebody_took_says_who(capsys: pytest.CaptureFixture[str]):
    taken = replace(TEST, outcome="overridden", accepted_by="olga", sentence="slow")
    show_test(replace(UP, test=taken))
    assert "`n1`: overridden by olga; slow" in capsys.readouterr().out


def test_a_node_that_was_never_tested_says_so(capsys: pytest.CaptureFixture[str]):
    show_test(UP)
    assert capsys.readouterr().out == "`n1` was never tested\n"


def test_only_nodes_that_take_no_work_say_why(capsys: pytest.CaptureFixture[str]):
    show_refused([NODE, UP, replace(UP, id="n3", state="down", cause="gone")])
    assert capsys.readouterr().out == f"`n2` is cordoned: {TEST.sentence}\n"
