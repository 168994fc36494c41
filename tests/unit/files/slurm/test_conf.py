"""The scheduling part of a slurm.conf."""

from pathlib import Path

import pytest

from tenfold.files.slurm.conf import read_slurm_conf
from tenfold.files.slurm.times import slurm_seconds
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.policy.slurm import Backfill, SlurmPolicy
from tenfold.model.units import DAY, HOUR, MINUTE, SECOND

CONF = """\
# A cluster for two teams.
ClusterName=demo
SlurmctldHost=head
PRIORITYTYPE=priority/multifactor   # not basic
PriorityWeightAge=1000
PriorityWeightFairshare = 100000
PriorityWeightQOS=2000
PriorityWeightTRES=CPU=10,GRES/gpu=300
PriorityMaxAge=1-0
PriorityDecayHalfLife=14-0
PriorityFavorSmall=NO
PriorityFlags=SMALL_RELATIVE_TO_TIME,MAX_TRES
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=15,bf_max_job_test=1000,\\
bf_window=2880,bf_continue,default_queue_depth=200,defer,sched_min_interval=1000,pack_serial_at_end
PreemptType=preempt/qos
PreemptMode=REQUEUE,GANG
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
NodeName=n[1-4] CPUs=64 Gres=gpu:h100:8 State=UNKNOWN
PartitionName=DEFAULT MaxTime=2-0 State=UP
PartitionName=batch Nodes=n[1-4] Default=YES DefaultTime=60
Include more.conf
"""
MORE = (
    "PartitionName=debug Nodes=ALL MaxTime=UNLIMITED PriorityTier=10 "
    "PriorityJobFactor=5 GraceTime=30\n"
)


def conf(folder: Path, text: str, more: str = MORE) -> Path:
    (folder / "more.conf").write_text(more)
    path = folder / "slurm.conf"
    path.write_text(text)
    return path


def test_weights_and_parameters_are_read(tmp_path: Path):
    policy = read_slurm_conf(conf(tmp_path, CONF))
    assert policy.priority == "multifactor"
    weights = policy.weights
    assert (weights.age, weights.fairshare, weights.qos, weights.partition) == (
        1_000,
        100_000,
        2_000,
        0,
    )
    assert weights.tres == {"cpu": 10, "gres/gpu": 300}
    assert (policy.age_max_ms, policy.decay_half_life_ms) == (DAY, 14 * DAY)
    assert policy.priority_flags == ("small_relative_to_time", "max_tres")
    assert policy.backfill.interval_ms == 15 * SECOND
    assert (policy.backfill.jobs_tested_max, policy.backfill.window_ms) == (1_000, 2 * DAY)
    assert (policy.backfill.goes_on, policy.defers, policy.queue_depth) == (True, True, 200)
    assert policy.interval_min_us == 1_000
    assert "pack_serial_at_end" in policy.parameters
    assert (policy.preempt_type, policy.preempt_modes) == ("qos", ("requeue", "gang"))
    assert policy.select_parameters == ("cr_core_memory",)


def test_partitions_take_what_default_says_and_included_files_count(tmp_path: Path):
    batch, debug = read_slurm_conf(conf(tmp_path, CONF)).partitions
    assert (batch.name, batch.nodes, batch.is_default) == ("batch", "n[1-4]", True)
    assert (batch.time_max_ms, batch.time_default_ms) == (2 * DAY, HOUR)
    assert (batch.priority_tier, batch.priority_job_factor) == (1, 1)
    assert (debug.time_max_ms, debug.time_default_ms, debug.grace_ms) == (None, None, 30 * SECOND)
    assert (debug.priority_tier, debug.priority_job_factor, debug.is_default) == (10, 5, False)


def test_an_empty_file_has_the_defaults_of_slurm(tmp_path: Path):
    policy = read_slurm_conf(conf(tmp_path, "# nothing\n"))
    assert policy == SlurmPolicy()
    assert policy.backfill == Backfill()
    assert (policy.queue_depth, policy.interval_ms, policy.interval_min_us) == (100, MINUTE, 2)
    assert (policy.backfill.interval_ms, policy.backfill.resolution_ms) == (30_000, 60_000)
    assert (policy.backfill.window_ms, policy.backfill.jobs_tested_max) == (DAY, 500)
    assert (policy.age_max_ms, policy.decay_half_life_ms) == (7 * DAY, 7 * DAY)


def test_every_malformed_value_is_named_with_its_line(tmp_path: Path):
    text = (
        "PriorityType=priority/lottery\nPriorityWeightAge=lots\n\nPriorityMaxAge=7 days\n"
        "SchedulerParameters=bf_interval=soon\nPriorityFavorSmall=perhaps\n"
        "PriorityMaxAge=a week\nPriorityWeightTRES=cpu\nInclude more.conf\n"
    )
    path = conf(tmp_path, text, "PartitionName=p MaxTime=later PriorityTier=-1\n")
    with pytest.raises(InvalidFile) as caught:
        read_slurm_conf(path)
    found = {(Path(one.file).name, one.line, one.field) for one in caught.value.findings}
    assert found == {
        ("slurm.conf", 1, "PriorityType"),
        ("slurm.conf", 2, "PriorityWeightAge"),
        ("slurm.conf", 5, "bf_interval"),
        ("slurm.conf", 6, "PriorityFavorSmall"),
        ("slurm.conf", 7, "PriorityMaxAge"),
        ("slurm.conf", 8, "PriorityWeightTRES"),
        ("more.conf", 1, "MaxTime"),
        ("more.conf", 1, "PriorityTier"),
    }


def test_missing_and_cyclic_includes_are_rejected(tmp_path: Path):
    for text, code in (
        ("\nInclude none.conf\n", "no-such-file"),
        ("\nInclude slurm.conf\n", "nested-too-deep"),
    ):
        with pytest.raises(InputError) as caught:
            read_slurm_conf(conf(tmp_path, text))
        assert (caught.value.code, caught.value.line) == (code, 2)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1_800),
        ("5:30", 330),
        ("1:30:00", 5_400),
        ("7-0", 604_800),
        ("1-02:03", 93_780),
        ("1-02:03:04", 93_784),
        ("UNLIMITED", None),
        ("INFINITE", None),
    ],
)
def test_times_are_read_as_slurm_writes_them(text: str, seconds: float | None):
    assert slurm_seconds(text) == seconds


def test_text_that_is_not_a_time_is_rejected():
    for text in ("", "soon", "1:2:3:4", "-5", "1-"):
        with pytest.raises(ValueError, match="not a Slurm time"):
            slurm_seconds(text)
