"""What every executor that opens shells must do: a part of the contract."""

import select
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from contract.executor.real_processes import (
    FOREVER,
    JOB,
    NOW_MS,
    launch,
    wait_for_a,
    wait_until_over,
)
from patience import HANG_S
from tenfold.live.executor import (
    AttemptStarted,
    Executor,
    Member,
    Shell,
    ShellEnded,
    ShellOutput,
    ShellRequest,
    TerminalSize,
)
from tenfold.model.ids import NodeId
from tenfold.model.reason import Reason


@contextmanager
def opened(executor: Executor, *command: str, **more: object) -> Iterator[Shell]:
    """Open a shell in the first attempt of the job until the end of the block."""
    request = ShellRequest(command=command, **more)  # type: ignore[arg-type]
    shell = executor.open_shell(JOB, 1, request)
    assert not isinstance(shell, Reason), shell
    try:
        yield shell
    finally:
        shell.close()


def read_all(shell: Shell) -> tuple[bytes, bytes, ShellEnded]:
    """Read a shell to its end: what it printed, its errors, and how it ended."""
    found = {False: b"", True: b""}
    while True:
        assert select.select([shell], [], [], HANG_S)[0], "the shell neither prints nor ends"
        for one in shell.read():
            if isinstance(one, ShellEnded):
                return found[False], found[True], one
            assert isinstance(one, ShellOutput)
            found[one.is_error] += one.content


def is_alive(pid: int) -> bool:
    """Tell whether a process runs: one that is dead may not be reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class ShellContract:
    """Mixed into the contract of executors."""

    def test_a_shell_has_the_environment_folder_and_devices_of_its_member(self, executor: Executor):
        members = tuple(Member(node=NodeId(name), gpus=(0, 1)) for name in ("a", "b"))
        executor.start(replace(launch(FOREVER, env=(("MINE", "yes"),)), members=members))
        wait_for_a(executor, AttemptStarted)
        script = 'echo "$NODE_RANK $CUDA_VISIBLE_DEVICES $MINE"; pwd; id -u; echo oops >&2; exit 3'
        with opened(executor, "sh", "-c", script, member=1) as shell:
            out, errors, end = read_all(shell)
        job = Path(f"/proc/{_member(executor)}")
        assert out.decode().splitlines() == [
            "1 0,1 yes",
            str((job / "cwd").readlink()),
            str(job.stat().st_uid),
        ]
        assert (errors, end) == (b"oops\n", ShellEnded(exit_code=3))

    def test_what_is_typed_reaches_the_shell_and_its_end_too(self, executor: Executor):
        executor.start(launch(FOREVER))
        wait_for_a(executor, AttemptStarted)
        with opened(executor, "cat") as shell:
            assert shell.write(b"typed") == len(b"typed")
            shell.end_input()
            assert read_all(shell) == (b"typed", b"", ShellEnded(exit_code=0))

    def test_a_shell_in_a_terminal_controls_it_and_knows_its_size(self, executor: Executor):
        executor.start(launch(FOREVER))
        wait_for_a(executor, AttemptStarted)
        size, script = TerminalSize(31, 97), 'stty size; echo "$TERM"; : > /dev/tty && echo owned'
        with opened(executor, "sh", "-c", script, terminal=size, term="vt100") as shell:
            out, _, end = read_all(shell)
        assert out.decode().splitlines() == ["31 97", "vt100", "owned"]
        assert end == ShellEnded(exit_code=0)

    def test_a_shell_ends_with_its_job_and_does_not_keep_it_alive(self, executor: Executor):
        executor.start(launch(FOREVER))
        wait_for_a(executor, AttemptStarted)
        with opened(executor, "sh", "-c", f"trap '' HUP TERM; echo $$; {FOREVER}") as shell:
            pid = _printed_number(shell)
            executor.stop(JOB, 1, NOW_MS)
            wait_until_over(executor)
            assert not is_alive(pid)
            assert read_all(shell)[2].exit_code is None

    def test_a_shell_that_is_hung_up_is_ended_and_the_job_goes_on(self, executor: Executor):
        executor.start(launch(FOREVER))
        wait_for_a(executor, AttemptStarted)
        with opened(executor, "sh", "-c", f"echo $$; {FOREVER}") as shell:
            pid = _printed_number(shell)
        with opened(
            executor, "sh", "-c", f"while kill -0 {pid} 2>&-; do sleep 0.02; done"
        ) as other:
            assert read_all(other)[2] == ShellEnded(exit_code=0)
        assert [one.phase for one in executor.attempts()] == ["running"]

    def test_no_shell_is_opened_where_nothing_runs_or_nothing_can(self, executor: Executor):
        executor.start(launch(FOREVER))
        wait_for_a(executor, AttemptStarted)
        codes = [
            _refused(executor, ShellRequest(command=("true",), member=1)),
            _refused(executor, ShellRequest(command=("no-such-command",))),
            _refused(executor, ShellRequest(command=("true",)), attempt=2),
        ]
        executor.stop(JOB, 1, NOW_MS)
        wait_until_over(executor)
        codes.append(_refused(executor, ShellRequest(command=("true",))))
        not_running = "shell-not-running"
        assert codes == ["shell-no-member", "shell-failed", not_running, not_running]


def _refused(executor: Executor, request: ShellRequest, attempt: int = 1) -> str:
    found = executor.open_shell(JOB, attempt, request)
    assert isinstance(found, Reason)
    return found.code


def _printed_number(shell: Shell) -> int:
    text = b""
    while not text.endswith(b"\n"):
        assert select.select([shell], [], [], HANG_S)[0], "the shell prints nothing"
        text += b"".join(one.content for one in shell.read() if isinstance(one, ShellOutput))
    return int(text)


def _member(executor: Executor) -> int:
    """Return the process of the second member, as a shell beside it sees it."""
    with opened(executor, "sh", "-c", "echo $PPID", member=1) as shell:
        supervisor = int(read_all(shell)[0])
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return int(children[1])
