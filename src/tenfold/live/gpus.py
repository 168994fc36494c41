"""Discover the GPUs of this machine with NVML.

The library comes with the driver, and its binding with the extra `gpu`; either may be missing, and
a broken driver fails in many ways, so every failure becomes a note.
"""

from typing import Protocol, cast

from msgspec import Struct


class GpuFacts(Struct, frozen=True, kw_only=True):
    """Names of the GPUs in order, and the driver version."""

    names: tuple[str, ...] = ()
    driver: str = ""
    cuda: str = ""
    notes: tuple[str, ...] = ()


class _Nvml(Protocol):
    """The part of `pynvml` in use, which has no type annotations."""

    NVMLError: type[Exception]

    def nvmlInit(self) -> None: ...
    def nvmlShutdown(self) -> None: ...
    def nvmlDeviceGetCount(self) -> int: ...
    def nvmlDeviceGetHandleByIndex(self, index: int) -> object: ...
    def nvmlDeviceGetName(self, handle: object) -> str | bytes: ...
    def nvmlSystemGetDriverVersion(self) -> str | bytes: ...
    def nvmlSystemGetCudaDriverVersion(self) -> int: ...


def read_gpus() -> GpuFacts:
    """Return the GPUs that NVML finds; none, with a note, if it is unavailable."""
    try:
        import pynvml  # noqa: PLC0415 - optional, and slow to load
    except ImportError:
        note = "GPUs not detected: run `pip install 'tenfold[gpu]'` to detect them"
        return GpuFacts(notes=(note,))
    nvml = cast(_Nvml, pynvml)
    try:
        nvml.nvmlInit()
    except (nvml.NVMLError, OSError) as error:
        return GpuFacts(notes=(f"no NVIDIA GPU found: {error}",))
    try:
        return _facts(nvml)
    except (nvml.NVMLError, OSError) as error:
        return GpuFacts(notes=(f"the NVIDIA driver reported an error: {error}",))
    finally:
        nvml.nvmlShutdown()


def _facts(nvml: _Nvml) -> GpuFacts:
    names: list[str] = []
    notes: list[str] = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            names.append(_text(nvml.nvmlDeviceGetName(nvml.nvmlDeviceGetHandleByIndex(index))))
        except nvml.NVMLError as error:
            # A GPU that fell off the bus is counted but cannot be opened.
            notes.append(f"GPU {index} does not respond and was skipped: {error}")
    cuda = nvml.nvmlSystemGetCudaDriverVersion()
    return GpuFacts(
        names=tuple(names),
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
        notes=tuple(notes),
    )


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
