"""What only processes of this machine owe: nothing of an attempt escapes its supervisor."""

from pathlib import Path

from contract.executor.real_processes import (
    FOREVER,
    JOB,
    Ear,
    LocalProcessRig,
    Process,
    launch,
    wait_for_a,
    wait_until_over,
)
from contract.executor.shells import ShellContract
from tenfold.live.executor import AttemptLost, AttemptStarted, Executor
from tenfold.model.units import Millis


class LocalProcessContract(ShellContract):
    """Mixed into the contract of the local executor."""

    def test_a_process_that_fled_ends_with_its_attempt(self, executor: Executor, ear: Ear):
        """Into a session of its own, with nothing in its environment, ignoring the notice."""
        script = f"trap '' TERM; echo $$ > {ear.path}; while :; do sleep 1000; done"
        fled = f'env -i PATH=$PATH setsid sh -c "{script}" & echo $$ > {ear.path}; {FOREVER}'
        executor.start(launch(fled))
        processes = [Process(int(word)) for word in ear.words(2)]
        executor.stop(JOB, 1, Millis(20))
        wait_until_over(executor)
        assert all(process.is_gone(0) for process in processes)

    def test_what_a_member_leaves_behind_ends_with_it(self, executor: Executor, ear: Ear):
        left = f"(setsid sh -c 'echo $$ > {ear.path}; exec sleep 1000' &); read -r _ < /dev/null"
        executor.start(launch(f"{left}; exit 3"))
        end = wait_until_over(executor)[-1]
        assert (end.how, end.exit_code) == ("exited", 3)
        if not ear.nothing_more():
            assert not Path(f"/proc/{ear.words(1)[0]}").exists()

    def test_an_attempt_whose_watcher_is_killed_is_lost_with_all_it_started(
        self, rig: LocalProcessRig, executor: Executor, ear: Ear
    ):
        fled = f"setsid env -i sh -c 'echo $$ > {ear.path}; exec /bin/sleep 1000' &"
        executor.start(launch(f"{fled} echo $$ > {ear.path}; {FOREVER}", nodes=("a", "b")))
        processes = [Process(int(word)) for word in ear.words(4)]
        wait_for_a(executor, AttemptStarted)
        rig.kill_watcher(JOB, 1)
        [lost] = wait_until_over(executor)
        assert isinstance(lost, AttemptLost)
        assert lost.reason.code == "supervisor-lost"
        assert all(process.is_gone() for process in processes)
        executor.start(launch("true", attempt=2))
        assert wait_until_over(executor)[-1].exit_code == 0

    def test_an_attempt_is_lost_when_watcher_and_service_are_killed(
        self, rig: LocalProcessRig, executor: Executor, ear: Ear
    ):
        fled = f"setsid sh -c 'echo $$ > {ear.path}; exec sleep 1000' &"
        executor.start(launch(f"{fled} echo $$ > {ear.path}; {FOREVER}"))
        processes = [Process(int(word)) for word in ear.words(2)]
        wait_for_a(executor, AttemptStarted)
        rig.kill_service()
        rig.kill_watcher(JOB, 1)
        [lost] = wait_until_over(executor)
        assert isinstance(lost, AttemptLost)
        assert all(process.is_gone() for process in processes)
