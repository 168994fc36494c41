"""The file of a run: written whole, read with the line at fault, never half believed."""

import gzip
from pathlib import Path

import pytest

from replay_builders import job, recorded, request
from tenfold.engine.decision_log import Cycle
from tenfold.files.records.replay_bundle import read_bundle
from tenfold.model.errors import InputError
from tenfold.study.replay.bundle import simulate_recorded


@pytest.fixture(name="written")
def a_written_bundle(tmp_path: Path) -> Path:
    jobs = [job("a", 8, lasts_s=60), job("b", 32, at_s=5, seq=1)]
    recorded(request("fifo", jobs=jobs, faults=[]), tmp_path / "run.jsonl")
    return tmp_path / "run.jsonl"


def fault(path: Path) -> InputError:
    with pytest.raises(InputError) as caught:
        read_bundle(path)
    assert caught.value.file == str(path)
    return caught.value


def changed(path: Path, number: int, line: str) -> Path:
    lines = path.read_text().splitlines()
    lines[number - 1] = line
    path.write_text("\n".join(lines) + "\n")
    return path


def test_a_bundle_says_what_it_was_made_with(written: Path):
    header = read_bundle(written).header
    assert header.policy.name == "fifo"
    assert (header.nodes, header.gpus) == (4, 32)
    assert header.settings["checkpoint_every_ms"] == 3_600_000


def test_orders_stand_once_and_are_given_back_with_their_cycle(written: Path):
    assert written.read_text().count('"job_id":"a","slots"') == 1
    cycles = [line for line in read_bundle(written).lines if isinstance(line, Cycle)]
    starts = [action.job_id for cycle in cycles for action in cycle.actions]
    assert starts == ["a", "b"]


def test_half_a_bundle_is_never_taken_for_a_whole_one(written: Path):
    whole = written.read_bytes()
    for size in range(len(whole.splitlines(keepends=True)[0]), len(whole) - 1, 97):
        written.write_bytes(whole[:size])
        assert fault(written).code == "bundle-cut-short"


def test_half_a_compressed_bundle_is_cut_short(written: Path, tmp_path: Path):
    packed = gzip.compress(written.read_bytes())
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(packed)
    assert read_bundle(path).lines == read_bundle(written).lines
    path.write_bytes(packed[: len(packed) // 2])
    assert fault(path).code in ("bundle-cut-short", "not-a-bundle")
    path.write_bytes(packed[:-4])
    assert fault(path).code == "bundle-cut-short"


def test_a_bundle_damaged_on_its_way_is_refused(written: Path, tmp_path: Path):
    path = tmp_path / "run.jsonl.gz"
    path.write_bytes(written.read_bytes())
    assert fault(path).code == "bundle-damaged"


def test_a_line_that_is_no_fact_is_named(written: Path):
    found = fault(changed(written, 3, '{"type":"NodeExploded","at_ms":0}'))
    assert (found.code, found.line) == ("wrong-line", 3)
    assert "not a valid event or cycle" in found.message


def test_a_line_that_is_not_json_is_named(written: Path):
    assert fault(changed(written, 4, "{oops")).line == 4


def test_a_line_that_is_missing_is_noticed(written: Path):
    lines = written.read_text().splitlines()
    written.write_text("\n".join([*lines[:6], *lines[7:]]) + "\n")
    assert "its last line says" in fault(written).message


def test_nothing_may_stand_after_the_end(written: Path):
    lines = written.read_text().splitlines()
    written.write_text("\n".join([*lines, lines[1]]) + "\n")
    assert fault(written).line == len(lines) + 1


def test_another_version_is_refused_by_its_number(written: Path):
    found = fault(changed(written, 1, '{"format":"tenfold-replay","version":9}'))
    assert found.code == "unknown-bundle-version"
    assert "format 9" in found.message


@pytest.mark.parametrize("text", ["", "\n", "[]\n", '{"format":"other","version":1}\n', "job_id\n"])
def test_a_file_that_is_no_bundle_is_told_so(tmp_path: Path, text: str):
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    assert fault(path).code == "not-a-bundle"


def test_a_header_with_a_wrong_policy_is_told_so(written: Path):
    line = '{"format":"tenfold-replay","version":1,"policy":{"name":"best"}}'
    found = fault(changed(written, 1, line))
    assert (found.code, found.line) == ("wrong-line", 1)


def test_a_name_says_how_a_bundle_is_written(tmp_path: Path):
    assert fault(tmp_path / "run.json").code == "unknown-suffix"
    assert fault(tmp_path / "none.jsonl").code == "no-such-file"
    (tmp_path / "folder.jsonl").mkdir()
    assert fault(tmp_path / "folder.jsonl").code == "is-a-directory"


def test_a_bundle_is_written_over_only_by_force(written: Path):
    with pytest.raises(InputError) as caught:
        simulate_recorded(request("las"), bundle=written)
    assert caught.value.code == "file-exists"
    simulate_recorded(request("las"), bundle=written, force=True)
    assert read_bundle(written).header.policy.name == "las"
