"""Request traces and service files: what is read, and which line is wrong."""

from pathlib import Path

import pytest

from tenfold.files.series.requests import read_requests
from tenfold.files.series.simulated_service import read_simulated_service
from tenfold.model.errors import InputError, InvalidFile

SERVICE = """slots = 4
prefill_tokens_per_s = 4000
decode_tokens_per_s = 30
replicas_max = 12
ttft_objective_s = 2
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_requests_are_sorted_and_the_first_is_at_zero(tmp_path: Path):
    text = "output_tokens,t_s,user,input_tokens\n7,12.5,a,70\n5,10.25,b,50\n"
    trace = read_requests(written(tmp_path, "r.csv", text))
    assert list(trace.arrived_ms) == [0, 2_250]
    assert list(trace.input_tokens) == [50, 70]
    assert list(trace.output_tokens) == [5, 7]


def test_parquet_reads_the_same(tmp_path: Path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {"t_s": [0.0, 1.5], "input_tokens": [3, 4], "output_tokens": [5, 6]}
    parquet.write_table(arrow.table(columns), tmp_path / "r.parquet")
    trace = read_requests(tmp_path / "r.parquet")
    assert list(trace.arrived_ms) == [0, 1_500]


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("t_s,input_tokens\n1,2\n", 1, "output_tokens"),
        ("t_s,input_tokens,output_tokens\n1,2,3\nx,2,3\n", 3, "t_s"),
        ("t_s,input_tokens,output_tokens\n1,2,3\n1,-2,3\n", 3, "input_tokens"),
        ("t_s,input_tokens,output_tokens\n1,2,\n", 2, "output_tokens"),
        ("t_s,input_tokens,output_tokens\n1,2,3\n9e9,2,3\n", 3, "t_s"),
        ("t_s,input_tokens,output_tokens\n", 1, ""),
    ],
)
def test_a_bad_trace_names_line_and_field(tmp_path: Path, text: str, line: int, field: str):
    with pytest.raises(InputError) as raised:
        read_requests(written(tmp_path, "r.csv", text))
    assert (raised.value.line, raised.value.field) == (line, field)


def test_a_service_has_one_cold_start_or_a_file_of_them(tmp_path: Path):
    path = written(tmp_path, "s.toml", SERVICE + "cold_start_s = 1.5\n")
    service, cold_starts_ms = read_simulated_service(path)
    assert (service.slots, list(cold_starts_ms)) == (4, [1_500])
    written(tmp_path, "c.csv", "cold_start_s\n20\n30.5\n")
    path = written(tmp_path, "s.toml", SERVICE + 'cold_start_file = "c.csv"\n')
    assert list(read_simulated_service(path)[1]) == [20_000, 30_500]


@pytest.mark.parametrize(
    ("more", "message", "line"),
    [
        ("", "missing key `cold_start_s`", None),
        ('cold_start_s = 1\ncold_start_file = "c.csv"\n', "both `cold_start_s`", 7),
        ("cold_start_s = 1\nreplicas_min = 13\n", "`replicas_min` is 13, above", 7),
        ("cold_start_s = 1\nslotz = 3\n", "unknown key `slotz`", 7),
        ("cold_start_s = -1\n", "`cold_start_s` expects a number", 6),
    ],
)
def test_a_bad_service_names_line_and_key(
    tmp_path: Path, more: str, message: str, line: int | None
):
    with pytest.raises(InvalidFile) as raised:
        read_simulated_service(written(tmp_path, "s.toml", SERVICE + more))
    assert raised.value.findings[0].message.startswith(message)
    assert raised.value.findings[0].line == line
