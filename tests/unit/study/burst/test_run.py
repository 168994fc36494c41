"""A trace in three ways: only your own nodes, with burst, and only rented nodes."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from price_builders import ROOT
from tenfold.compose.fleet import load_facts
from tenfold.compose.inputs import SimFiles
from tenfold.files.policy.burst import read_burst
from tenfold.model.errors import InvalidFile
from tenfold.study.burst.run import BurstAnswer, compare_burst

FOLDER = ROOT / "examples" / "sixteen-gpus-three-teams"
FILES = SimFiles(fleet=FOLDER / "fleet.toml", jobs=FOLDER / "jobs.csv")
ACCELERATORS = load_facts().accelerators
BURST = read_burst(ROOT / "examples" / "burst" / "burst.toml", ACCELERATORS)


def rows(answer: BurstAnswer) -> dict[str, float]:
    return {row.way: row.usd for row in answer.rows}


def test_hybrid_waits_less_than_own_and_costs_less_than_rented_alone():
    answer = compare_burst(FILES, BURST)
    own, hybrid, rented = answer.rows
    assert own.usd < hybrid.usd < rented.usd
    assert hybrid.avg_wait_s < own.avg_wait_s
    assert 0 < hybrid.jobs_rented < rented.jobs_rented
    assert hybrid.rented_usd <= BURST.policy.budget_usd


def test_without_gain_nothing_is_rented():
    heavy = replace(BURST, data=replace(BURST.data, staged_gb=1e8))
    answer = compare_burst(FILES, heavy)
    assert answer.rows[1].jobs_rented == 0
    assert set(answer.refused) == {"burst-staging-exceeds-benefit"}


def test_deadlines_are_met_by_renting(tmp_path: Path):
    jobs = tmp_path / "jobs.csv"
    lines = [f"j{at},0,7200,8,20000" for at in range(8)]
    jobs.write_text("\n".join(["job_id,submit_s,duration_s,gpus,deadline_s", *lines]) + "\n")
    answer = compare_burst(replace(FILES, jobs=jobs), BURST)
    own, hybrid, rented = answer.rows
    assert own.deadlines_missed > 0
    assert hybrid.deadlines_missed < own.deadlines_missed
    assert rented.deadlines_missed == 0


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("budget_usd = 10\n", "no-zone"),
        ("budget_usd = 10\nbudget = 1\n", "unknown-key"),
        ('[[zone]]\nname = "a"\naccelerator = "H100"\ngpus_per_node = 8\n', "missing-key"),
    ],
)
def test_a_burst_file_with_a_fault_is_refused(tmp_path: Path, text: str, code: str):
    path = tmp_path / "burst.toml"
    path.write_text(text)
    with pytest.raises(InvalidFile) as found:
        read_burst(path, ACCELERATORS)
    assert code in {one.code for one in found.value.findings}
