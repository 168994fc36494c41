"""How a job ended: its exit status, which of its processes failed, and where the log is."""

from msgspec import UNSET

from tenfold.cli.output import print_log, print_note
from tenfold.client.client import Client
from tenfold.model.api.jobs import Attempt, Job

EXIT_NO = 1
FAILED_LINES = 20
"""Lines of the log of the process that failed first, printed after the log of process 0."""


def exit_status(job: Job) -> int:
    """Return the exit status of a command that waited for a job: the job's own.

    A job that a signal ended gives 128 plus the signal number, as in shells; one without an exit
    code, or cancelled, gives 1.
    """
    if job.state == "succeeded":
        return 0
    return (job.state == "failed" and (job.exit_code or 0) & 0xFF) or EXIT_NO


def failed_line(job: Job) -> str:
    """Return which process of the last attempt failed first, and how to read its log."""
    one = job.attempts[-1] if job.attempts else None
    if one is None or one.failed_member is UNSET:
        return ""
    command = f"tenfold job logs '{job.id}'" if "[" in job.id else f"tenfold job logs {job.id}"
    return f"{_failed(one, one.failed_member)}; see `{command} --rank {one.failed_member}`"


def print_other_logs(client: Client, job: Job, *, raw: bool = False) -> None:
    """Say that each process has its own log; print the end of the log that failed first.

    To be called after the log of process 0 was printed.
    """
    one = job.attempts[-1] if job.attempts else None
    if one is None or len(one.nodes) < 2:
        return
    member = one.failed_member
    if member is UNSET or member == 0:
        failed = "" if member is UNSET else f"; {_failed(one, member)}"
        of = f"process 0 of {len(one.nodes):,}{failed}"
        print_note(f"this is the log of {of}; use --rank for the others")
        return
    print_note(
        f"this is the log of process 0 of {len(one.nodes):,}; {_failed(one, member)}, and its log"
        f" ends with (--rank {member} prints all of it):"
    )
    text = client.logs(job.id, member=member, attempt=one.number, lines=FAILED_LINES)
    print_log([text], raw=raw)


def _failed(one: Attempt, member: int) -> str:
    where = f" on {one.nodes[member]}" if member < len(one.nodes) else ""
    return f"process {member}{where} failed first"
