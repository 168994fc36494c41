"""`tenfold job run`: run a job in the foreground, as if its command ran here.

The output of all processes is printed as it comes, the exit status is the job's, and Ctrl-C cancels
the job. Everything about the job itself is printed to standard error.
"""

import signal
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from time import monotonic
from types import FrameType

from msgspec import UNSET

from tenfold.cli.errors import Exit
from tenfold.cli.job.columns import short_duration
from tenfold.cli.job.endings import exit_status, failed_line
from tenfold.cli.output import complain, print_log
from tenfold.client.client import Client
from tenfold.client.problems import BAD_TOKEN
from tenfold.client.retries import OUTAGE_S
from tenfold.model.api.jobs import Job, Submitted
from tenfold.model.errors import Refused, TenfoldError, Unreachable

TAIL_BYTES = 4 << 20
"""What is printed of the output before the log was opened; it is opened as the job starts."""
POLL_S = 0.25
PENDING_S = 1.0
"""How long a job may be pending before the reason is printed."""
READ_S = 5.0
"""How long the end of the output may take to arrive after the job ended."""
PROCESSES_MOST = 32
"""Processes whose output is followed: each takes a stream of the control plane."""
INTERRUPTED = 128 + signal.SIGINT


class Interrupts:
    """Counts Ctrl-C: the first cancels the job, the second exits immediately."""

    def __init__(self) -> None:
        self.count = 0
        self.status = INTERRUPTED

    def on_signal(self, number: int, _: FrameType | None) -> None:
        """Count it; the second one ends the command where it is."""
        self.count += 1
        self.status = 128 + number
        if self.count > 1:
            raise KeyboardInterrupt

    @contextmanager
    def handled(self) -> Generator[None, None, None]:
        """Handle Ctrl-C and SIGTERM until the end of the block."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.on_signal) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


class Outputs:
    """The output of all processes of a job: one thread reads the log of each."""

    def __init__(self, job_id: str, *, label: bool) -> None:
        self._job_id = job_id
        self._label = label
        self._texts: SimpleQueue[str] = SimpleQueue()
        self._readers: list[Thread] = []
        self._closed = Event()
        self.left_out = 0
        """Processes whose output is not followed."""

    def follow(self, processes: int) -> None:
        """Follow the output of this many processes; those that are followed stay so."""
        self.left_out = max(0, processes - PROCESSES_MOST)
        for member in range(len(self._readers), min(processes, PROCESSES_MOST)):
            # Lines of several processes must not be mixed.
            whole_lines = self._label or processes > 1
            work = Thread(target=self._read, args=(member, whole_lines), daemon=True)
            self._readers.append(work)
            work.start()

    @property
    def is_complete(self) -> bool:
        """Whether all output was read."""
        return not any(one.is_alive() for one in self._readers)

    def close(self) -> None:
        """Read no more."""
        self._closed.set()

    def printed(self, wait_s: float) -> None:
        """Print what has arrived, and wait for it this long."""
        print_log(self._arrived(wait_s), ends_line=False)

    def _arrived(self, wait_s: float) -> Iterator[str]:
        with suppress(Empty):
            yield self._texts.get(timeout=wait_s)
            while True:
                yield self._texts.get_nowait()

    def _read(self, member: int, whole_lines: bool) -> None:
        label = f"{member}: " if self._label else ""
        rest = ""
        with suppress(TenfoldError), Client() as client:
            for text in client.logs(self._job_id, follow=True, member=member, tail=TAIL_BYTES):
                if self._closed.is_set():
                    return
                if not whole_lines:
                    self._texts.put(text)
                    continue
                *lines, rest = (rest + text).split("\n")
                if lines:
                    self._texts.put("".join(f"{label}{line}\n" for line in lines))
        if rest:
            self._texts.put(f"{label}{rest}\n")


def run_in_foreground(client: Client, made: Submitted, *, label: bool = False) -> None:
    """Print a job's output until it ends, and exit with its exit status."""
    complain(f"submitted `{made.id}` for team `{made.team}`")
    for note in made.notes:
        complain(f"note: {note}")
    interrupts = Interrupts()
    try:
        with interrupts.handled():
            job = _Foreground(client, made.id, interrupts, label=label).run()
    except KeyboardInterrupt:
        complain(f"left `{made.id}`; it is being cancelled, see `tenfold job show {made.id}`")
        raise Exit(interrupts.status) from None
    if job.state != "succeeded":
        complain(f"`{job.id}` {job.state}: {job.reason.sentence}")
        if failed := failed_line(job):
            complain(failed)
    if interrupts.count and job.state == "cancelled":
        raise Exit(interrupts.status)
    if (status := exit_status(job)) != 0:
        raise Exit(status)


