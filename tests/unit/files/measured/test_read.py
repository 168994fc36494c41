"""Files of timings that other tools write, and what is wrong with them."""

import gzip
import json
from pathlib import Path

import pytest

from tenfold.files.measured.read import read_measured
from tenfold.files.measured.reading import Reading
from tenfold.model.baseline import Kernels, Steps, Transfers
from tenfold.model.errors import InputError

NCCL = """\
# nThread 1 nGpus 2 minBytes 8 maxBytes 33554432 step: 2(factor) warmup iters: 5 iters: 20
# Collective test starting: all_reduce_perf
#
#  Rank  0 Group  0 Pid   1001 on     node1 device  0 [0x10] NVIDIA H100 80GB HBM3
#  Rank  1 Group  0 Pid   1001 on     node1 device  1 [0x16] NVIDIA H100 80GB HBM3
#
#  out-of-place  in-place
#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong
#  (B)  (elements)  (us)  (GB/s)  (GB/s)  (us)  (GB/s)  (GB/s)
  0  0  float  sum  -1  0.12  0.00  0.00  0  0.11  0.00  0.00  0
  1024  256  float  sum  -1  11.50  0.09  0.09  0  11.20  0.09  0.09  0
  33554432  8388608  float  sum  -1  160.1  209.58  209.58  0  159.9  209.85  209.85  N/A
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 100.1
"""
NSYS = """\
Processing [report.sqlite] with [cuda_gpu_kern_sum.py]...

Time (%),Total Time (ns),Instances,Avg (ns),Med (ns),Min (ns),Max (ns),StdDev (ns),Name
61.2,5000000,100,50000.0,49000.0,48000,60000,1500.5,"void gemm<float, 128>(int, int)"
38.8,3170000,10,317000.0,300000.0,290000,500000,60000.1,ncclDevKernel_AllReduce_Sum_f32_RING_LL

"""


def span(name: str, start: float, end: float, cat: str) -> dict[str, object]:
    return {"ph": "X", "name": name, "cat": cat, "ts": start, "dur": end - start, "args": {"a": 1}}


def trace() -> dict[str, object]:
    """Two steps of 100 us; in the first compute 10-60, NCCL 40-80, loading 0-20."""
    events = [
        {"ph": "M", "name": "process_name", "pid": 1},
        span("ProfilerStep#2", 100, 200, "user_annotation"),
        span("ProfilerStep#1", 0, 100, "user_annotation"),
        span("ProfilerStep#1", 5, 105, "gpu_user_annotation"),
        span("enumerate(DataLoader)#_SingleProcess.__next__", 0, 20, "user_annotation"),
        span("gemm", 10, 40, "kernel"),
        span("void softmax", 30, 60, "kernel"),
        span("ncclDevKernel_AllReduce", 40, 80, "kernel"),
        span("gemm", 150, 210, "kernel"),
        span("cudaLaunchKernel", 0, 90, "cuda_runtime"),
    ]
    return {"schemaVersion": 1, "traceEvents": events}


def read(folder: Path, name: str, text: str | bytes, skip: int = 0) -> Reading:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_measured(path, skip)


def fault(folder: Path, name: str, text: str | bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        read(folder, name, text)
    assert caught.value.hint
    assert caught.value.file.endswith(name)
    return caught.value


def test_steps_as_json_lines_with_parts_and_keys(tmp_path: Path):
    lines = [
        '{"step": 1, "step_s": 0.5, "compute_s": 0.3, "comm_s": 0.1, "gpus": 8, "loss": 2.1}',
        "",
        '{"step": 2, "step_s": 0.6, "compute_s": 0.4, "communication_s": 0.1, "gpus": 8.0}',
    ]
    found = read(tmp_path, "a.jsonl", "\n".join(lines))
    assert found.measured == Steps(
        count=2,
        step_s=(0.5, 0.6),
        parts_s={"compute": (0.3, 0.4), "communication": (0.1, 0.1)},
    )
    assert found.keys == {"gpus": "8"}
    assert found.notes == ("ignored columns: loss",)
    skipped = read(tmp_path, "b.jsonl", "\n".join(lines), skip=1).measured
    assert isinstance(skipped, Steps)
    assert (skipped.count, skipped.step_s) == (1, (0.6,))


def test_steps_as_a_table(tmp_path: Path):
    text = "step, step_s, data_s, stack\n1, 0.5, 0.01, PyTorch 2.7\n2, 0.6, 0.02,\n"
    found = read(tmp_path, "a.csv", text)
    assert found.measured == Steps(count=2, step_s=(0.5, 0.6), parts_s={"data": (0.01, 0.02)})
    assert found.keys == {"stack": "PyTorch 2.7"}


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ('{"step_s": 1}\n{"step_s": ', "not-json", 2),
        ('{"step_s": 1}\n[1]', "wrong-value", 2),
        ('{"step": 1}', "missing-key", 1),
        ('{"step_s": 0}', "wrong-value", 1),
        ('{"step_s": -1}', "wrong-value", 1),
        ('{"step_s": true}', "wrong-value", 1),
        ('{"step_s": "fast"}', "wrong-value", 1),
        ('{"step_s": 1, "comm_s": null}', "wrong-value", 1),
        ('{"step_s": 1, "comm_s": 1}\n\n{"step_s": 1}', "missing-key", 3),
        ('{"step_s": 1}\n{"step_s": 1, "data_s": 0.1}', "missing-key", 2),
        ('{"step_s": 1, "gpus": 8}\n{"step_s": 1, "gpus": 16}', "mixed-runs", 2),
    ],
)
def test_a_faulty_line_is_named(tmp_path: Path, text: str, code: str, line: int):
    error = fault(tmp_path, "a.jsonl", text)
    assert (error.code, error.line) == (code, line)


