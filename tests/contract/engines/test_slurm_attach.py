"""`tenfold attach slurm` on a real Slurm: every story is that of `sacct`, through restarts."""

import signal
from pathlib import Path

import pytest

from engines.slurm import RunningSlurm, SlurmNode, running_slurm
from engines.slurm_attach import (
    Agreement,
    accounting,
    agree,
    ask_tenfold,
    attach,
    differences,
    own_stories,
    slurm_stories,
)
from patience import until
from tenfold.study.attach.recorder import read_status

NODES = [
    SlurmNode(name=f"n{number}", cpus=16, memory_mib=64_000, gpu_type="h100", gpus=8)
    for number in (1, 2)
]
CONF = (
    "SelectTypeParameters=CR_CPU",
    "PriorityType=priority/multifactor",
    "PriorityWeightAge=1000",
    "SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,bf_interval=1,sched_interval=1",
    "MinJobAge=10",
)
PARTITIONS = (
    "PartitionName=all Nodes=n[1-2] Default=YES State=UP DefaultTime=5 MaxTime=60",
    "PartitionName=off Nodes=n[1-2] State=DOWN",
)
SUBMIT = ("sbatch", "--parsable", "--output=/dev/null", "--gpus-per-node=h100:8", "--time=5")


@pytest.mark.timeout(300)
def test_every_story_is_that_of_sacct_through_restarts_of_both(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with running_slurm(tmp_path, NODES, CONF, PARTITIONS, accounting=True) as slurm:
        first = slurm.ask(*SUBMIT, "--nodes=2", "--wrap=exec sleep 60").strip()
        for arguments in (
            ("--hold", "--wrap=true"),
            ("--begin=now+3600", "--wrap=true"),
            (f"--dependency=afterok:{first}", "--wrap=true"),
            ("--partition=off", "--wrap=true"),
            ("--array=0-3%2", "--wrap=exit 3"),
            ("--wrap=true",),
        ):
            last = slurm.ask(*SUBMIT, *arguments).strip()
        slurm.ask("scancel", last)
        until(lambda: "RUNNING" in slurm.ask("squeue", "--noheader", "--format=%T"))
        ask_tenfold(slurm, "attach", "slurm", "--once", "--state-dir", str(state))
        found = Agreement()
        agree(slurm, state, found)
        assert (found.jobs, found.apart) == (8, {})
        # Nothing of ours runs while the first job is cancelled and the array starts.
        slurm.ask("scancel", first)
        own = attach(slurm, state, "--interval", "1")
        try:
            _restart_controller(slurm, state)
            until(lambda: len(slurm_stories(accounting(slurm))) >= 6, pause_s=0.5)
            stories = slurm_stories(accounting(slurm))
            until(lambda: len(own_stories(state)) >= len(stories), pause_s=0.5)
        finally:
            own.send_signal(signal.SIGTERM)
            own.wait(60)
        assert differences(own_stories(state), slurm_stories(accounting(slurm))) == []
        status = read_status(state)
        assert status.cost.calls > 0
        assert any(outage.until_s is not None for outage in status.outages)
        shown = ask_tenfold(slurm, "replay", str(state), "--json")
        assert '"calibrated"' in shown


def _restart_controller(slurm: RunningSlurm, state: Path) -> None:
    slurm.daemons.end("slurmctld")
    until(lambda: bool(read_status(state).outages), pause_s=0.3)
    # As its first start, but without `-c`, which would forget all jobs.
    slurm.daemons.start("slurmctld", "slurmctld", "-D")
    until(lambda: read_status(state).outages[-1].until_s is not None, pause_s=0.3)
