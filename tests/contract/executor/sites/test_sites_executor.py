"""Two sites are one executor: the contract, and what the loss of a site means."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract.executor.contract import ExecutorContract
from contract.executor.processes import LocalProcessContract
from contract.executor.real_processes import (
    FOREVER,
    JOB,
    NOW_MS,
    Ear,
    Process,
    kinds_of,
    launch,
    wait_for,
    wait_for_a,
    wait_until_over,
)
from contract.executor.service import ServiceContract
from contract.executor.sites.rig import SitesRig
from tenfold.live.executor import (
    AttemptLost,
    AttemptStarted,
    NodeReachable,
    NodeUnreachable,
    OrderRefused,
)
from tenfold.live.local.executor import LocalExecutor
from tenfold.model.ids import JobId, NodeId

ELSEWHERE = JobId("elsewhere")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[SitesRig]:
    rig = SitesRig(tmp_path / "state")
    yield rig
    rig.close()


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[SitesRig]:
    """Sites that are lost after a second without an answer."""
    rig = SitesRig(tmp_path / "state", lost_after_s=1.0)
    yield rig
    rig.close()


@pytest.fixture
def ear(tmp_path: Path) -> Iterator[Ear]:
    ear = Ear(tmp_path / "ear")
    yield ear
    ear.close()


class TestSitesExecutor(ExecutorContract, ServiceContract, LocalProcessContract):
    """Every test of the contract."""


def test_a_gang_never_spans_sites(rig: SitesRig):
    executor = rig.connect()
    executor.start(launch("true", nodes=("a", "node-1")))
    [refused] = wait_for_a(executor, OrderRefused)
    assert (refused.reason.code, refused.is_transient) == ("not-at-one-site", False)


def test_a_node_that_no_engine_has_is_refused(rig: SitesRig):
    executor = rig.connect()
    executor.start(launch("true", nodes=("nowhere",)))
    [refused] = wait_for_a(executor, OrderRefused)
    assert refused.reason.code == "not-at-one-site"


def test_jobs_find_at_one_site_what_they_saved_at_the_other(rig: SitesRig):
    executor = rig.connect()
    executor.start(launch("echo step 5 > saved", nodes=("a",)))
    wait_until_over(executor)
    executor.start(launch("cat saved; pwd", attempt=2, nodes=("node-1",)))
    wait_until_over(executor)
    said = executor.logs(JOB, 2, 0).tail.decode().splitlines()
    assert said == ["step 5", f"{rig.home}/teams/team/job%2F1"]


def test_an_attempt_at_another_site_makes_an_older_one_stale(rig: SitesRig):
    executor = rig.connect()
    executor.start(launch("true", attempt=2, nodes=("a",)))
    wait_until_over(executor)
    executor.start(launch("true", attempt=1, nodes=("node-1",)))
    assert wait_for_a(executor, OrderRefused)[0].reason.code == "stale-order"


def test_no_attempt_starts_beside_one_at_another_site(rig: SitesRig):
    executor = rig.connect()
    executor.start(launch(FOREVER, nodes=("a",)))
    wait_for_a(executor, AttemptStarted)
    executor.start(launch("true", attempt=2, nodes=("node-1",)))
    [refused] = wait_for_a(executor, OrderRefused)
    assert (refused.reason.code, refused.is_transient) == ("earlier-attempt-lives", True)


def test_a_site_that_hangs_is_lost_while_the_other_goes_on(hasty: SitesRig, ear: Ear):
    executor = hasty.connect()
    executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}", nodes=("a",)))
    process = Process(int(ear.words(1)[0]))
    wait_for_a(executor, AttemptStarted)
    hung = hasty.pause("north")
    try:
        executor.start(launch("true", job_id=ELSEWHERE))
        assert wait_until_over(executor)[-1].job_id == ELSEWHERE
        seen = wait_until_over(executor)
        assert kinds_of(seen) == [NodeUnreachable] * 3 + [AttemptLost]
        assert [one.node for one in seen[:3]] == ["a", "b", "c"]
        assert {one.cause for one in seen[:3]} == {"site-lost"}
        assert (seen[3].attempt, seen[3].reason.code) == (1, "site-lost")
        executor.start(launch("true", job_id=JobId("too-late"), nodes=("b",)))
        [refused] = wait_for_a(executor, OrderRefused)
        assert (refused.reason.code, refused.is_transient) == ("node-is-lost", True)
        executor.start(launch("echo moved", attempt=2))
        assert wait_until_over(executor)[-1].attempt == 2
        assert executor.logs(JOB, 2, 0).tail == b"moved\n"
        assert not process.is_gone(0)
    finally:
        os.kill(hung, signal.SIGCONT)
    seen = wait_for(executor, lambda seen: kinds_of(seen).count(NodeReachable) == 3)
    assert kinds_of(seen) == [NodeReachable] * 3
    assert process.is_gone(0)
    executor.start(launch("true", job_id=JobId("again"), nodes=("a",)))
    assert wait_until_over(executor)[-1].exit_code == 0


def test_a_site_whose_folder_is_gone_is_lost_and_comes_back(hasty: SitesRig):
    executor = hasty.connect()
    executor.start(launch(FOREVER, nodes=("a",)))
    wait_for_a(executor, AttemptStarted)
    north = Path(hasty.homes["north"])
    spawner = hasty.spawner("north")
    hasty.kill_watcher(JOB, 1)
    north.rename(north.with_name("gone"))
    spawner.kill()
    seen = wait_until_over(executor)
    assert kinds_of(seen)[-1] == AttemptLost
    wait_for_a(executor, NodeUnreachable) if NodeUnreachable not in kinds_of(seen) else None
    north.with_name("gone").rename(north)
    wait_for(executor, lambda seen: kinds_of(seen).count(NodeReachable) == 3)
    executor.start(launch("true", attempt=2, nodes=("a",)))
    assert wait_until_over(executor)[-1].exit_code == 0


def test_what_was_given_up_is_stopped_by_the_next_control_plane(hasty: SitesRig, ear: Ear):
    first = hasty.connect()
    first.start(launch(f"echo $$ > {ear.path}; {FOREVER}", nodes=("a",)))
    process = Process(int(ear.words(1)[0]))
    wait_for_a(first, AttemptStarted)
    hung = hasty.pause("north")
    try:
        wait_for_a(first, AttemptLost)
        first.close()
        second = hasty.connect()
        [state] = second.attempts()
        assert (state.phase, state.end.reason.code) == ("lost", "site-lost")
        assert kinds_of(second.observations()) == [NodeUnreachable] * 3
    finally:
        os.kill(hung, signal.SIGCONT)
    wait_for(second, lambda seen: kinds_of(seen).count(NodeReachable) == 3)
    assert process.is_gone(0)


def test_an_adopted_attempt_is_lost_with_its_site(hasty: SitesRig, ear: Ear):
    first = hasty.connect()
    first.start(launch(f"echo $$ > {ear.path}; {FOREVER}", nodes=("a",)))
    ear.words(1)
    wait_for_a(first, AttemptStarted)
    first.close()
    hung = hasty.pause("north")
    try:
        second = hasty.connect()
        [state] = second.attempts()
        assert state.phase == "running"
        assert kinds_of(wait_until_over(second)) == [NodeUnreachable] * 3 + [AttemptLost]
    finally:
        os.kill(hung, signal.SIGCONT)


def test_a_stop_reaches_the_site_of_the_attempt(rig: SitesRig, ear: Ear):
    executor = rig.connect()
    executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}", nodes=("b",)))
    ear.words(1)
    executor.stop(JOB, 1, NOW_MS)
    assert wait_until_over(executor)[-1].how == "stopped"


def test_orders_of_an_earlier_epoch_are_refused_at_every_site(rig: SitesRig):
    executor = rig.connect()
    executor.fence(7)
    for home in rig.homes.values():
        direct = LocalExecutor(home)
        assert direct.home.fence() == 7
        direct.close()


def test_a_lost_node_of_a_site_that_comes_back_stays_lost(hasty: SitesRig):
    executor = hasty.connect()
    hasty.lose_node(NodeId("b"))
    wait_for_a(executor, NodeUnreachable)
    hung = hasty.pause("north")
    try:
        seen = wait_for(executor, lambda seen: kinds_of(seen).count(NodeUnreachable) == 2)
        assert [one.node for one in seen] == ["a", "c"]
    finally:
        os.kill(hung, signal.SIGCONT)
    seen = wait_for(executor, lambda seen: kinds_of(seen).count(NodeReachable) == 2)
    assert [one.node for one in seen] == ["a", "c"]
