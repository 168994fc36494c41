"""Read Kueue workloads, jobs or pods as `kubectl -o json` prints them.

`kubectl get workloads.kueue.x-k8s.io -A -o json` is the best source: a workload exists from
its submission, also while it waits. Jobs are almost as good. Pods of a suspended job are created
only when it may run, so their wait covers only the scheduler.
"""

import re
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import NamedTuple

from tenfold.files.core.document import Table
from tenfold.files.core.export_json import number_at, read_json, table_at, tables_at, text_at
from tenfold.files.kubernetes.labels import texts_of
from tenfold.files.kubernetes.nodes import RESOURCES
from tenfold.files.kubernetes.quantities import quantity_at
from tenfold.files.traces.csv_table import read_plain_bytes
from tenfold.files.traces.named_rows import seconds_of, timestamp_text
from tenfold.files.traces.trace import JobTrace, TraceRow, note_skipped, trace_of
from tenfold.model.errors import InputError

COMMAND = "kubectl get workloads.kueue.x-k8s.io -A -o json"
KINDS = ("Workload", "Job", "Pod")
GANG_LABELS = (
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "ray.io/cluster",
    "volcano.sh/job-name",
    "batch.kubernetes.io/job-name",
    "job-name",
)
"""Pods with the same value of one of these labels are members of one job."""
GANG_WINDOW_S = 60.0
"""Pods of one owner created within this time of the first are one gang; later ones a new run."""
_TYPES = ("nvidia.com/gpu.product", "cloud.google.com/gke-accelerator")
_MIG = re.compile(r"nvidia\.com/mig-([1-7])g\.")
_MIG_SLICES = 7


class _Lifecycle(NamedTuple):
    """When a job was created, started and ended, in seconds; None if not yet."""

    created_s: float
    started_s: float | None
    ended_s: float | None
    status: str


class _JobRecord(NamedTuple):
    """A workload, job or gang of pods: what it requests, and its times."""

    item: Table
    span: _Lifecycle
    pods: Sequence[tuple[Table, float]]
    """Specifications of pods, and how many there are of each."""


def read_kubernetes(path: Path) -> JobTrace:
    """Return the jobs of a saved list that have begun."""
    file = str(path)
    values = read_json(read_plain_bytes(path).decode("utf-8", "replace"), file, COMMAND)
    items = tables_at(values, "items") if "items" in values else [values]
    kinds = list(dict.fromkeys(_kind(item, values) for item in items))
    if len(kinds) > 1 or (kinds and kinds[0] not in KINDS):
        raise InputError(
            "not-kubernetes-jobs",
            f"`{file}` contains {', '.join(f'`{kind[:40]}`' for kind in kinds)}, expected one of "
            f"{', '.join(KINDS)}",
            f"create it with `{COMMAND}`",
            file=file,
        )
    records = (
        _gangs(items, file) if kinds == ["Pod"] else [_job_record(item, file) for item in items]
    )
    return _trace(records, kinds, file)


def _kind(item: Table, parent: Table) -> str:
    return text_at(item, "kind") or text_at(parent, "kind").removesuffix("List")


def _trace(records: Sequence[_JobRecord], kinds: Sequence[str], file: str) -> JobTrace:
    moments = [moment for one in records for moment in one.span[:3] if moment is not None]
    now_s = max(moments, default=0.0)
    rows = [_trace_row(one, now_s, file) for one in records if one.span.started_s is not None]
    notes: list[str] = []
    note_skipped(len(records) - len(rows), "they never started", notes)
    requesting = [row for row in rows if row.gpus or row.cpus]
    note_skipped(len(rows) - len(requesting), "they request neither GPUs nor CPUs", notes)
    running = sum(one.span.started_s is not None and one.span.ended_s is None for one in records)
    if running:
        notes.append(
            f"{running:,} jobs are still running: assumed to end at the last time in the file"
        )
    if kinds == ["Pod"]:
        notes.append("deleted pods, and waits before a pod is created, are not in the file")
    if requesting:
        notes.append(f"time 0 is {timestamp_text(min(row.submit_s for row in requesting))}")
    return trace_of(requesting, notes, file)


