"""Discovery of the machine the tests run on, with and without GPUs."""

import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from tenfold.cli.fleet.importing import ImportSummary, Target, discover
from tenfold.compose.fleet import load_fleet
from tenfold.live import software
from tenfold.live.gpus import read_gpus
from tenfold.live.this_machine import discover_this_machine


class FakeNvmlError(Exception):
    pass


def fake_nvml(*names: str | bytes, broken: int | None = None) -> SimpleNamespace:
    def handle(index: int) -> int:
        if index == broken:
            raise FakeNvmlError("GPU is lost")
        return index

    return SimpleNamespace(
        NVMLError=FakeNvmlError,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: len(names),
        nvmlDeviceGetHandleByIndex=handle,
        nvmlDeviceGetName=lambda index: names[index],
        nvmlSystemGetDriverVersion=lambda: "550.54.15",
        nvmlSystemGetCudaDriverVersion=lambda: 12040,
    )


def test_this_machine_is_an_inventory_of_one_node():
    inventory = discover_this_machine()
    [node] = inventory.nodes
    assert node.cpus == psutil.cpu_count()
    assert node.memory_gib == psutil.virtual_memory().total / 1024**3
    assert node.software.kernel
    assert node.software.os


def test_gpus_of_this_machine_become_a_pool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    nvml = fake_nvml(*["NVIDIA H100 80GB HBM3"] * 7, b"NVIDIA H100 80GB HBM3", "NVIDIA L4")
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    out = tmp_path / "fleet.toml"
    imported = discover(Target(name="mine", out=out))
    assert isinstance(imported.summary, ImportSummary)
    assert imported.summary.software[0].software.driver == "550.54.15"
    assert imported.summary.software[0].software.cuda == "12.4"
    assert any("GPUs other than the 8" in note for note in imported.notes)
    [pool] = load_fleet(out).pools
    assert (pool.accelerator, pool.gpus, pool.nodes) == ("H100-80G-SXM", 8, 1)


def test_a_gpu_that_is_lost_is_noted_and_the_others_stay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", fake_nvml("A", "A", broken=1))
    gpus = read_gpus()
    assert gpus.names == ("A",)
    assert gpus.notes == ("GPU 1 does not respond and was skipped: GPU is lost",)


def test_without_the_binding_a_note_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert read_gpus().names == ()
    assert "tenfold[gpu]" in read_gpus().notes[0]


def test_a_driver_that_does_not_start_is_a_note(monkeypatch: pytest.MonkeyPatch):
    def fail() -> None:
        raise FakeNvmlError("Driver Not Loaded")

    broken = fake_nvml()
    broken.nvmlInit = fail
    monkeypatch.setitem(sys.modules, "pynvml", broken)
    assert read_gpus().notes == ("no NVIDIA GPU found: Driver Not Loaded",)


def test_versions_come_from_what_a_command_prints(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    for name, body in {
        "docker": "echo 'Docker version 28.2.2, build e6534b4'",
        "podman": "exit 3",
        "slurmd": "echo slurm-wlm 22.05.8",
        "kubelet": "echo Kubernetes v1.29.3",
    }.items():
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(software.shutil, "which", lambda name: _in(tmp_path, name))
    assert software.container_runtimes() == ("docker 28.2.2", "podman")
    assert software.orchestrators() == ("slurm 22.05.8", "kubelet 1.29.3")


def _in(folder: Path, name: str) -> str | None:
    return str(folder / name) if (folder / name).exists() else None


def test_a_command_that_hangs_costs_seconds_and_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    program = tmp_path / "docker"
    program.write_text("#!/bin/sh\nexec sleep 60\n")
    program.chmod(0o755)
    monkeypatch.setattr(software, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(software.shutil, "which", lambda name: _in(tmp_path, name))
    assert software.container_runtimes() == ("docker",)


def test_nccl_is_told_by_the_name_of_its_library(tmp_path: Path):
    (tmp_path / "libnccl.so.2.21.5").touch()
    (tmp_path / "libnccl.so.2").symlink_to("libnccl.so.2.21.5")
    assert software.nccl_in([tmp_path / "none", tmp_path]) == "2.21.5"
    assert software.nccl_in([tmp_path / "none"]) == ""
