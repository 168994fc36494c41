"""Read the SenseTime Helios traces: `cluster_log.csv` of one cluster.

Jobs of Helios ran under Slurm. A job on several nodes requested as many GPUs on each;
jobs without GPUs request CPUs alone and are kept.
"""

from pathlib import Path

from tenfold.files.traces.errors import TraceErrors
from tenfold.files.traces.named_rows import NamedRow, named_rows, timestamp_text
from tenfold.files.traces.trace import JobTrace, TraceRow, even_split, note_skipped, trace_of

COLUMNS = ("job_id", "user", "gpu_num", "cpu_num", "node_num", "state", "submit_time", "duration")


def read_helios(path: Path) -> JobTrace:
    """Return the jobs of a Helios `cluster_log.csv` that ran."""
    return read_log(path, COLUMNS)


def read_log(path: Path, columns: tuple[str, ...]) -> JobTrace:
    """Return the jobs of a log in the layout that Helios began and Acme took up."""
    errors = TraceErrors(str(path))
    rows: list[TraceRow] = []
    never_ran = 0
    for row in named_rows(path, columns, errors):
        made = _row(row)
        if made is not None:
            rows.append(made)
        elif not row.is_bad:
            never_ran += 1
    errors.raise_if_any()
    notes: list[str] = []
    note_skipped(never_ran, "no submission, run or request is recorded", notes)
    if rows:
        notes.append(f"time 0 is {timestamp_text(min(row.submit_s for row in rows))}")
    return trace_of(rows, notes, str(path))


def _row(row: NamedRow) -> TraceRow | None:
    submit_s, duration_s = row.time_s("submit_time"), _duration(row)
    gpus, cpus = row.number("gpu_num") or 0.0, row.number("cpu_num") or 0.0
    nodes = row.number("node_num") or 1.0
    memory_gib = (row.number("mem_per_pod_GB") or 0.0) * nodes
    if gpus % 1:
        row.fault(
            "wrong-value", "gpu_num", f"`gpu_num` must be a whole number of GPUs, got {gpus:g}"
        )
    if row.is_bad or submit_s is None or duration_s is None or not (gpus or cpus):
        return None
    return TraceRow(
        job_id=row.text("job_id"),
        submit_s=submit_s,
        duration_s=duration_s,
        gpus=gpus,
        gpus_per_node=even_split(gpus, nodes),
        cpus=cpus,
        memory_gib=memory_gib,
        team=row.text("vc"),
        user=row.text("user"),
        qos=row.text("type"),
        status=row.text("state"),
        start_s=row.time_s("start_time"),
    )


def _duration(row: NamedRow) -> float | None:
    """Return the time between start and end; the column `duration` may count the wait too."""
    start_s, end_s = row.time_s("start_time"), row.time_s("end_time")
    stated_s = row.number("duration")
    if start_s is not None and end_s is not None:
        return max(0.0, end_s - start_s)
    return stated_s