def _trace_row(one: _JobRecord, now_s: float, file: str) -> TraceRow:
    metadata, spec = table_at(one.item, "metadata"), table_at(one.item, "spec")
    owner = f"`{_name(one.item)}`"
    created_s, started_s, ended_s, status = one.span
    started_s = created_s if started_s is None else started_s
    first = one.pods[0][0] if one.pods else {}
    selected = texts_of(table_at(first, "nodeSelector"))
    limit_s = number_at(spec, "activeDeadlineSeconds", owner, file)
    return TraceRow(
        job_id=_name(one.item),
        submit_s=created_s,
        duration_s=max(0.0, (now_s if ended_s is None else ended_s) - started_s),
        gpus=_whole(sum(count * _gpus(pod, owner, file) for pod, count in one.pods)),
        accelerators=tuple(selected[key] for key in _TYPES if selected.get(key))[:1],
        cpus=sum(count * _requested(pod, "cpu", owner, file) for pod, count in one.pods),
        memory_gib=sum(count * _requested(pod, "memory", owner, file) for pod, count in one.pods)
        / 1024**3,
        team=text_at(metadata, "namespace"),
        qos=text_at(spec, "priorityClassName") or text_at(first, "priorityClassName"),
        status=status,
        limit_s=limit_s or None,
        priority=int(number_at(spec, "priority", owner, file)),
        start_s=started_s,
    )


def _name(item: Table) -> str:
    metadata = table_at(item, "metadata")
    return f"{text_at(metadata, 'namespace') or 'default'}/{text_at(metadata, 'name')}"


def _job_record(item: Table, file: str) -> _JobRecord:
    """Return a workload or a job, which say themselves when they were what."""
    spec, status = table_at(item, "spec"), table_at(item, "status")
    conditions = {
        text_at(one, "type"): one
        for one in tables_at(status, "conditions")
        if text_at(one, "status") == "True"
    }
    sets = tables_at(spec, "podSets")
    if sets or text_at(item, "kind") == "Workload":
        started = conditions.get("Admitted") or conditions.get("QuotaReserved")
        started_s = _moment(started or {}, "lastTransitionTime", item, file)
        ended = conditions.get("Finished")
        failed = ended is not None and "fail" in _condition_text(ended)
    else:
        sets = [{"count": spec.get("parallelism", 1), "template": spec.get("template")}]
        started_s = _moment(status, "startTime", item, file)
        ended = conditions.get("Complete") or conditions.get("Failed")
        failed = "Failed" in conditions
    word = "" if ended is None else "failed" if failed else "completed"
    ended_s = None if ended is None else _moment(ended, "lastTransitionTime", item, file)
    pods = [
        (table_at(table_at(one, "template"), "spec"), number_at(one, "count", _name(item), file))
        for one in sets
    ]
    return _JobRecord(item, _Lifecycle(_created_at(item, file), started_s, ended_s, word), pods)


def _condition_text(condition: Table) -> str:
    return f"{text_at(condition, 'reason')} {text_at(condition, 'message')}".lower()


def _gangs(pods: Sequence[Table], file: str) -> list[_JobRecord]:
    """Return pods by the job that they belong to, one entry for each of its runs."""
    made = sorted(
        ((_created_at(pod, file), number) for number, pod in enumerate(pods)), key=lambda one: one
    )
    runs: dict[tuple[str, str], list[list[Table]]] = {}
    first_s: dict[tuple[str, str], float] = {}
    for created_s, number in made:
        pod = pods[number]
        key = _gang_key(pod)
        if key not in runs or created_s - first_s[key] > GANG_WINDOW_S:
            runs.setdefault(key, []).append([])
            first_s[key] = created_s
        runs[key][-1].append(pod)
    return [
        _gang(key[1], members, file) for key, gang_runs in runs.items() for members in gang_runs
    ]


