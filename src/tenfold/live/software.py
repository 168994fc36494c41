"""Detect software versions on this machine without importing or starting the software.

Commands are run as argument lists, never through a shell, with a timeout of a few seconds; missing
software gives an empty string.
"""

import platform
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

TIMEOUT_S = 5.0
RUNTIMES = {
    "docker": ("docker", "--version"),
    "podman": ("podman", "--version"),
    "apptainer": ("apptainer", "--version"),
    "containerd": ("containerd", "--version"),
    "nvidia-container-runtime": ("nvidia-container-runtime", "--version"),
}
ORCHESTRATORS = {"slurm": ("slurmd", "-V"), "kubelet": ("kubelet", "--version")}
FRAMEWORKS = ("torch", "tensorflow", "jax", "vllm")
NCCL_PACKAGES = ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11")
NCCL_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
    "/usr/local/lib",
    "/usr/local/cuda/lib64",
    "/usr/local/nccl/lib",
)
_VERSION = re.compile(r"\d+\.\d+[0-9A-Za-z.+~-]*")


def os_name() -> str:
    """Return the name and version of the distribution."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.system()
    return release.get("PRETTY_NAME") or release.get("NAME", "")


def driver_version() -> str:
    """Return the version of a loaded NVIDIA driver, for machines without NVML."""
    return _first_line(Path("/sys/module/nvidia/version"))


def cuda_toolkit_version() -> str:
    """Return the version of an installed CUDA toolkit."""
    for path in (Path("/usr/local/cuda/version.json"), Path("/usr/local/cuda/version.txt")):
        match = _VERSION.search(_text(path))
        if match is not None:
            return match[0]
    return ""


def nccl_version() -> str:
    """Return the version of NCCL: that of the Python package, else of the library file."""
    for package in NCCL_PACKAGES:
        version = _package_version(package)
        if version:
            return version
    return nccl_in(Path(folder) for folder in NCCL_FOLDERS)


def nccl_in(folders: Iterable[Path]) -> str:
    """Return the version in the file name behind `libnccl.so.2`."""
    for folder in folders:
        library = folder / "libnccl.so.2"
        if library.exists():
            match = re.search(r"libnccl\.so\.(\d+\.\d+[\d.]*)\Z", library.resolve().name)
            return match[1] if match else "2"
    return ""


def rocm_version() -> str:
    """Return the version of an installed ROCm."""
    return _first_line(Path("/opt/rocm/.info/version"))


def container_runtimes() -> tuple[str, ...]:
    """Return the container runtimes found, each with its version."""
    return _versions(RUNTIMES)


def orchestrators() -> tuple[str, ...]:
    """Return the node agents of orchestrators found, each with its version."""
    return _versions(ORCHESTRATORS)


def frameworks() -> tuple[str, ...]:
    """Return the frameworks in Tenfold's environment, each with its version."""
    found = ((name, _package_version(name)) for name in FRAMEWORKS)
    return tuple(f"{name} {version}" for name, version in found if version)


def _versions(commands: dict[str, tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(
        f"{name} {version}".strip()
        for name, command in commands.items()
        if (version := _version_of(command)) is not None
    )


def _version_of(command: Sequence[str]) -> str | None:
    """Return the version that a command prints; None if there is no such command."""
    program = shutil.which(command[0])
    if program is None:
        return None
    try:
        answer = subprocess.run(
            [program, *command[1:]],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    match = _VERSION.search(answer.stdout)
    return match[0] if match else ""


def _package_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def _first_line(path: Path) -> str:
    return _text(path).partition("\n")[0].strip()


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")[:10_000]
    except OSError:
        return ""
