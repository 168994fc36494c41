"""Read the Alibaba GPU-sharing trace of 2023: its list of pods (`openb`).

A pod of one GPU may request a share of it in thousandths. A pod that was never scheduled
has no time of running; the time until it was deleted stands in for it.
"""

from pathlib import Path

from tenfold.files.traces.errors import TraceErrors
from tenfold.files.traces.named_rows import NamedRow, named_rows
from tenfold.files.traces.trace import JobTrace, TraceRow, note_skipped, trace_of
from tenfold.model.job.job import WHOLE

POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "creation_time", "deletion_time")


def read_openb_pods(path: Path) -> JobTrace:
    """Return the pods of an `openb_pod_list` that were created and deleted."""
    errors = TraceErrors(str(path))
    rows: list[TraceRow] = []
    open_ended = never_scheduled = 0
    for row in named_rows(path, POD_COLUMNS, errors):
        made = _pod(row)
        if made is not None:
            rows.append(made)
            never_scheduled += not row.text("scheduled_time")
        elif not row.is_bad:
            open_ended += 1
    errors.raise_if_any()
    notes: list[str] = []
    note_skipped(open_ended, "their creation or deletion is not recorded", notes)
    if never_scheduled:
        notes.append(
            f"{never_scheduled:,} pods were never scheduled: "
            "assumed to run from creation to deletion"
        )
    return trace_of(rows, notes, str(path))


def _pod(row: NamedRow) -> TraceRow | None:
    created_s, deleted_s = row.number("creation_time"), row.number("deletion_time")
    started_s = row.number("scheduled_time")
    count, share = row.number("num_gpu") or 0.0, row.number("gpu_milli") or WHOLE
    cpus, memory_mib = row.number("cpu_milli") or 0.0, row.number("memory_mib") or 0.0
    if count % 1:
        row.fault(
            "wrong-value", "num_gpu", f"`num_gpu` must be a whole number of GPUs, got {count:g}"
        )
    if row.is_bad or created_s is None or deleted_s is None:
        return None
    return TraceRow(
        job_id=row.text("name"),
        submit_s=created_s,
        duration_s=max(0.0, deleted_s - (created_s if started_s is None else started_s)),
        gpus=share / WHOLE if count == 1 and share < WHOLE else count,
        accelerators=tuple(dict.fromkeys(one for one in row.text("gpu_spec").split("|") if one)),
        cpus=cpus / 1_000,
        memory_gib=memory_mib / 1_024,
        qos=row.text("qos"),
        status=row.text("pod_phase"),
        start_s=started_s,
    )