def test_faulty_tables_are_named(tmp_path: Path):
    assert fault(tmp_path, "a.csv", "step,seconds\n1,2\n").code == "missing-column"
    error = fault(tmp_path, "b.csv", "step_s\n0.5\nnan\n")
    assert (error.code, error.line) == ("wrong-value", 3)
    assert fault(tmp_path, "c.csv", 'step_s\n"0.5').code == "syntax"


@pytest.mark.parametrize("name", ["a.json", "a.pt.trace.json.gz"])
def test_a_pytorch_trace_gives_exposed_parts(tmp_path: Path, name: str):
    content = json.dumps(trace()).encode()
    steps = read(tmp_path, name, gzip.compress(content) if "gz" in name else content).measured
    assert isinstance(steps, Steps)
    assert steps.step_s == pytest.approx((100e-6, 100e-6))
    # NCCL counts only where nothing computes, loading only where nothing runs at all.
    assert steps.parts_s["compute"] == pytest.approx((50e-6, 50e-6))
    assert steps.parts_s["communication"] == pytest.approx((20e-6, 0.0))
    assert steps.parts_s["data"] == pytest.approx((10e-6, 0.0))


def test_traces_without_kernels_or_of_several_ranks(tmp_path: Path):
    events = [span("ProfilerStep#1", 0, 100, "user_annotation")] * 2
    found = read(tmp_path, "a.json", json.dumps(events))
    assert isinstance(found.measured, Steps)
    assert found.measured.parts_s == {}
    assert "several ranks" in found.notes[0]
    assert fault(tmp_path, "b.json", '{"traceEvents": []}').code == "no-steps"
    assert fault(tmp_path, "c.json", '{"a": 1}').code == "not-a-trace"
    assert fault(tmp_path, "d.json.gz", b"\x1f\x8bxx").code == "unreadable-file"


def test_nccl_tests_by_size_with_the_gpus_that_took_part(tmp_path: Path):
    found = read(tmp_path, "nccl.txt", NCCL)
    assert isinstance(found.measured, Transfers)
    assert found.measured.operation == "all_reduce"
    rows = [(one.size_bytes, one.in_place, one.time_us) for one in found.measured.transfers]
    assert rows == [
        (1024, False, 11.5),
        (1024, True, 11.2),
        (33554432, False, 160.1),
        (33554432, True, 159.9),
    ]
    assert found.measured.transfers[2].bus_gb_per_s == 209.58
    assert found.keys == {"gpus": "2", "accelerator": "NVIDIA H100 80GB HBM3"}


def test_network_tests_that_tell_nothing(tmp_path: Path):
    assert fault(tmp_path, "a.txt", "# busbw\n").code == "no-transfers"
    broken = "# busbw\n 8 2 float sum -1 x 0 0 0 1 0 0 0\n"
    assert (fault(tmp_path, "b.txt", broken).code, fault(tmp_path, "b.txt", broken).line) == (
        "not-a-number",
        2,
    )


def test_a_kernel_summary_of_nsight_systems(tmp_path: Path):
    measured = read(tmp_path, "kernels.csv", NSYS).measured
    assert isinstance(measured, Kernels)
    gemm, nccl = measured.kernels
    assert (gemm.name, gemm.calls, gemm.part) == ("void gemm<float, 128>(int, int)", 100, "compute")
    assert gemm.median_s == pytest.approx(49e-6)
    assert nccl.part == "communication"
    assert nccl.deviation_s == pytest.approx(60.0001e-6)


def test_faulty_kernel_summaries(tmp_path: Path):
    head = "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
    assert fault(tmp_path, "a.csv", head).code == "no-kernels"
    error = fault(tmp_path, "b.csv", head + "1,2,x,4,gemm\n")
    assert (error.code, error.line) == ("not-a-number", 2)
    assert fault(tmp_path, "c.csv", "Total Time (ns),Name\n1,2\n").code == "missing-column"


def test_a_file_of_something_else(tmp_path: Path):
    error = fault(tmp_path, "notes.txt", "hello\n")
    assert error.code == "unknown-measurement"
    assert "NCCL-tests" in error.hint
