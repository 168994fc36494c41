"""What an executor owes whose service can be killed while its jobs go on."""

import os
from pathlib import Path

from contract.executor.real_processes import (
    FOREVER,
    JOB,
    NOW_MS,
    Ear,
    Process,
    ServiceRig,
    kinds_of,
    launch,
    wait_for_a,
    wait_until_over,
)
from tenfold.live.executor import AttemptEnded, AttemptStarted, Executor


class ServiceContract:
    """Mixed into the contract where jobs outlive the service: a spawner, or `slurmctld`."""

    def test_a_job_goes_on_when_the_service_is_killed(
        self, rig: ServiceRig, executor: Executor, ear: Ear, tmp_path: Path
    ):
        os.mkfifo(tmp_path / "go")
        executor.start(launch(f"echo $$ > {ear.path}; read -r _ < {tmp_path}/go; exit 4"))
        process = Process(int(ear.words(1)[0]))
        wait_for_a(executor, AttemptStarted)
        rig.kill_service()
        assert executor.observations() == []
        assert not process.is_gone(0)
        (tmp_path / "go").write_text("on\n")
        seen = wait_until_over(executor)
        assert kinds_of(seen) == [AttemptEnded]
        assert seen[0].exit_code == 4
        assert ear.nothing_more()

    def test_an_end_while_the_service_was_down_is_told(
        self, rig: ServiceRig, executor: Executor, ear: Ear, tmp_path: Path
    ):
        os.mkfifo(tmp_path / "go")
        executor.start(launch(f"echo $$ > {ear.path}; read -r _ < {tmp_path}/go; exit 4"))
        process = Process(int(ear.words(1)[0]))
        rig.kill_service()
        (tmp_path / "go").write_text("on\n")
        assert process.is_gone()
        assert wait_until_over(executor)[-1].exit_code == 4

    def test_orders_given_while_the_service_is_down_are_carried_out(
        self, rig: ServiceRig, executor: Executor
    ):
        rig.kill_service()
        executor.start(launch("echo here"))
        assert wait_until_over(executor)[-1].exit_code == 0
        assert executor.logs(JOB, 1, 0).tail == b"here\n"

    def test_a_stop_reaches_what_an_earlier_service_started(
        self, rig: ServiceRig, executor: Executor, ear: Ear
    ):
        executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}"))
        process = Process(int(ear.words(1)[0]))
        rig.kill_service()
        executor.stop(JOB, 1, NOW_MS)
        assert wait_until_over(executor)[-1].how == "stopped"
        assert process.is_gone(0)
