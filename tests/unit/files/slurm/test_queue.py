"""The queue as recorded jobs: arrays, holds, limits, old and new numbers."""

import json

import pytest

from tenfold.files.slurm.queue import read_queue, tasks_of
from tenfold.model.errors import InputError
from tenfold.model.job.recorded import RecordedJob

JOB: dict[str, object] = {
    "job_id": 7,
    "array_job_id": 0,
    "array_task_id": None,
    "array_task_string": "",
    "user_name": "ann",
    "account": "vision",
    "partition": "normal,urgent",
    "job_state": "PENDING",
    "submit_time": 1000,
    "eligible_time": 1000,
    "start_time": 0,
    "end_time": 0,
    "nodes": "",
    "node_count": 2,
    "priority": 125,
    "time_limit": 10,
    "tres_per_node": "gres:gpu:h100:8",
    "tres_req_str": "cpu=2,mem=500G,node=2,gres/gpu=16",
    "tres_alloc_str": "",
    "exit_code": 0,
}


def jobs(**changes: object) -> list[RecordedJob]:
    """Return the jobs of a queue with one entry."""
    return read_queue(json.dumps({"jobs": [{**JOB, **changes}]}), "queue.json")


def test_a_pending_job_has_no_start_and_no_nodes() -> None:
    (job,) = jobs()
    assert (job.state, job.started_s, job.node_names, job.gpus) == ("pending", None, (), 16)
    assert job.partitions == ("normal", "urgent")
    assert (job.gpus_per_node_asked, job.gpu_types, job.limit_s) == (8, ("h100",), 600)
    assert not job.is_held


def test_each_pending_member_of_an_array_is_a_job() -> None:
    found = jobs(array_job_id=7, array_task_string="0-2,5%2")
    assert [job.id for job in found] == ["7_0", "7_1", "7_2", "7_5"]
    assert {job.at_once_max for job in found} == {2}


def test_a_job_with_priority_0_is_held() -> None:
    assert jobs(priority=0)[0].is_held


def test_numbers_of_newer_slurm_are_read() -> None:
    (job,) = jobs(
        job_state=["RUNNING"],
        priority={"set": True, "infinite": False, "number": 9},
        time_limit={"set": True, "infinite": True, "number": 0},
        array_task_id={"set": False, "infinite": False, "number": 0},
        start_time={"set": True, "infinite": False, "number": 1100},
        exit_code={"status": ["SUCCESS"], "return_code": {"set": True, "number": 3}},
        nodes="n[1-2]",
        tres_alloc_str="cpu=2,node=2,gres/gpu=16",
    )
    assert (job.state, job.priority, job.limit_s, job.started_s) == ("running", 9, None, 1100)
    assert job.exit_code == 3


@pytest.mark.parametrize(
    ("text", "numbers"), [("3", [3]), ("0-6:2", [0, 2, 4, 6]), ("1,4-5", [1, 4, 5])]
)
def test_members_are_listed(text: str, numbers: list[int]) -> None:
    assert tasks_of(text) == (numbers, 0)


def test_other_json_is_refused() -> None:
    with pytest.raises(InputError, match="no list `jobs`"):
        read_queue("{}", "queue.json")


@pytest.mark.parametrize(
    ("option", "gpus", "types"),
    [
        ({"tres_per_job": "gres:gpu:3"}, 3, ()),
        ({"tres_per_node": "gres:gpu:h100:4"}, 8, ("h100",)),
        ({"tres_per_task": "gres:gpu:a100:1", "tasks": 6}, 6, ("a100",)),
        ({"tres_per_socket": "gres:gpu:1", "sockets_per_node": 2}, 4, ()),
        ({}, 0, ()),
    ],
)
def test_gpus_are_counted_where_slurm_does_not_track_them(
    option: dict[str, object], gpus: int, types: tuple[str, ...]
) -> None:
    plain = {"tres_per_node": "", "tres_req_str": "cpu=2,mem=500G,node=2,billing=2"}
    (job,) = jobs(**{**plain, **option})
    assert (job.gpus, job.gpus_asked, job.gpu_types) == (gpus, gpus, types)


def test_gpus_of_a_running_job_are_those_of_its_nodes_where_slurm_does_not_track_them() -> None:
    (job,) = jobs(
        job_state="RUNNING",
        nodes="n[1-2]",
        start_time=1010,
        tres_per_node="",
        tres_req_str="cpu=2,node=2",
        tres_alloc_str="cpu=2,node=2",
        gres_detail=["gpu:h100:2(IDX:0-1)", "gpu:h100:4(IDX:0-3)"],
    )
    assert (job.gpus, job.node_gpus) == (6, (2, 4))


def test_a_part_of_a_heterogeneous_job_has_the_id_that_accounting_has() -> None:
    assert [job.id for job in jobs(het_job_id=7, het_job_offset=0)] == ["7+0"]
    (second,) = jobs(job_id=8, het_job_id=7, het_job_offset=1)
    assert (second.id, second.number) == ("7+1", 8)
    assert jobs(het_job_id=0, het_job_offset=0)[0].id == "7"
