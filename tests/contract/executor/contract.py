"""What every executor owes: one class, run against real processes on a real engine.

`service.py` has what an executor owes whose service restarts without its jobs, and `processes.py`
what only processes of this machine owe.
"""

import os
from pathlib import Path
from time import monotonic

import pytest

from contract.executor.real_processes import (
    DEADLINE_S,
    FOREVER,
    JOB,
    LONG_MS,
    NOW_MS,
    Ear,
    Process,
    Rig,
    kinds_of,
    launch,
    wait_for,
    wait_for_a,
    wait_until_over,
)
from tenfold.live.executor import (
    AttemptEnded,
    AttemptLost,
    AttemptStarted,
    Executor,
    Launch,
    Member,
    NodeReachable,
    NodeUnreachable,
    OrderRefused,
)
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import CheckpointSpec, RunSpec
from tenfold.model.units import Millis
from tenfold.report.reasons.render import render


class ExecutorContract:
    """Subclass it with a fixture `rig`."""

    @pytest.fixture
    def ear(self, tmp_path: Path):
        ear = Ear(tmp_path / "ear")
        yield ear
        ear.close()

    @pytest.fixture
    def executor(self, rig: Rig) -> Executor:
        return rig.connect()

    # Starting and observing.

    def test_a_gang_starts_whole_and_ends_once_all_members_have(self, executor: Executor):
        executor.start(launch('echo "I am $RANK of $WORLD_SIZE"', nodes=("a", "b", "c")))
        seen = wait_until_over(executor)
        assert kinds_of(seen) == [AttemptStarted, AttemptEnded]
        end = seen[-1]
        assert (end.job_id, end.attempt, end.how, end.exit_code) == (JOB, 1, "exited", 0)
        for rank in range(3):
            assert executor.logs(JOB, 1, rank).tail == f"I am {rank} of 3\n".encode()

    def test_a_member_knows_its_gang_and_where_it_saves(self, executor: Executor):
        saves = CheckpointSpec(folder="saves", every_ms=Millis(90_000))
        script = 'echo "$NODE_RANK of $PET_NNODES on $TENFOLD_NODES, attempt $TENFOLD_ATTEMPT"; '
        script += 'echo "$MASTER_ADDR:$MASTER_PORT $MINE ${TENFOLD_CHECKPOINT_DIR##*/} '
        script += '$TENFOLD_CHECKPOINT_EVERY_S"'
        env = (("MINE", "1"), ("TENFOLD_ATTEMPT", "7"))
        executor.start(launch(script, nodes=("b", "a"), attempt=4, checkpoint=saves, env=env))
        wait_until_over(executor)
        logs = [executor.logs(JOB, 4, rank).tail.decode().splitlines() for rank in range(2)]
        assert [log[0] for log in logs] == [f"{rank} of 2 on b,a, attempt 4" for rank in range(2)]
        assert logs[0][1] == logs[1][1]
        assert logs[0][1].endswith(" 1 saves 90")

    def test_the_first_member_that_fails_ends_the_gang_with_its_exit_code(self, executor: Executor):
        script = f'[ "$RANK" = 1 ] && exit 7; {FOREVER}'
        executor.start(launch(script, nodes=("a", "b", "c"), grace_ms=LONG_MS))
        end = wait_until_over(executor)[-1]
        assert isinstance(end, AttemptEnded)
        assert (end.how, end.exit_code, end.member) == ("exited", 7, 1)

    def test_a_member_that_is_killed_ends_with_its_signal(self, executor: Executor):
        executor.start(launch("kill -9 $$"))
        end = wait_until_over(executor)[-1]
        assert isinstance(end, AttemptEnded)
        assert (end.exit_code, end.signal, end.member) == (None, 9, 0)

    def test_a_command_that_cannot_be_run_ends_with_the_reason(self, executor: Executor):
        nowhere = Launch(
            job_id=JOB,
            attempt=1,
            team=TeamId("team"),
            run_spec=RunSpec(name="x", command=("no-such-command-here",)),
            members=(Member(node=NodeId("a")), Member(node=NodeId("b"))),
        )
        executor.start(nowhere)
        seen = wait_until_over(executor)
        assert kinds_of(seen) == [AttemptEnded]
        assert seen[0].how == "start-failed"
        assert "no-such-command-here" in render(seen[0].reason)

    def test_an_attempt_that_is_ordered_twice_starts_once(self, executor: Executor, ear: Ear):
        for _ in range(2):
            executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}"))
        [pid] = ear.words(1)
        executor.stop(JOB, 1, NOW_MS)
        seen = wait_until_over(executor)
        assert kinds_of(seen) == [AttemptStarted, AttemptEnded]
        assert not Path(f"/proc/{pid}").exists()
        executor.start(launch(f"echo $$ > {ear.path}"))
        executor.start(launch("true", job_id=JobId("after")))
        seen = wait_until_over(executor)
        assert [one.job_id for one in seen] == [JobId("after")] * 2
        assert ear.nothing_more()

    def test_an_older_attempt_than_one_that_was_seen_is_refused(self, executor: Executor):
        executor.start(launch("true", attempt=2))
        wait_until_over(executor)
        executor.start(launch("true", attempt=1))
        [refused] = wait_for_a(executor, OrderRefused)
        assert refused.attempt == 1
        assert refused.reason.code == "stale-order"

    def test_no_attempt_starts_beside_another_of_its_job(self, executor: Executor, ear: Ear):
        executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}"))
        executor.start(launch(f"echo $$ > {ear.path}", attempt=2))
        ear.words(1)
        seen = wait_for_a(executor, OrderRefused)
        (refused,) = [one for one in seen if isinstance(one, OrderRefused)]
        assert refused.reason.code == "earlier-attempt-lives"
        assert refused.is_transient
        executor.stop(JOB, 1, NOW_MS)
        wait_until_over(executor)
        executor.start(launch(f"echo two > {ear.path}", attempt=3))
        assert wait_until_over(executor)[-1].attempt == 3
        assert ear.words(1) == ["two"]

    # Stopping.

    def test_a_stop_gives_notice_to_every_member(self, executor: Executor, ear: Ear):
        script = f'trap "echo noticed; exit 0" TERM; echo $$ > {ear.path}; {FOREVER}'
        executor.start(launch(script, nodes=("a", "b")))
        ear.words(2)
        executor.stop(JOB, 1, LONG_MS)
        end = wait_until_over(executor)[-1]
        assert isinstance(end, AttemptEnded)
        assert (end.how, end.exit_code) == ("stopped", 0)
        for rank in range(2):
            assert b"noticed" in executor.logs(JOB, 1, rank).tail

    def test_a_job_that_ignores_the_notice_is_killed_after_its_grace(
        self, executor: Executor, ear: Ear
    ):
        executor.start(launch(f'trap "" TERM; echo $$ > {ear.path}; {FOREVER}'))
        process = Process(int(ear.words(1)[0]))
        executor.stop(JOB, 1, Millis(20))
        end = wait_until_over(executor)[-1]
        assert isinstance(end, AttemptEnded)
        assert (end.how, end.signal) == ("stopped", 9)
        assert process.is_gone(0)

    def test_a_second_stop_may_shorten_the_grace(self, executor: Executor, ear: Ear):
        executor.start(launch(f'trap "" TERM; echo $$ > {ear.path}; {FOREVER}'))
        ear.words(1)
        executor.stop(JOB, 1, LONG_MS)
        executor.stop(JOB, 1, NOW_MS)
        assert wait_until_over(executor)[-1].how == "stopped"

    def test_a_stop_of_what_never_started_is_refused(self, executor: Executor):
        executor.stop(JOB, 1, NOW_MS)
        [refused] = wait_for_a(executor, OrderRefused)
        assert refused.reason.code == "no-such-attempt"

    # Adopting.

    def test_a_client_that_comes_back_finds_what_runs(self, rig: Rig, ear: Ear):
        first = rig.connect()
        first.start(launch(f"echo $$ > {ear.path}; {FOREVER}"))
        pid = int(ear.words(1)[0])
        wait_for_a(first, AttemptStarted)
        first.close()
        second = rig.connect()
        [state] = second.attempts()
        assert (state.job_id, state.attempt, state.phase) == (JOB, 1, "running")
        assert [member.node for member in state.members] == ["node-1"]
        assert second.observations() == []
        assert Path(f"/proc/{pid}").exists()
        second.stop(JOB, 1, NOW_MS)
        assert kinds_of(wait_until_over(second)) == [AttemptEnded]

    def test_an_end_that_nobody_saw_is_told_to_the_next_client(self, rig: Rig, ear: Ear, tmp_path):
        os.mkfifo(tmp_path / "go")
        first = rig.connect()
        first.start(launch(f"echo $$ > {ear.path}; read -r _ < {tmp_path}/go; exit 5"))
        process = Process(int(ear.words(1)[0]))
        first.close()
        (tmp_path / "go").write_text("on\n")
        assert process.is_gone()
        second = rig.connect()
        seen = wait_until_over(second)
        assert kinds_of(seen) == [AttemptStarted, AttemptEnded]
        assert seen[-1].exit_code == 5
        [state] = second.attempts()
        assert state.end == seen[-1]

    def test_what_is_settled_is_not_listed_and_stays_stale(self, rig: Rig, executor: Executor):
        executor.start(launch("true", attempt=2))
        wait_until_over(executor)
        executor.settle([(JOB, 2)])
        assert executor.attempts() == []
        executor.close()
        again = rig.connect()
        assert again.observations() == []
        again.start(launch("true", attempt=1))
        assert wait_for_a(again, OrderRefused)[0].reason.code == "stale-order"

    def test_what_still_runs_cannot_be_settled(self, executor: Executor):
        executor.start(launch(FOREVER))
        wait_for_a(executor, AttemptStarted)
        executor.settle([(JOB, 1)])
        assert [state.phase for state in executor.attempts()] == ["running"]

    # Loss.

    def test_a_lost_node_takes_its_attempts_with_it(self, rig: Rig, executor: Executor, ear: Ear):
        executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}", nodes=("a", "b")))
        other = JobId("elsewhere")
        executor.start(launch(f"echo $$ > {ear.path}; {FOREVER}", job_id=other, nodes=("c",)))
        ear.words(3)
        wait_for(executor, lambda seen: kinds_of(seen).count(AttemptStarted) == 2)
        rig.lose_node(NodeId("b"))
        seen = wait_until_over(executor)
        assert kinds_of(seen) == [NodeUnreachable, AttemptLost]
        assert seen[1].reason.code == "node-lost"
        phases = {state.job_id: state.phase for state in executor.attempts()}
        assert phases == {JOB: "lost", other: "running"}

    def test_nothing_starts_on_a_lost_node_until_it_is_back(self, rig: Rig, executor: Executor):
        rig.lose_node(NodeId("a"))
        wait_for_a(executor, NodeUnreachable)
        executor.start(launch("true", nodes=("a",)))
        assert wait_for_a(executor, OrderRefused)[0].reason.code == "node-is-lost"
        rig.restore_node(NodeId("a"))
        wait_for_a(executor, NodeReachable)
        executor.start(launch("true", nodes=("a",)))
        assert wait_until_over(executor)[-1].exit_code == 0

    # Health and logs.

    def test_a_member_that_gives_no_sign_of_life_is_ended(self, executor: Executor):
        executor.start(launch(FOREVER, silent_ms_most=Millis(200)))
        end = wait_until_over(executor)[-1]
        assert isinstance(end, AttemptEnded)
        assert end.how == "silent"

    def test_a_member_that_gives_signs_of_life_may_go_on(self, executor: Executor):
        beats = 'for n in 1 2 3 4 5 6; do touch "$TENFOLD_HEARTBEAT"; sleep 0.2; done'
        executor.start(launch(beats, silent_ms_most=Millis(1_000)))
        assert wait_until_over(executor)[-1].exit_code == 0

    def test_the_log_of_a_running_member_can_be_read(self, executor: Executor, ear: Ear):
        executor.start(launch(f"echo out; echo err >&2; echo x > {ear.path}; {FOREVER}"))
        ear.words(1)
        ends = monotonic() + DEADLINE_S
        while executor.logs(JOB, 1, 0).tail != b"out\nerr\n":
            assert monotonic() < ends
        assert executor.logs(JOB, 1, 0, bytes_most=4).tail == b"err\n"
        assert executor.logs(JOB, 1, 5).tail == b""
