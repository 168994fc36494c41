"""GPUs are read through NVML, or through the driver's command where its binding is missing."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold.live.gpu_use import NvmlReader, SmiReader, gpu_reader, smi_gpus

GIB = 2**30


class FakeNvml:
    """A driver with two GPUs, as its library shows it."""

    NVML_GPU_UTILIZATION_SAMPLES = 1
    nvmlMemory_v2 = 2

    class NVMLError(Exception):
        """What the library raises."""

    def __init__(self) -> None:
        self.samples: dict[int, list[tuple[int, int]]] = {0: [(10, 100), (20, 0)], 1: []}
        self.rates = {0: 0, 1: 37}
        self.broken: list[int] = []
        self.opened = 0

    def nvmlInit(self) -> None:
        self.opened += 1

    def nvmlDeviceGetCount(self) -> int:
        return 2

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        if index in self.broken:
            raise self.NVMLError("GPU is lost")
        return index

    def nvmlDeviceGetSamples(self, handle: int, kind: int, since: int) -> Any:
        if handle == 1:
            raise self.NVMLError("Not Supported")
        found = [
            SimpleNamespace(timeStamp=at, sampleValue=SimpleNamespace(uiVal=value))
            for at, value in self.samples[handle]
        ]
        return 1, found

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> Any:
        return SimpleNamespace(gpu=self.rates[handle])

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: int = 1) -> Any:
        # The older record counts what the driver keeps for itself.
        return SimpleNamespace(used=(3 if version == 2 else 4) * GIB, total=80 * GIB)


def test_use_is_the_mean_of_the_samples_since_the_last_look():
    nvml = FakeNvml()
    reader = NvmlReader(nvml)
    first = reader.read()
    assert [one.use_milli for one in first] == [500, 370]
    nvml.samples[0] = [(20, 0), (30, 80), (40, 90)]
    assert reader.read()[0].use_milli == 850
    assert nvml.opened == 1


def test_without_a_new_sample_the_last_moment_counts():
    nvml = FakeNvml()
    reader = NvmlReader(nvml)
    reader.read()
    nvml.rates[0] = 12
    assert reader.read()[0].use_milli == 120


def test_memory_is_what_the_command_shows():
    (first, _) = NvmlReader(FakeNvml()).read()
    assert (first.memory_used_bytes, first.memory_bytes) == (3 * GIB, 80 * GIB)


def test_a_gpu_that_does_not_answer_is_left_out():
    nvml = FakeNvml()
    nvml.broken = [0]
    assert [one.number for one in NvmlReader(nvml).read()] == [1]


def test_a_driver_that_went_is_opened_again():
    nvml = FakeNvml()
    reader = NvmlReader(nvml)
    reader.read()
    count = nvml.nvmlDeviceGetCount

    def gone() -> int:
        raise nvml.NVMLError("Driver Not Loaded")

    nvml.nvmlDeviceGetCount = gone
    assert reader.read() == []
    nvml.nvmlDeviceGetCount = count
    assert len(reader.read()) == 2
    assert nvml.opened == 2


def test_the_commands_answer_is_read_line_by_line():
    text = "0, 87, 1024, 81559\n1, [N/A], 0, 81559\nboom\n2, 0, 0, 81559\n"
    found = smi_gpus(text)
    assert [(one.number, one.use_milli) for one in found] == [(0, 870), (2, 0)]
    assert found[0].memory_used_bytes == 1024 * 2**20


def test_the_command_is_asked_where_the_binding_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    command = tmp_path / "nvidia-smi"
    command.write_text('#!/bin/sh\necho "$@" > "$0.words"\necho "0, 42, 10, 100"\n')
    command.chmod(0o755)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    reader = gpu_reader()
    assert reader is not None
    assert [one.use_milli for one in reader()] == [420]
    words = (tmp_path / "nvidia-smi.words").read_text()
    assert words.startswith("--query-gpu=index,utilization.gpu,memory.used,memory.total")


def test_where_neither_is_there_nothing_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpu_reader() is None


def test_a_command_that_fails_reads_nothing(tmp_path: Path):
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\necho 0, 1, 2, 3\nexit 9\n")
    command.chmod(0o755)
    assert SmiReader(str(command)).read() == []
    assert SmiReader(str(tmp_path / "none")).read() == []
