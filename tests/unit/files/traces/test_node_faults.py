"""Recorded faults: read from two formats, played on any fleet, sized into spares."""

import json
from pathlib import Path

import pytest

from tenfold.cli.sim.failures import failures_command
from tenfold.compose.failures import failure_source
from tenfold.compose.fleet import load_facts
from tenfold.files.traces.node_faults import read_fault_trace
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.fault import FaultTrace
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId, PoolId, SiteId
from tenfold.model.units import DAY, Millis
from tenfold.sim.faults.replay import replay_faults
from tenfold.study.sim.nodes_down import SparesRequest
from tenfold.study.sim.spares import size_spares

ROOT = Path(__file__).parents[4]
TRACE = ROOT.parent / "shared" / "data" / "failures" / "infinitehbd_raw.json"
LONG = Millis(400 * DAY)


def fleet(*names: str) -> list[Node]:
    return [Node(id=NodeId(one), pool=PoolId("p"), site=SiteId("s"), gpus=8) for one in names]


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def event(node: object, day: object, kind: str, cause: str = "GPU") -> dict[str, object]:
    return {
        "node_id": node,
        "event_time": day,
        "event_type": kind,
        "fault_type": {"Level": "Hardware Failure", "Class": cause, "Desc": ""},
    }


def test_events_of_the_public_format_become_faults(tmp_path: Path):
    events = [
        event("a", 1.0, "fault_start", "Fabric Cable"),
        event("b", 1.5, "fault_start"),
        event("a", 2.0, "fault_end"),
        event("c", 3.0, "fault_start"),
        event("b", 4.0, "fault_end"),
    ]
    trace = read_fault_trace(written(tmp_path, "t.json", json.dumps(events)))
    rows = [(f.node, f.start_s / 86_400, f.end_s / 86_400, f.cause) for f in trace.faults]
    # A fault that never ends in the trace lasts as long as the trace.
    assert rows == [("a", 1, 2, "fabric-cable"), ("b", 1.5, 4, "gpu"), ("c", 3, 4, "gpu")]
    assert trace.nodes == ["a", "b", "c"]


def test_a_table_becomes_faults(tmp_path: Path):
    text = "node,start_s,end_s,cause\nb,20,30,fan\na,10,,\n\n"
    trace = read_fault_trace(written(tmp_path, "t.csv", text))
    assert [(f.node, f.start_s, f.end_s, f.cause) for f in trace.faults] == [
        ("a", 10, 30, ""),
        ("b", 20, 30, "fan"),
    ]


def test_the_last_fault_counts_though_its_end_is_empty(tmp_path: Path):
    text = "node,start_s,end_s\nn0,10,20\nn1,30,\n"
    trace = read_fault_trace(written(tmp_path, "t.csv", text))
    faults, _ = replay_faults(trace, fleet("n0", "n1"), Millis(100_000))
    assert [(one.node_id, one.at_ms, one.until_ms) for one in faults] == [
        ("n0", 10_000, 20_000),
        ("n1", 30_000, 100_000),
    ]


@pytest.mark.parametrize(
    ("name", "text", "code", "line"),
    [
        ("t.csv", "node,start_s\na,1\n", "csv-header", 1),
        ("t.csv", "node,start_s,end_s\n,1,2\n", "wrong-value", 2),
        ("t.csv", "node,start_s,end_s\na,1,2\na,x,2\n", "wrong-value", 3),
        ("t.csv", "node,start_s,end_s\na,nan,2\n", "wrong-value", 2),
        ("t.csv", "node,start_s,end_s\na,5,2\n", "end-before-start", 2),
        ("t.csv", "node,start_s,end_s\n", "no-faults", None),
        ("t.csv", 'node,start_s,end_s\n"a,1,2\n', "syntax", 2),
        ("t.json", "[", "not-json", None),
        ("t.json", "{}", "wrong-value", None),
        ("t.json", "[3]", "wrong-value", None),
        ("t.json", json.dumps([event("a", -1, "fault_start")]), "wrong-value", None),
        ("t.json", json.dumps([event("a", True, "fault_start")]), "wrong-value", None),
        ("t.json", json.dumps([event("a", 1, "fault_end")]), "end-without-start", None),
        ("t.txt", "", "unknown-suffix", None),
    ],
)
def test_a_bad_trace_says_where(tmp_path: Path, name: str, text: str, code: str, line: int | None):
    path = written(tmp_path, name, text)
    with pytest.raises(InputError) as caught:
        read_fault_trace(path)
    assert (caught.value.code, caught.value.line) == (code, line)
    assert caught.value.file == str(path)


