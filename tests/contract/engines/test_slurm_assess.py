"""`tenfold assess` on a real Slurm with accounting: what it reads is what Slurm recorded."""

from pathlib import Path

from engines.slurm import SlurmNode, running_slurm
from patience import until
from tenfold.clock.wall import now_ms
from tenfold.compose.fleet import load_facts
from tenfold.live.slurm.attach.gather import AccountingLimits, gather, slurm_environment
from tenfold.live.slurm.commands import SlurmCommands
from tenfold.study.assess.assess import assess
from tenfold.study.assess.evidence import from_slurm

NODES = [
    SlurmNode(name=f"n{number}", cpus=8, memory_mib=16_000, gpu_type="h100", gpus=8)
    for number in (1, 2)
]
SUBMIT = ("sbatch", "--parsable", "--output=/dev/null", "--gpus-per-node=h100:8", "--time=5")


def test_an_assessment_of_a_live_cluster_says_what_slurm_recorded(tmp_path: Path) -> None:
    with running_slurm(tmp_path, NODES, accounting=True) as slurm:
        slurm.ask(*SUBMIT, "--account=vision", "--array=0-3", "--wrap=exec sleep 0.5")
        failed = slurm.ask(*SUBMIT, "--account=nlp", "--wrap=exit 3").strip()
        held = slurm.ask(*SUBMIT, "--account=nlp", "--hold", "--wrap=true").strip()
        listing = ("sacct", "--allusers", "--allocations", "--noheader", "--parsable2")
        ended = (*listing, "--format=JobID,State,Start", "--starttime=now-1hours")
        until(lambda: _all_ended(slurm.ask(*ended)), pause_s=0.3)
        commands = SlurmCommands(slurm_environment(slurm.environment))
        limits = AccountingLimits(days=1, seconds=30)
        output = gather(commands, now_ms() / 1_000, limits, lambda text: None)
        evidence = from_slurm(output, load_facts(None), None)
        found = assess(evidence, hidden=False, done=lambda text: None).assessment
        by_id = {job.id: job for job in evidence.records}
        assert len(by_id) == 5
        assert (by_id[failed].state, by_id[failed].exit_code) == ("failed", 3)
        assert [job.id for job in evidence.queue] == [held]
        assert evidence.queue[0].is_held
        assert (found.cluster, found.use.gpus) == ("tenfold", 16)
        assert found.use.now is not None
        assert (found.use.now.pending, found.use.now.pending_gpus) == (1, 8)
        accounts = slurm.ask(*listing, "--format=Account", "--starttime=now-1hours").split()
        assert {one.name for one in found.use.by_account} == set(accounts)
        assert found.waits.every.jobs == 5
        assert commands.cost.calls < 20


def _all_ended(text: str) -> bool:
    rows = [line.split("|") for line in text.splitlines()]
    done = [row for row in rows if row[1] in ("COMPLETED", "FAILED")]
    return len(done) == 5
