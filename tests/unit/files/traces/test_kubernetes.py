"""Kueue's workloads, jobs and pods as a trace."""

import json
from pathlib import Path

import pytest

from tenfold.files.traces.detect import read_trace
from tenfold.files.traces.trace import JobTrace
from tenfold.model.errors import InputError

CONTAINER = {"resources": {"requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}}}
SPEC = {"containers": [CONTAINER], "nodeSelector": {"nvidia.com/gpu.product": "H100"}}


def at(hour: int, minute: int = 0) -> str:
    return f"2026-03-01T{hour:02}:{minute:02}:00Z"


def read(tmp_path: Path, *items: dict[str, object]) -> JobTrace:
    path = tmp_path / "list.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return read_trace(path)


def named(kind: str, name: str, hour: int, **rest: object) -> dict[str, object]:
    metadata = {"name": name, "namespace": "vision", "creationTimestamp": at(hour)}
    return {"apiVersion": "x/v1", "kind": kind, "metadata": metadata, **rest}


def workload(
    name: str, hour: int, *conditions: tuple[str, str], why: str = ""
) -> dict[str, object]:
    told = [
        {"type": word, "status": "True", "lastTransitionTime": moment, "reason": why}
        for word, moment in conditions
    ]
    spec = {"podSets": [{"count": 4, "template": {"spec": SPEC}}], "priority": 7}
    return named("Workload", name, hour, spec=spec, status={"conditions": told})


def pod(name: str, hour: int, phase: str, **status: object) -> dict[str, object]:
    made = named("Pod", name, hour, spec=SPEC, status={"phase": phase, **status})
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    metadata["labels"] = {"training.kubeflow.org/job-name": name.partition("-")[0]}
    return made


def ended(moment: str) -> list[dict[str, object]]:
    return [{"state": {"terminated": {"finishedAt": moment}}}]


def test_a_workload_of_kueue_waits_from_its_making_to_its_admission(tmp_path: Path):
    trace = read(
        tmp_path,
        workload("first", 0, ("Admitted", at(1)), ("Finished", at(3))),
        workload("second", 2, ("Admitted", at(2)), ("Finished", at(4)), why="JobFailed"),
    )
    [first, second] = trace.jobs
    assert (first.id, first.team, first.priority) == ("vision/first", "vision", 7)
    assert (first.shape.gpus, first.shape.accelerators) == (32, ("H100",))
    assert (first.duration_ms, second.submitted_ms) == (2 * 3_600_000, 2 * 3_600_000)
    assert trace.starts_ms == {"vision/first": 3_600_000, "vision/second": 2 * 3_600_000}
    assert trace.statuses == {"vision/first": "completed", "vision/second": "failed"}


def test_what_never_began_is_left_out_and_what_runs_counts_until_the_last_moment(tmp_path: Path):
    trace = read(
        tmp_path,
        workload("waits", 0),
        workload("runs", 0, ("Admitted", at(1))),
        workload("done", 0, ("Admitted", at(1)), ("Finished", at(5))),
    )
    assert [(job.id, job.duration_ms) for job in trace.jobs] == [
        ("vision/runs", 4 * 3_600_000),
        ("vision/done", 4 * 3_600_000),
    ]
    assert "1 job is skipped: they never started" in trace.notes


def test_a_job_runs_from_its_start_to_its_completion(tmp_path: Path):
    done = {"type": "Complete", "status": "True", "lastTransitionTime": at(2)}
    spec = {"parallelism": 2, "activeDeadlineSeconds": 7200, "template": {"spec": SPEC}}
    status = {"startTime": at(1), "conditions": [done]}
    [job] = read(tmp_path, named("Job", "train", 0, spec=spec, status=status)).jobs
    assert (job.shape.gpus, job.duration_ms, job.limit_ms) == (16, 3_600_000, 7_200_000)


def test_pods_of_one_owner_are_a_gang_and_those_made_later_a_run_anew(tmp_path: Path):
    over = {"startTime": at(0, 1), "containerStatuses": ended(at(1))}
    again = {"startTime": at(2), "containerStatuses": ended(at(3))}
    trace = read(
        tmp_path,
        pod("llm-0", 0, "Failed", **over),
        pod("llm-1", 0, "Succeeded", **over),
        pod("llm-2", 2, "Succeeded", **again),
    )
    assert [(job.id, job.shape.gpus) for job in trace.jobs] == [
        ("vision/llm", 16),
        ("vision/llm#2", 8),
    ]
    assert trace.statuses == {"vision/llm": "failed", "vision/llm#2": "completed"}


def test_a_slice_of_mig_is_a_share_of_a_gpu(tmp_path: Path):
    sliced = {"containers": [{"resources": {"limits": {"nvidia.com/mig-3g.40gb": 1}}}]}
    status = {"phase": "Succeeded", "startTime": at(0), "containerStatuses": ended(at(1))}
    [job] = read(tmp_path, named("Pod", "notebook", 0, spec=sliced, status=status)).jobs
    assert job.shape.milli == 429


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (named("Node", "n1", 0), "not-kubernetes-jobs"),
        ({"kind": "Pod", "metadata": {"name": "p"}}, "missing-key"),
        (named("Pod", "p", 0, status={"startTime": "soon"}), "wrong-value"),
    ],
)
def test_a_list_that_cannot_be_read_says_what_is_wrong(
    tmp_path: Path, item: dict[str, object], code: str
):
    with pytest.raises(InputError) as error:
        read(tmp_path, item)
    assert error.value.code == code
