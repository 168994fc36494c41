"""An assessment of saved Slurm output: every figure computed twice, names hidden, gaps named."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.json import encode

from tenfold.compose.fleet import load_facts
from tenfold.files.slurm.saved import SavedOutput, read_saved
from tenfold.model.errors import InputError
from tenfold.study.assess.anonymous import anonymous
from tenfold.study.assess.assess import Assessed, assess, starts_of
from tenfold.study.assess.causes import Run, wait_causes
from tenfold.study.assess.evidence import Evidence, from_saved, from_trace
from tenfold.study.assess.growth import trend_of
from tenfold.study.assess.use import use_of

ROOT = Path(__file__).parents[4]
SAVED = ROOT / "examples" / "clusters" / "slurm-saved"
SECRET = b"0123456789abcdef"


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    """The record of a small cluster: 230 runs, 60 pending jobs, 32 GPUs."""
    return from_saved(read_saved(SAVED), SAVED, None, load_facts(None), None)


@pytest.fixture(scope="module")
def assessed(evidence: Evidence) -> Assessed:
    """Its assessment."""
    return assess(evidence, hidden=False, done=_quiet)


def test_every_figure_agrees_with_a_second_program_that_reads_the_raw_files(
    assessed: Assessed, tmp_path: Path
) -> None:
    answer, runs = tmp_path / "answer.json", tmp_path / "runs.csv"
    answer.write_bytes(encode(assessed.assessment))
    rows = [",".join(map(str, row)) for row in starts_of(assessed.simulated)]
    runs.write_text("\n".join(["half,job,arrived_ms,start_ms,wait_ms", *rows, ""]))
    script = ROOT / "benchmarks" / "assess_recompute.py"
    checked = subprocess.run(
        [sys.executable, str(script), str(answer), str(SAVED), str(runs)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert int(checked.stdout.split()[0]) > 100


def test_a_wrong_figure_is_found_by_the_second_program(assessed: Assessed, tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    values = json.loads(encode(assessed.assessment))
    values["waits"]["by_account"][0]["p90_s"] += 1
    answer.write_text(json.dumps(values))
    script = ROOT / "benchmarks" / "assess_recompute.py"
    checked = subprocess.run(
        [sys.executable, str(script), str(answer), str(SAVED)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 1
    assert "p90" in checked.stdout


def test_the_cluster_is_known_from_its_saved_output(evidence: Evidence) -> None:
    assert evidence.cluster == "tenfold"
    assert evidence.spec.gpus == 32
    assert len(evidence.queue) == 60
    assert evidence.policy.slurm is not None
    assert evidence.policy.slurm.weights.partition == 400
    assert {one.name for one in evidence.policy.slurm.partitions} == {"normal", "urgent"}


def test_changes_are_chosen_on_one_half_and_tried_on_the_other(assessed: Assessed) -> None:
    changes = assessed.assessment.changes
    first, second = assessed.simulated.halves
    assert not first.measured & second.measured
    assert changes.changes
    for change in changes.changes:
        assert (change.promised.half, change.gave.half) == ("first half", "second half")
        best = min(
            one.mean_wait_s for one in changes.candidates if one.kind == change.kind and one.allowed
        )
        assert change.kind == "purchase" or change.promised.after.mean_wait_s == best


def test_the_error_of_the_unchanged_policy_is_said_for_both_halves(assessed: Assessed) -> None:
    found = assessed.assessment.changes.calibrations
    assert [one.half for one in found] == ["first half", "second half"]
    for one in found:
        assert one.error is not None
        assert one.calibrated == (one.error <= 0.15)
        # Short waits are said in seconds: a share of a few seconds says nothing.
        assert f"{one.error:.0%}" in one.sentence or " s recorded" in one.sentence


def test_what_could_not_be_seen_is_named_with_what_would_let_it(assessed: Assessed) -> None:
    unseen = dict(assessed.assessment.unseen)
    assert "DCGM" in unseen["how busy allocated GPUs are"]
    assert "limits of accounts and QOS" in unseen


def test_hidden_names_change_no_figure(evidence: Evidence) -> None:
    hidden = anonymous(evidence, SECRET)
    text = encode([hidden.records, hidden.queue, hidden.work, hidden.cluster]).decode()
    for name in ("ann", "ben", "vision", "nlp"):
        assert f'"{name}"' not in text
    before, after = use_of(evidence), use_of(hidden)
    assert after.gpu_hours == before.gpu_hours
    hours = [one.gpu_hours for one in before.by_user]
    assert [one.gpu_hours for one in after.by_user] == hours
    assert anonymous(evidence, SECRET).work == hidden.work
    assert anonymous(evidence, b"another secret!!").work != hidden.work


def test_causes_of_waiting_do_not_read_slurms_reasons(evidence: Evidence) -> None:
    assert all(not job.reason for job in evidence.records)
    runs = [
        Run(job, job.started_s, job.ended_s or evidence.until_s, job.node_names)
        for job in evidence.records
        if job.started_s is not None
    ]
    causes = wait_causes(evidence, runs)
    hours = sum(row.waiting_hours for row in causes.rows)
    waited = sum(run.started_s - run.record.submitted_s for run in runs) / 3_600
    assert hours == pytest.approx(waited, rel=1e-6)
    assert {row.code for row in causes.rows} >= {"full", "own", "pace"}


def test_a_short_history_has_no_growth_rate(evidence: Evidence) -> None:
    trend = trend_of(evidence.work)
    assert trend.per_month is None


def test_a_trace_without_start_times_is_simulated_and_says_so(tmp_path: Path) -> None:
    table = tmp_path / "jobs.csv"
    rows = [f"j{n},{n % 3},{n * 60},{600 + 60 * (n % 7)},{1 + 7 * (n % 2)}" for n in range(60)]
    table.write_text("\n".join(["job_id,team,submit_s,duration_s,gpus", *rows, ""]))
    evidence = from_trace(table, None, load_facts(None), None)
    found = assess(evidence, hidden=False, done=_quiet).assessment
    assert found.waits.simulated
    assert "no start times" in found.changes.calibrations[0].sentence
    assert "when jobs started" in dict(found.unseen)
    assert any("set `--fleet`" in one for one in found.assumed)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(InputError, match="no command of Slurm prints"):
        read_saved(tmp_path)


def test_accounting_alone_is_enough() -> None:
    alone = SavedOutput(accounting=[SAVED / "sacct.txt"])
    evidence = from_saved(alone, SAVED, None, load_facts(None), None)
    assert evidence.spec.gpus == 32
    assert "the nodes" in dict(evidence.unseen)


def _quiet(text: str) -> None:
    assert text
