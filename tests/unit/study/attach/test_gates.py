"""What keeps a job of Slurm out of its queue, without Slurm's own reason."""

import pytest
from msgspec.structs import replace

from tenfold.files.slurm.settings import (
    Booking,
    Limit,
    PartitionState,
    SlurmSettings,
)
from tenfold.model.job.recorded import RecordedJob, RecordedNode
from tenfold.report.reasons.render import render
from tenfold.study.attach.gates import Gates

NOW_S = 10_000.0
JOB = RecordedJob(
    id="9",
    user="ann",
    account="vision",
    partition="all",
    qos="normal",
    state="pending",
    submitted_s=9_000,
    eligible_s=9_000,
    limit_s=600,
    nodes=1,
    gpus=4,
    gpus_asked=4,
    cpus=4,
)
RUNNING = replace(JOB, id="8", state="running", started_s=9_500.0, node_names=("n1",))
NODES = {name: RecordedNode(name=name, gpus=8, cpus=16) for name in ("n1", "n2")}
DOWN = {**NODES, "n2": replace(NODES["n2"], why_unusable="drained: fan")}


def settings(**fields: object) -> SlurmSettings:
    """Return settings with one partition of both nodes."""
    partition = PartitionState(name="all", nodes=("n1", "n2"), time_max_s=3_600, nodes_max=2)
    return replace(SlurmSettings(partitions=(partition,)), **fields)


CASES = {
    "held-in-slurm": (replace(JOB, is_held=True, dependency="afterok:1"), settings()),
    "dependency-open": (replace(JOB, dependency="afterok:7(unfulfilled)"), settings()),
    "dependency-never-met": (replace(JOB, dependency="afterok:7(failed)"), settings()),
    "begin-time": (replace(JOB, eligible_s=NOW_S + 60), settings()),
    "partition-down": (
        JOB,
        settings(partitions=(PartitionState(name="all", state="DOWN"),)),
    ),
    "beyond-partition": (replace(JOB, limit_s=7_200.0), settings()),
    "required-node-unavailable": (replace(JOB, required_nodes=("n2",)), settings()),
    "array-full": (replace(JOB, id="8_1", at_once_max=1), settings()),
    "reservation-not-active": (
        replace(JOB, reservation="r"),
        settings(bookings=(Booking(name="r", start_s=NOW_S + 60, end_s=NOW_S + 120),)),
    ),
    "reserved-before-its-end": (
        JOB,
        settings(
            bookings=(Booking(name="m", start_s=NOW_S + 60, end_s=NOW_S + 900, nodes=("n1", "n2")),)
        ),
    ),
    "slurm-limit": (
        JOB,
        settings(limits=(Limit(kind="qos-user", name="normal", amounts={"gres/gpu": 6}),)),
    ),
}


@pytest.mark.parametrize("code", CASES)
def test_each_gate_has_its_reason(code: str) -> None:
    job, known = CASES[code]
    running = replace(RUNNING, id="8_0") if code == "array-full" else RUNNING
    found = Gates([running], DOWN, known, NOW_S).of(job)
    assert found is not None
    assert found.code == code
    assert "{" not in render(found)


def test_a_job_in_the_queue_has_no_gate() -> None:
    assert Gates([RUNNING], DOWN, settings(), NOW_S).of(JOB) is None


def test_a_reservation_of_one_node_leaves_the_other() -> None:
    known = settings(bookings=(Booking(name="m", start_s=NOW_S, end_s=NOW_S + 9, nodes=("n1",)),))
    assert Gates([], NODES, known, NOW_S).of(JOB) is None
    assert Gates([], DOWN, known, NOW_S).of(JOB) is not None
    named = replace(JOB, required_nodes=("n1",))
    reason = Gates([], NODES, known, NOW_S).of(named)
    assert reason is not None, "the node that it names is the reserved one"
    assert reason.code == "reserved-before-its-end"
    assert Gates([], NODES, known, NOW_S).of(replace(named, required_nodes=("n2",))) is None


def test_a_limit_counts_jobs_and_single_jobs_too() -> None:
    jobs = settings(limits=(Limit(kind="user", name="vision", user="ann", jobs=1),))
    assert Gates([RUNNING], NODES, jobs, NOW_S).of(JOB) is not None
    assert Gates([], NODES, jobs, NOW_S).of(JOB) is None
    large = settings(limits=(Limit(kind="qos", name="normal", per_job={"gres/gpu": 2}),))
    assert Gates([], NODES, large, NOW_S).of(JOB) is not None
    other = settings(limits=(Limit(kind="account", name="nlp", jobs=0),))
    assert Gates([], NODES, other, NOW_S).of(JOB) is None


def test_any_partition_that_is_up_is_enough() -> None:
    known = settings(partitions=(PartitionState(name="a", state="DOWN"), PartitionState(name="b")))
    assert Gates([], NODES, known, NOW_S).of(replace(JOB, partitions=("a", "b"))) is None
    assert Gates([], NODES, known, NOW_S).of(replace(JOB, partitions=("a",))) is not None
