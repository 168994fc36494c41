"""The text of `scontrol show jobs` says the same as the JSON of `squeue`."""

import pytest

from tenfold.files.slurm.queue import read_queue
from tenfold.model.errors import InputError

TEXT = """\
JobId=15 ArrayJobId=12 ArrayTaskId=3 JobName=train Comment=NodeList=n9
   UserId=ann(1000) GroupId=ann(1000) MCS_label=N/A
   Priority=125 Nice=50 Account=vision QOS=normal
   JobState=RUNNING Reason=None Dependency=(null)
   Requeue=1 Restarts=1 BatchFlag=1 Reboot=0 ExitCode=0:0
   RunTime=00:00:02 TimeLimit=1-00:00:00 TimeMin=N/A
   SubmitTime=1795062771 EligibleTime=1795062771
   StartTime=1795062773 EndTime=1795063073 Deadline=N/A
   Partition=all AllocNode:Sid=localhost:14563
   ReqNodeList=(null) ExcNodeList=n7
   NodeList=n[1-2]
   NumNodes=2 NumCPUs=2 NumTasks=2 CPUs/Task=1 ReqB:S:C:T=0:0:*:*
   TRES=cpu=2,node=2,billing=2,gres/gpu=6
     Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:h100:4(IDX:0-3)
     Nodes=n2 CPU_IDs=0 Mem=0 GRES=gpu:h100:2(IDX:0-1)
   Features=fast DelayBoot=00:00:00

JobId=12 ArrayJobId=12 ArrayTaskId=4-5%2 JobName=train
   UserId=ann(1000) GroupId=ann(1000) MCS_label=N/A
   Priority=0 Nice=0 Account=vision QOS=normal
   JobState=PENDING Reason=JobHeldUser Dependency=afterok:7(unfulfilled)
   SubmitTime=2026-11-19T04:32:51 EligibleTime=Unknown
   StartTime=Unknown EndTime=Unknown Deadline=N/A
   TimeLimit=UNLIMITED
   Partition=all,off
   NodeList=(null)
   NumNodes=1-1 NumCPUs=1
   TRES=cpu=1,node=1,billing=1
   TresPerNode=gres:gpu:h100:8
"""


def test_text_is_read_with_arrays_devices_and_holds() -> None:
    running, *members = read_queue(TEXT, "jobs.txt")
    assert (running.id, running.user, running.nice, running.restarts) == ("12_3", "ann", 50, 1)
    assert (running.node_names, running.node_gpus) == (("n1", "n2"), (4, 2))
    assert (running.started_s, running.limit_s, running.gpus) == (1795062773, 86_400, 6)
    assert (running.excluded_nodes, running.features) == (("n7",), "fast")
    assert [one.id for one in members] == ["12_4", "12_5"]
    first = members[0]
    assert (first.is_held, first.at_once_max, first.limit_s) == (True, 2, None)
    assert first.dependency == "afterok:7(unfulfilled)"
    assert first.partitions == ("all", "off")
    assert first.gpus_per_node_asked == 8
    assert first.submitted_s == 1795062771


def test_an_empty_queue_has_no_jobs() -> None:
    assert read_queue("No jobs in the system\n", "jobs.txt") == []


@pytest.mark.parametrize("limit", ["soon", "1-00:00:00\x00", "--1"])
def test_a_time_limit_that_is_no_time_is_named_with_its_key(limit: str) -> None:
    with pytest.raises(InputError) as found:
        read_queue(f"JobId=7 JobName=train\n   TimeLimit={limit} NumNodes=1\n", "jobs.txt")
    assert (found.value.code, found.value.field) == ("wrong-value", "TimeLimit")


def test_digits_of_other_kinds_are_no_exit_code_and_no_task() -> None:
    [job] = read_queue("JobId=7 ArrayTaskId=³ JobName=train\n   ExitCode=²:0\n", "jobs.txt")
    assert job.id
