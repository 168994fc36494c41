"""Read the Alibaba PAI trace of 2020: `pai_task_table`, with `pai_job_table` where there is one.

The tables have no header. A job is made of tasks, and a task of instances that each request
percent of CPUs and GPUs. A job of one instance may request a share of a GPU; the shares of
several instances are added up and rounded to whole GPUs, since a gang is of whole GPUs.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from tenfold.files.traces.csv_table import csv_rows
from tenfold.files.traces.errors import TraceErrors
from tenfold.files.traces.named_rows import NamedRow, named_rows
from tenfold.files.traces.trace import JobTrace, TraceRow, note_skipped, trace_of
from tenfold.model.errors import InputError

JOB_COLUMNS = ("job_name", "inst_id", "user", "status", "start_time", "end_time")
TASK_COLUMNS = (
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
)


def read_alibaba_2020(tasks: Path, jobs: Path | None = None) -> JobTrace:
    """Return the jobs of a task table; the job table adds users and times of submission."""
    errors = TraceErrors(str(tasks))
    found: dict[str, _Job] = {}
    for row in named_rows(tasks, (), errors, names=TASK_COLUMNS):
        found.setdefault(row.text("job_name"), _Job()).add_task(row)
    errors.raise_if_any()
    if jobs is not None:
        _add_job_table(jobs, found)
    rows = [row for name, job in found.items() if (row := job.row(name)) is not None]
    notes: list[str] = []
    note_skipped(len(found) - len(rows), "they never ended or requested nothing", notes)
    rounded = sum(job.is_rounded for job in found.values())
    if rounded:
        notes.append(
            f"{rounded:,} jobs request fractions of several GPUs, rounded up to whole GPUs"
        )
    if jobs is None:
        notes.append(
            "without `pai_job_table`, the submission time of a job is assumed to be the start of "
            "its first task"
        )
    return trace_of(rows, notes, str(tasks))


def read_pai_files(paths: Sequence[Path]) -> JobTrace:
    """Tell the two tables apart by the number of their columns, and read them."""
    by_width = {_width(path): path for path in paths}
    tasks = by_width.get(len(TASK_COLUMNS))
    if tasks is None:
        raise InputError(
            "unknown-trace",
            f"none of {', '.join(f'`{path}`' for path in paths)} has the "
            f"{len(TASK_COLUMNS)} columns of `pai_task_table`",
            "give `pai_task_table.csv`, and `pai_job_table.csv` if you have it",
            file=str(paths[0]),
        )
    return read_alibaba_2020(tasks, by_width.get(len(JOB_COLUMNS)))


class _Job:
    """What the tasks of one job add up to."""

    def __init__(self) -> None:
        self.submit_s: float | None = None
        self.start_s = math.inf
        self.end_s = -math.inf
        self.is_open = False
        self.is_rounded = False
        self.gpus = self.cpus = self.memory_gib = 0.0
        self.instances_with_gpus = 0.0
        self.types: dict[str, None] = {}
        self.user = self.status = ""

    def add_task(self, row: NamedRow) -> None:
        """Add a task."""
        count = row.number("inst_num") or 1.0
        start_s, end_s = row.number("start_time"), row.number("end_time")
        if start_s is None or end_s is None:
            self.is_open = True
        else:
            self.start_s, self.end_s = min(self.start_s, start_s), max(self.end_s, end_s)
        gpus = (row.number("plan_gpu") or 0.0) / 100
        self.cpus += count * (row.number("plan_cpu") or 0.0) / 100
        self.memory_gib += count * (row.number("plan_mem") or 0.0)
        self.gpus += count * gpus
        self.status = self.status or row.text("status")
        if gpus:
            self.instances_with_gpus += count
            if row.text("gpu_type"):
                self.types[row.text("gpu_type")] = None

    def row(self, name: str) -> TraceRow | None:
        """Return the job, or None where it never ended or requested nothing."""
        if self.is_open or self.end_s < self.start_s or not (self.gpus or self.cpus):
            return None
        is_share = self.instances_with_gpus == 1 and self.gpus < 1
        gpus = self.gpus if is_share else float(math.ceil(round(self.gpus, 6)))
        self.is_rounded = not is_share and abs(gpus - self.gpus) > 1e-6
        return TraceRow(
            job_id=name,
            submit_s=self.start_s if self.submit_s is None else min(self.submit_s, self.start_s),
            duration_s=self.end_s - self.start_s,
            gpus=gpus,
            accelerators=tuple(self.types),
            cpus=self.cpus,
            memory_gib=self.memory_gib,
            user=self.user,
            status=self.status,
            # Without the table of jobs the first start stands in for the submission.
            start_s=None if self.submit_s is None else self.start_s,
        )


def _add_job_table(path: Path, found: dict[str, _Job]) -> None:
    errors = TraceErrors(str(path))
    for row in named_rows(path, (), errors, names=JOB_COLUMNS):
        job = found.get(row.text("job_name"))
        if job is not None:
            job.submit_s = row.number("start_time")
            job.user = row.text("user")
            job.status = row.text("status") or job.status
    errors.raise_if_any()


def _width(path: Path) -> int:
    for _, cells in csv_rows(path):
        return len(cells)
    return 0