class _Foreground:
    def __init__(self, client: Client, job_id: str, interrupts: Interrupts, *, label: bool) -> None:
        self._client = client
        self._job_id = job_id
        self._interrupts = interrupts
        self._outputs = Outputs(job_id, label=label)
        self._unreachable_s: float | None = None
        self._since_s = monotonic()
        self._said = ""
        self._is_cancelled = False
        self._ended = 0
        """Number of the last attempt whose end was printed."""

    def run(self) -> Job:
        """Return the job once it has ended and its output is printed."""
        noted = 0
        while True:
            job = self._job()
            if job is not None:
                self._report_restart(job)
                self._explain(job)
                if job.attempts:
                    self._outputs.follow(len(job.attempts[-1].nodes))
            if self._outputs.left_out > noted:
                noted = self._outputs.left_out
                complain(
                    f"note: printing the output of {PROCESSES_MOST} processes; `tenfold job logs"
                    f" {self._job_id} --rank N` prints that of the other {noted:,}"
                )
            if self._interrupts.count and not self._is_cancelled:
                self._cancel()
            self._outputs.printed(POLL_S)
            if job is not None and job.is_over:
                self._print_rest()
                return job

    def _job(self) -> Job | None:
        """Return the job; None while the control plane restarts, which does not end the job."""
        try:
            job = self._client.job(self._job_id)
        except (Unreachable, Refused) as problem:
            now_s = monotonic()
            self._unreachable_s = self._unreachable_s or now_s
            is_outage = isinstance(problem, Unreachable) or problem.code in BAD_TOKEN
            if not is_outage or now_s - self._unreachable_s > OUTAGE_S:
                raise
            # It has a new address and a new token after a restart.
            with suppress(TenfoldError):
                self._client = Client()
            return None
        self._unreachable_s = None
        return job

    def _report_restart(self, job: Job) -> None:
        """Print that an attempt was stopped and the job goes on, and when the next one starts."""
        if not job.attempts or job.is_over:
            return
        last = job.attempts[-1]
        if last.ended_at is not None and last.number > self._ended:
            self._ended = last.number
            ran = "" if job.elapsed_s is UNSET else f" after {short_duration(job.elapsed_s)}"
            # What it waits for now follows the reason of the stop.
            why = job.reason.sentence.partition("; ")[0]
            complain(f"`{job.id}` attempt {last.number} stopped{ran}: {why}; waiting to restart")
        elif last.started_at is not None and 0 < self._ended < last.number:
            self._ended = 0
            complain(f"`{job.id}` attempt {last.number} started")

    def _explain(self, job: Job) -> None:
        """Print why a job is pending, whenever that changes."""
        if job.state != "pending":
            self._since_s, self._said = monotonic(), ""
            return
        if monotonic() - self._since_s >= PENDING_S and job.reason.sentence != self._said:
            self._said = job.reason.sentence
            complain(f"`{job.id}` is pending: {job.reason.sentence}")

    def _cancel(self) -> None:
        self._is_cancelled = True
        complain(f"cancelling `{self._job_id}`; press Ctrl-C again to exit immediately")
        # One that has just ended cannot be cancelled.
        with suppress(TenfoldError):
            self._client.cancel(self._job_id)

    def _print_rest(self) -> None:
        until_s = monotonic() + READ_S
        while not self._outputs.is_complete and monotonic() < until_s:
            self._outputs.printed(POLL_S / 5)
        self._outputs.printed(0.001)
        self._outputs.close()
