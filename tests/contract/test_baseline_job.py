"""A real job is timed, slowed, and noticed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from patience import HANG_S
from tenfold.cli.main import main

JOB = Path(__file__).parents[2] / "examples" / "baselines" / "job.py"
# The machine that tests may have neighbours: half as slow again is beyond what they do.
LIMIT = ("--slower-by", "0.5", "--skip-steps", "5")
TRIES = 4


def run_job(out: Path, times: int) -> Path:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    words = [sys.executable, str(JOB), "--out", str(out), "--compute-times", str(times)]
    # The machine may be busy with something else, which CPU time does not count.
    words += ["--clock", "cpu"]
    subprocess.run(words, env=environment, check=True, timeout=HANG_S)
    return out


@pytest.fixture
def tenfold(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def call(*words: object) -> tuple[int, dict[str, object]]:
        store = ("--store", tmp_path / "baselines.json", "--json")
        status = main([str(word) for word in ("baseline", *words, *store)])
        return status, json.loads(capsys.readouterr().out)

    return call


def test_a_job_that_is_slowed_rings_the_alarm_and_one_that_is_not_does_not(tenfold, tmp_path: Path):
    quiet = False
    for number in range(TRIES):
        good = run_job(tmp_path / f"good-{number}.jsonl", 1)
        assert tenfold("record", "small", "--in", good, "--skip-steps", 5)[0] == 0
        again = run_job(tmp_path / f"again-{number}.jsonl", 1)
        status, answer = tenfold("check", "small", "--in", again, *LIMIT)
        if status == 0:
            assert answer["alarm"] is False
            quiet = True
            break
    assert quiet, f"the machine never ran the same job twice alike in {TRIES} tries"
    slow = run_job(tmp_path / "slow.jsonl", 4)
    status, answer = tenfold("check", "small", "--in", slow, *LIMIT)
    assert status == 1
    assert answer["alarm"] is True
    assert answer["outcome"] == "slower"
    assert answer["slower_part"] == "compute"