def _gang_key(pod: Table) -> tuple[str, str]:
    metadata = table_at(pod, "metadata")
    labels = texts_of(table_at(metadata, "labels"))
    named = next((labels[key] for key in GANG_LABELS if labels.get(key)), "")
    return text_at(metadata, "namespace"), named or text_at(metadata, "name")


def _gang(name: str, members: Sequence[Table], file: str) -> _JobRecord:
    """A gang has begun when its last member has, and ended when all have."""
    spans = [_pod_span(pod, file) for pod in members]
    started = [span.started_s for span in spans if span.started_s is not None]
    ended = [span.ended_s for span in spans if span.ended_s is not None]
    words = [span.status for span in spans]
    whole = len(started) == len(spans)
    over = len(ended) == len(spans)
    status = "failed" if "failed" in words else "completed" if over else ""
    head = members[0]
    item: Table = {
        "metadata": {**table_at(head, "metadata"), "name": name},
        "spec": table_at(head, "spec"),
    }
    span = _Lifecycle(
        min(span.created_s for span in spans),
        max(started) if whole else None,
        max(ended) if over else None,
        status,
    )
    return _JobRecord(item, span, [(table_at(pod, "spec"), 1.0) for pod in members])


def _pod_span(pod: Table, file: str) -> _Lifecycle:
    status = table_at(pod, "status")
    over = [
        table_at(table_at(one, "state"), "terminated")
        for one in tables_at(status, "containerStatuses")
    ]
    phase = text_at(status, "phase")
    ends = [_moment(one, "finishedAt", pod, file) for one in over]
    known = [end for end in ends if end is not None]
    ended = max(known) if known and phase in ("Succeeded", "Failed") else None
    word = {"Succeeded": "completed", "Failed": "failed"}.get(phase, "")
    return _Lifecycle(_created_at(pod, file), _moment(status, "startTime", pod, file), ended, word)


def _created_at(item: Table, file: str) -> float:
    created_s = _moment(table_at(item, "metadata"), "creationTimestamp", item, file)
    if created_s is None:
        raise InputError(
            "missing-key",
            f"{_name(item)} in `{file}` has no `metadata.creationTimestamp`",
            f"export the complete list with `{COMMAND}`",
            file=file,
            field="creationTimestamp",
        )
    return created_s


def _moment(table: Table, key: str, item: Table, file: str) -> float | None:
    text = text_at(table, key)
    seconds = seconds_of(text) if text else None
    if text and seconds is None:
        raise InputError(
            "wrong-value",
            f"`{key}` of {_name(item)} in `{file}` is `{text[:40]}`, which is not a time",
            "write it as Kubernetes does: `2026-01-31T08:00:00Z`",
            file=file,
            field=key,
        )
    return seconds


def _requested(pod: Table, key: str, owner: str, file: str) -> float:
    """Return what the containers of a pod request; a limit alone is a request, too."""
    total = 0.0
    for container in tables_at(pod, "containers"):
        resources = table_at(container, "resources")
        requests, limits = table_at(resources, "requests"), table_at(resources, "limits")
        total += quantity_at(requests if key in requests else limits, key, owner, file)
    return total


def _gpus(pod: Table, owner: str, file: str) -> float:
    """Return the GPUs of a pod; slices of MIG count by the sevenths that they are."""
    whole = sum(_requested(pod, key, owner, file) for key in RESOURCES)
    resources = [table_at(one, "resources") for one in tables_at(pod, "containers")]
    requested = [{**table_at(one, "limits"), **table_at(one, "requests")} for one in resources]
    for amounts in requested:
        for key in amounts:
            slices = _MIG.match(key)
            if slices is not None:
                whole += quantity_at(amounts, key, owner, file) * int(slices[1]) / _MIG_SLICES
    return whole


def _whole(gpus: float) -> float:
    """A share is of one GPU; several are whole."""
    return gpus if gpus < 1 else float(ceil(gpus - 1e-9))
