"""A real podman for tests: its own folder for images, and one small image made of busybox.

Nothing is fetched. What a machine forbids that runs tests in a container itself is worked round
here and not in the product: limits that cannot be raised, and control groups of both versions.
"""

import json
import os
import resource
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.patience import HANG_S

IMAGE = "localhost/tenfold-test:1"
WORDS = "sh sleep echo cat id ls pwd true false dd touch stat grep"
UNIFIED = Path("/sys/fs/cgroup/unified/cgroup.controllers")
CRUN = """#!/bin/sh
# crun refuses version 2 beside version 1: hide it from crun alone.
exec unshare --mount --propagation private sh -c \\
    'umount /sys/fs/cgroup/unified; exec {crun} "$@"' crun "$@"
"""
_SYS_RESOURCE = 1 << 24


def require_podman() -> None:
    """Skip the test where podman is missing; fail instead where engines are required."""
    missing = [name for name in ("podman", "crun", "busybox") if shutil.which(name) is None]
    if missing:
        _missing(f"no {' and no '.join(missing)} here: apt-get install podman crun busybox-static")


class Podman:
    """One folder of images and containers, and the variables that name it."""

    def __init__(self, folder: Path) -> None:
        self.environment = {
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
            "CONTAINERS_CONF": str(folder / "containers.conf"),
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run podman to its end."""
        return subprocess.run(
            ["podman", *words],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_S,
        )

    def containers(self) -> list[dict[str, object]]:
        """Return every container that podman knows of, running or not."""
        done = self.run("ps", "--all", "--external", "--format=json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout or "[]")


@contextmanager
def podman_with_image(folder: Path) -> Iterator[Podman]:
    """Give a podman that has one image, whose entry point fails whoever does not replace it."""
    require_podman()
    folder.mkdir(mode=0o700)
    (folder / "storage.conf").write_text(
        f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/root"\nrunroot = "{folder}/run"\n'
    )
    (folder / "containers.conf").write_text(_settings(folder))
    podman = Podman(folder)
    change = 'ENTRYPOINT ["/bin/false"]'
    done = podman.run("import", f"--change={change}", str(_archive(folder)), IMAGE)
    assert done.returncode == 0, done.stderr
    words = ("--rm", "--network=host", "--cgroups=disabled", "--entrypoint=", IMAGE, "true")
    done = podman.run("run", *words)
    if done.returncode != 0:
        _missing(f"podman cannot run a container here: {done.stderr.strip()}")
    try:
        yield podman
    finally:
        podman.run("rm", "--force", "--all", "--time=0")


def _missing(reason: str) -> None:
    if os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1":
        pytest.fail(f"TENFOLD_REQUIRE_ENGINES=1, but {reason}")
    pytest.skip(reason)


def _settings(folder: Path) -> str:
    lines = ["[containers]"]
    if os.getuid() == 0 and not _may_raise_limits():
        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        lines.append(f'default_ulimits = ["nofile={files}:{files}", "nproc=32768:32768"]')
    lines += ["[engine]", f'tmp_dir = "{folder}/tmp"', 'lock_type = "file"']
    lines += ['events_logger = "none"', 'cgroup_manager = "cgroupfs"', 'runtime = "crun"']
    if os.getuid() == 0 and UNIFIED.exists() and UNIFIED.read_text().split():
        wrapper = folder / "crun"
        wrapper.write_text(CRUN.format(crun=shutil.which("crun")))
        wrapper.chmod(0o755)
        lines += ["[engine.runtimes]", f'crun = ["{wrapper}"]']
    return "\n".join(lines) + "\n"


def _may_raise_limits() -> bool:
    status = Path("/proc/self/status").read_text()
    [held] = [line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")]
    return bool(int(held, 16) & _SYS_RESOURCE)


def _archive(folder: Path) -> Path:
    """Return an archive of a root that holds busybox under every name that tests use."""
    path = folder / "image.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("bin", "dev", "etc", "proc", "sys", "tmp"):
            made = tarfile.TarInfo(name)
            made.type, made.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(made)
        found = shutil.which("busybox")
        assert found is not None, "it was asked for"
        archive.add(os.path.realpath(found), "bin/busybox")
        for word in WORDS.split():
            link = tarfile.TarInfo(f"bin/{word}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    return path