def test_every_bad_row_is_named(tmp_path: Path):
    events = [event("a", "x", "fault_start"), event("", 1, "fault_start"), event("a", 1, "odd")]
    with pytest.raises(InvalidFile) as caught:
        read_fault_trace(written(tmp_path, "t.json", json.dumps(events)))
    assert all(f"event {n}" in found.message for n, found in enumerate(caught.value.findings, 1))
    assert len(caught.value.findings) == 3


def test_nodes_are_known_by_name_else_taken_in_order_and_over_again(tmp_path: Path):
    text = "node,start_s,end_s\na,10,20\nb,15,40\nc,30,50\n"
    trace = read_fault_trace(written(tmp_path, "t.csv", text))
    faults, notes = replay_faults(trace, fleet("x", "a"), LONG)
    assert [(f.node_id, f.at_ms, f.until_ms) for f in faults] == [("a", 10_000, 20_000)]
    assert "2 of 3 nodes" in notes[0]
    faults, notes = replay_faults(trace, fleet("x", "y"), LONG)
    assert [(f.node_id, f.at_ms) for f in faults] == [("x", 10_000), ("y", 15_000), ("x", 30_000)]
    assert len(notes) == 2
    # One node stands for all three, and stays down from the first to the last.
    faults, _ = replay_faults(trace, fleet("x"), LONG)
    assert [(f.at_ms, f.until_ms) for f in faults] == [(10_000, 50_000)]


def test_the_recorded_fleet_has_7_22_and_31_nodes_down():
    if not TRACE.is_file():
        pytest.skip("the InfiniteHBD trace is not beside this checkout")
    trace = failure_source(str(TRACE), load_facts())
    assert isinstance(trace, FaultTrace)
    assert (len(trace.faults), len(trace.nodes)) == (584, 231)
    nodes = fleet(*(f"n{place:03}" for place in range(400)))
    answer = size_spares("hbd", nodes, trace, SparesRequest(days=349))
    assert (answer.down.p50, answer.down.p90, answer.down.p99) == (7, 22, 31)
    assert (answer.poisson.p50, answer.poisson.p90, answer.poisson.p99) == (9, 13, 17)
    assert answer.spares.p99 > answer.spares_poisson.p99
    assert answer.seeds == 1


def test_the_command_sizes_spares_and_writes_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    page = tmp_path / "report.html"
    example = ROOT / "examples" / "research-256" / "fleet.toml"
    failures_command(fleet=example, failures="infinitehbd", seeds=5, html=page)
    shown = capsys.readouterr().out
    assert "nodes down at once" in shown
    assert "assumed in `infinitehbd`: burst_nodes_max" in shown
    assert "if failures were independent" in page.read_text()
    failures_command(fleet=example, failures="infinitehbd", seeds=5, as_json=True)
    first = capsys.readouterr().out
    failures_command(fleet=example, failures="infinitehbd", seeds=5, as_json=True)
    assert capsys.readouterr().out == first
    answer = json.loads(first)
    assert answer["spares"]["p99"] > answer["spares_poisson"]["p99"]
    assert answer["interruptions_low"] < answer["interruptions"] < answer["interruptions_high"]


def test_failures_are_rare_at_16_gpus_and_regular_at_many():
    nodes = fleet(*(f"n{place:04}" for place in range(256)))
    answer = size_spares("f", nodes, failure_source("rsc-1", load_facts()), SparesRequest(seeds=8))
    mttf = {one.gpus: one.mttf_h for one in answer.jobs}
    assert list(mttf) == [8, 16, 32, 64, 128, 256, 512, 1_024, 2_048]
    assert mttf[16] / 24 == pytest.approx(1 / (2 * 6.5e-3), rel=0.1)
    assert mttf[128] / 24 == pytest.approx(1 / (16 * 6.5e-3), rel=0.1)
    assert answer.interruptions == pytest.approx(256 * 365 * 6.5e-3, rel=0.05)


def test_fewer_gpus_to_keep_need_fewer_spares():
    nodes = fleet(*(f"n{place:03}" for place in range(100)))
    law = failure_source("infinitehbd", load_facts())
    whole = size_spares("f", nodes, law, SparesRequest(seeds=4))
    half = size_spares("f", nodes, law, SparesRequest(seeds=4, keep_gpus=400))
    assert half.down == whole.down
    assert half.spares.p99 < whole.spares.p99
