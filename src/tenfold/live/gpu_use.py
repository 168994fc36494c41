"""GPU utilization of this machine, from NVIDIA's driver.

The library keeps a few samples per second of the last seconds; the mean since the last read is
used, because an instantaneous value every 15 s would miss short bursts. Without the Python binding,
`nvidia-smi` is used. A device that does not respond is left out: what cannot be measured does not
count as idle.
"""

import os
import shutil
import subprocess
from collections.abc import Callable
from typing import Any, cast

from tenfold.model.job.usage import GpuUse

MIB = 1024 * 1024
COMMAND_S_MOST = 10.0
QUERY = "index,utilization.gpu,memory.used,memory.total"

Reader = Callable[[], list[GpuUse]]


def gpu_reader() -> Reader | None:
    """Return a reader for the GPUs of this machine; None if there is none."""
    try:
        import pynvml  # noqa: PLC0415 - optional, and slow to load

        return NvmlReader(pynvml).read
    except ImportError:
        found = shutil.which("nvidia-smi")
        return None if found is None else SmiReader(found).read


class NvmlReader:
    """Reads NVML. It stays open between reads, and is reopened after an error."""

    def __init__(self, nvml: object) -> None:
        # pynvml has no type annotations.
        self._nvml = cast(Any, nvml)
        self._is_open = False
        self._seen: dict[int, int] = {}
        """Timestamp of the last sample by device, in microseconds."""

    def read(self) -> list[GpuUse]:
        """Return every device that responds."""
        nvml = self._nvml
        try:
            if not self._is_open:
                nvml.nvmlInit()
                self._is_open = True
            found = [self._device(number) for number in range(nvml.nvmlDeviceGetCount())]
        except (nvml.NVMLError, OSError):
            self._is_open = False
            return []
        return [one for one in found if one is not None]

    def _device(self, number: int) -> GpuUse | None:
        nvml = self._nvml
        try:
            handle = nvml.nvmlDeviceGetHandleByIndex(number)
            memory = self._memory(handle)
            return GpuUse(
                number=number,
                use_milli=self._use_milli(number, handle),
                memory_used_bytes=int(memory.used),
                memory_bytes=int(memory.total),
            )
        except nvml.NVMLError:
            return None

    def _use_milli(self, number: int, handle: object) -> int:
        nvml = self._nvml
        try:
            kind, since = nvml.NVML_GPU_UTILIZATION_SAMPLES, self._seen.get(number, 0)
            _, samples = nvml.nvmlDeviceGetSamples(handle, kind, since)
            fresh = [one for one in samples if one.timeStamp > since]
            if fresh:
                self._seen[number] = max(one.timeStamp for one in fresh)
                return round(10 * sum(one.sampleValue.uiVal for one in fresh) / len(fresh))
        except nvml.NVMLError:
            # Not every device keeps samples; use the current value instead.
            pass
        return 10 * int(nvml.nvmlDeviceGetUtilizationRates(handle).gpu)

    def _memory(self, handle: object) -> Any:
        """Return memory as `nvidia-smi` shows it, without what the driver reserves."""
        nvml = self._nvml
        try:
            return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
        except (nvml.NVMLError, AttributeError, TypeError):
            return nvml.nvmlDeviceGetMemoryInfo(handle)


class SmiReader:
    """Reads `nvidia-smi`, which only has the current value."""

    def __init__(self, path: str) -> None:
        self._words = [path, f"--query-gpu={QUERY}", "--format=csv,noheader,nounits"]

    def read(self) -> list[GpuUse]:
        """Return every device that responds."""
        try:
            done = subprocess.run(
                self._words,
                capture_output=True,
                text=True,
                check=False,
                timeout=COMMAND_S_MOST,
                stdin=subprocess.DEVNULL,
                env={"PATH": os.defpath, "LC_ALL": "C"},
            )
        except (OSError, subprocess.TimeoutExpired):
            return []
        return smi_gpus(done.stdout) if done.returncode == 0 else []


def smi_gpus(text: str) -> list[GpuUse]:
    """Return the devices in the output; lines with a missing value are skipped."""
    found: list[GpuUse] = []
    for line in text.splitlines():
        words = [word.strip() for word in line.split(",")]
        if len(words) == len(QUERY.split(",")) and all(word.isdecimal() for word in words):
            number, percent, used, total = (int(word) for word in words)
            found.append(
                GpuUse(
                    number=number,
                    use_milli=10 * percent,
                    memory_used_bytes=used * MIB,
                    memory_bytes=total * MIB,
                )
            )
    return found
