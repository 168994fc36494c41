"""One job file that every executor runs unchanged, through a real control plane."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from patience import HANG_S, until
from tenfold.client.endpoint import read_address
from unit.up_process import Up

JOB_FILE = """\
name = "same"
array = 2
nodes = 2
gpus_per_node = 2
time_limit = "1h"
grace = "5s"

command = ["sh", "-c", '''
echo "member $NODE_RANK of $PET_NNODES, index $TENFOLD_ARRAY_INDEX, $COLOUR"
echo "$TENFOLD_ATTEMPT" > "$TENFOLD_CHECKPOINT_DIR/seen-$NODE_RANK"
''']

[env]
COLOUR = "blue"

[checkpoint]
dir = "saves"
"""
OVER = ("succeeded", "failed", "cancelled")


def tenfold(up: Up, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command against a control plane."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("TENFOLD_")}
    return subprocess.run(
        [sys.executable, "-m", "tenfold", *words],
        env={**kept, "TENFOLD_HOME": str(up.home)},
        capture_output=True,
        text=True,
        check=False,
    )


def ask(up: Up, path: str) -> httpx.Response:
    """Ask a control plane over HTTP, which is far cheaper than a command."""
    at = read_address(up.home)
    assert at is not None
    headers = {"Authorization": f"Bearer {at.token}"}
    return httpx.get(f"{at.url}/api/v1/{path}", headers=headers, timeout=HANG_S)


def shown(up: Up, job: str) -> dict[str, Any]:
    """Return a job as `job show` has it."""
    answer = ask(up, f"jobs/{quote(job)}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def log_of(up: Up, job: str, member: int = 0) -> str:
    """Return the log of a member of the last attempt of a job."""
    return ask(up, f"jobs/{quote(job)}/logs?member={member}").text


def until_over(up: Up, job: str) -> dict[str, Any]:
    """Wait until a job is over, and return it."""
    until(lambda: shown(up, job)["state"] in OVER, pause_s=0.1)
    return shown(up, job)


def check_same_job(up: Up, folder: Path) -> None:
    """Submit the job file, and check what each member of each job of the array did."""
    file = folder / "same.toml"
    file.write_text(JOB_FILE)
    answer = tenfold(up, "job", "submit", str(file), "--wait")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "2 succeeded" in answer.stdout
    for index in range(2):
        job = f"same-1[{index}]"
        assert len(shown(up, job)["attempts"]) == 1
        for rank in range(2):
            assert log_of(up, job, rank) == f"member {rank} of 2, index {index}, blue\n"
