"""An environment with the wheel and its dependencies in it, and nothing else.

It is made with `pip install .` once, and kept in pytest's cache until what it is made of changes:
the dependencies by `pyproject.toml` and `requirements.lock`, the wheel by the sources.
"""

import fcntl
import hashlib
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterable
from pathlib import Path

from docs.console_blocks import ROOT

_PINNED = re.compile(r"^([\w.-]+==[^\s;\\]+(?: ; [^\\]+)?)", re.MULTILINE)
PACKED = ("pyproject.toml", "README.md", "LICENSE")


class NotInstalled(Exception):
    """The wheel or its dependencies could not be installed: most often, no index is reachable."""


def installed(cache: Path) -> Path:
    """Return the folder of programs of the environment, which this may have to make first."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        # Workers share one environment: the first makes it, and the others wait for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        needs = [ROOT / "pyproject.toml", ROOT / "requirements.lock"]
        home = cache / _digest([sys.version], needs)
        sources = sorted(path for path in (ROOT / "src").rglob("*") if _is_packed(path))
        wheel = _digest([], [*(ROOT / name for name in PACKED), *sources])
        stamp = home / "wheel.sha256"
        if not stamp.exists():
            _clear(cache)
            venv.create(home, with_pip=False, symlinks=True)
            _pip(home, "--constraint", str(_constraints(home)), str(ROOT))
        elif stamp.read_text() != wheel:
            stamp.unlink()
            _pip(home, "--no-deps", "--force-reinstall", str(ROOT))
        stamp.write_text(wheel)
    return home / "bin"


def _is_packed(path: Path) -> bool:
    return path.is_file() and path.suffix != ".pyc"


def _digest(words: list[str], files: Iterable[Path]) -> str:
    made = hashlib.sha256("\n".join(words).encode())
    for path in files:
        made.update(f"\n{path.relative_to(ROOT)}\n".encode())
        made.update(path.read_bytes())
    return made.hexdigest()[:16]


def _constraints(home: Path) -> Path:
    """Write the versions of the lock file without their hashes, which a folder cannot have."""
    path = home / "constraints.txt"
    path.write_text("\n".join(_PINNED.findall((ROOT / "requirements.lock").read_text())) + "\n")
    return path


def _clear(cache: Path) -> None:
    for path in cache.iterdir():
        if path.is_dir():
            shutil.rmtree(path)


def _pip(home: Path, *words: str) -> None:
    pip = (sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install")
    options = ("--quiet", "--disable-pip-version-check", "--no-compile")
    done = subprocess.run(
        [*pip, *options, *words],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotInstalled(done.stderr.strip()[-2_000:])
