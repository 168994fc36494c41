"""Partitions, reservations and limits as Slurm prints them."""

from tenfold.files.slurm.settings import read_bookings, read_limits, read_partitions, read_setting

PARTITIONS = (
    "PartitionName=all Default=YES QoS=N/A MaxNodes=4 MaxTime=01:00:00 Nodes=n[1-2] State=UP "
    "TotalNodes=2\n"
    "PartitionName=off QoS=low MaxNodes=UNLIMITED MaxTime=UNLIMITED Nodes=n1 State=INACTIVE\n"
)
BOOKING = (
    "ReservationName=fix StartTime=1000 EndTime=2000 Duration=00:16:40 Nodes=n[1-2] NodeCnt=2 "
    "Flags=MAINT,SPEC_NODES Users=root Accounts=(null) State=ACTIVE\n"
)
QOS = "Name|GrpJobs|GrpTRES|MaxJobsPU|MaxTRESPU|MaxTRES\nnormal|||2|gres/gpu=8,cpu=4|\nfree|||||\n"
ACCOUNTS = (
    "Account|User|GrpJobs|GrpTRES|MaxJobs|MaxTRES\nvision||5|gres/gpu:h100=16||\nvision|ann|||3|\n"
)


def test_partitions_say_if_jobs_start_there() -> None:
    one, off = read_partitions(PARTITIONS)
    assert (one.nodes, one.time_max_s, one.nodes_max, one.qos) == (("n1", "n2"), 3_600, 4, "")
    assert one.starts_jobs
    assert (off.time_max_s, off.nodes_max, off.qos, off.starts_jobs) == (None, None, "low", False)


def test_a_reservation_has_its_nodes_and_times() -> None:
    (found,) = read_bookings(BOOKING)
    assert (found.start_s, found.end_s, found.nodes) == (1_000, 2_000, ("n1", "n2"))
    assert found.is_maintenance
    assert read_bookings("No reservations in the system\n") == ()


def test_limits_are_those_that_are_set() -> None:
    found = read_limits(QOS, ACCOUNTS)
    assert [(one.kind, one.name, one.user, one.jobs, one.amounts) for one in found] == [
        ("qos-user", "normal", "", 2, {"gres/gpu": 8, "cpu": 4}),
        ("account", "vision", "", 5, {"gres/gpu": 16}),
        ("user", "vision", "ann", 3, {}),
    ]
    assert read_limits("", "") == ()


def test_a_setting_without_a_value_is_empty() -> None:
    assert (
        read_setting("ClusterName             = tenfold\nX = (null)\n", "ClusterName") == "tenfold"
    )
    assert read_setting("X = (null)\n", "X") == ""
