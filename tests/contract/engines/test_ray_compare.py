"""A comparison on a Ray that really runs gives what processes of this machine give."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from engines.ray_cluster import ADDRESS, RunningRay, running_ray

pytestmark = pytest.mark.engine

FLEET = '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 2\ngpus_per_node = 8\n'
JOBS = "job_id,submit_s,duration_s,gpus\n" + "".join(
    f"j{n},{n * 60},{3_600 if n % 4 == 0 else 600},{16 if n % 4 == 0 else 2}\n" for n in range(30)
)


@pytest.fixture(scope="module")
def ray() -> Iterator[RunningRay]:
    with running_ray() as cluster:
        yield cluster


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "jobs.csv").write_text(JOBS)
    files = ["--fleet", str(tmp_path / "fleet.toml"), "--jobs", str(tmp_path / "jobs.csv")]
    return [sys.executable, "-m", "tenfold", "sim", "compare", *files, "--json"]


def test_ray_gives_what_processes_give(ray: RunningRay, command: list[str]):
    words = [*command, "--policy", "fifo,sjf,las"]
    there = ray.run([*words, "--ray", ADDRESS], 120)
    assert there.returncode == 0, there.stderr
    here = ray.run(words, 120)
    assert json.loads(there.stdout) == json.loads(here.stdout)


def test_a_run_that_fails_on_ray_leaves_the_others_alone(ray: RunningRay, command: list[str]):
    result = ray.run([*command, "--fleet", "/no-such.toml", "--ray", ADDRESS], 120)
    assert result.returncode == 1, result.stderr
    codes = [cell.get("error", {}).get("code") for cell in json.loads(result.stdout)["cells"]]
    assert sorted(codes, key=str) == [None, None, "no-such-file", "no-such-file"]


def test_an_address_where_no_ray_answers_is_said_to_be_so(ray: RunningRay, command: list[str]):
    result = ray.run([*command, "--ray", "127.0.0.1:1"], 120)
    assert result.returncode == 4, result.stderr
    assert json.loads(result.stderr.splitlines()[-1])["error"]["code"] == "ray-unreachable"
