"""The example really trains, is really killed, and ends with the weights of an unbroken run."""

import importlib.util
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from patience import HANG_S
from tenfold.checkpoint import load, verify

REQUIRED = os.environ.get("TENFOLD_REQUIRE_ENGINES") == "1"
MISSING = importlib.util.find_spec("torch") is None
SCRIPT = Path(__file__).parents[2] / "examples" / "train-and-survive" / "train.py"
STEPS = 60

pytestmark = [
    pytest.mark.engine,
    pytest.mark.skipif(MISSING and not REQUIRED, reason="torch is missing: pip install torch"),
]


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start runs, and leave none behind where a test fails."""
    started: list[subprocess.Popen[str]] = []

    def one(folder: Path, *, pause_s: float = 0.0) -> subprocess.Popen[str]:
        started.append(launch(folder, pause_s))
        return started[-1]

    yield one
    for child in started:
        if child.poll() is None:
            kill_all(child)


def launch(folder: Path, pause_s: float) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        # Loopback and one thread each: the test must not depend on the machine.
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    words = [*launcher, "--nproc-per-node", "2", str(SCRIPT), "--steps", str(STEPS)]
    words += ["--checkpoints", str(folder), "--every-s", "0.3", "--pause-s", str(pause_s)]
    return subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def read_until(child: subprocess.Popen[str], word: str, times: int) -> list[str]:
    """Return the lines up to the one that has the word for the last time asked."""
    assert child.stdout is not None
    lines: list[str] = []
    while sum(word in line for line in lines) < times:
        line = child.stdout.readline()
        assert line, f"the run ended without `{word}`: {lines}"
        lines.append(line)
    return lines


def kill_all(child: subprocess.Popen[str]) -> None:
    """Kill the workers, which the launcher puts into sessions of their own, and the launcher."""
    listing = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(child.pid)], capture_output=True, text=True, check=True
    )
    for worker in listing.stdout.split():
        os.kill(int(worker), signal.SIGKILL)
    child.kill()
    child.communicate()


def to_the_end(child: subprocess.Popen[str]) -> tuple[int, str]:
    """Return where the run began and the hash it ended with."""
    told, _ = child.communicate(timeout=HANG_S)
    assert child.returncode == 0, told
    begun, ended = re.search(r"step (\d+)", told), re.search(r"final weights (\w{64})", told)
    assert begun is not None
    assert ended is not None
    return int(begun[1]), ended[1]


def steps_saved(lines: list[str]) -> list[int]:
    return [int(line.split()[-1]) for line in lines if line.startswith("saved step")]


def test_a_run_that_is_killed_and_one_that_is_asked_to_stop_lose_nothing(tmp_path: Path, start):
    began, unbroken = to_the_end(start(tmp_path / "unbroken"))
    assert began == 0

    first = start(tmp_path / "broken", pause_s=0.03)
    saved = steps_saved(read_until(first, "saved step", 2))
    kill_all(first)
    left = load(tmp_path / "broken", ranks=2)
    assert left is not None
    assert saved[-1] <= left.step < STEPS

    second = start(tmp_path / "broken", pause_s=0.03)
    told = read_until(second, "saved step", 1)
    assert f"begins at step {left.step}\n" in told
    second.send_signal(signal.SIGTERM)
    rest, _ = second.communicate(timeout=HANG_S)
    stopped_at = steps_saved([*told, *rest.splitlines()])[-1]

    began, ended = to_the_end(start(tmp_path / "broken"))
    assert began == stopped_at
    assert ended == unbroken
    assert {one.state for one in verify(tmp_path / "broken")} == {"valid"}
