"""The Ray executor obeys the contract on a real Ray of three nodes."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contract.executor.contract import ExecutorContract
from contract.executor.ray.rig import RayRig, enter
from contract.executor.real_processes import (
    FOREVER,
    JOB,
    Ear,
    Process,
    launch,
    wait_for_a,
    wait_until_over,
)
from contract.executor.same_job import check_same_job
from engines.ray_cluster import RayNodes, ray_nodes
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    NodeReachable,
    OrderRefused,
)
from tenfold.live.ray.api import ApiRefused, RayApi
from unit.up_process import Up

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def ray() -> Iterator[RayNodes]:
    with ray_nodes() as running:
        yield running


@pytest.fixture
def rig(ray: RayNodes, tmp_path: Path) -> Iterator[RayRig]:
    rig = RayRig(tmp_path / "state", ray)
    yield rig
    rig.close()


class TestRayExecutor(ExecutorContract):
    """Every test of the contract."""


def test_a_head_that_is_killed_takes_its_attempts_with_it(
    rig: RayRig, ray: RayNodes, tmp_path: Path
):
    """Without a store of its own, a new head knows nothing; what ran is lost, and can run again."""
    ear = Ear(tmp_path / "ear")
    executor = rig.connect()
    executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}", nodes=("a", "b")))
    processes = [Process(int(word)) for word in ear.words(2)]
    wait_for_a(executor, AttemptStarted)
    ray.end("one")
    assert all(process.is_gone() for process in processes)
    for name in ray.names[1:]:
        ray.end(name)
    for name in ray.names:
        ray.start(name)
    [lost] = [one for one in wait_until_over(executor) if isinstance(one, AttemptLost)]
    assert lost.job_id == JOB
    again = launch("true", attempt=2, nodes=("a", "b"))
    executor.start(again)
    ends: list[AttemptEnded] = []
    while not ends:
        seen = wait_for_a(executor, AttemptEnded, OrderRefused, NodeReachable)
        ends = [one for one in seen if isinstance(one, AttemptEnded)]
        if not ends and any(isinstance(one, NodeReachable) for one in seen):
            # It was refused as long as a node was not seen again.
            executor.start(again)
    assert ends[0].exit_code == 0
    ear.close()


def test_the_job_file_of_every_executor_runs_on_ray(
    ray: RayNodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("RAY_AUTH_TOKEN", ray.environment["RAY_AUTH_TOKEN"])

    def inside() -> None:
        enter(ray)
        up = Up(tmp_path / "home")
        up.start("--executor", "ray")
        try:
            check_same_job(up, tmp_path)
        finally:
            up.interrupt()

    # A thread of its own: it stays in the network that it entered.
    with ThreadPoolExecutor(1) as pool:
        pool.submit(inside).result()


def test_requests_without_the_token_are_refused(ray: RayNodes):
    def inside() -> None:
        enter(ray)
        with pytest.raises(ApiRefused) as refused:
            RayApi(ray.url, "").jobs()
        assert refused.value.status in (401, 403)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(inside).result()
