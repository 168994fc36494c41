"""An assessment of saved Slurm output: every figure computed twice, names hidden, gaps named."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.json import encode
from msgspec.structs import replace

from tenfold.cli.assess.page import assess_page
from tenfold.cli.assess.words import fullness, headline, held_text, waits_text
from tenfold.compose.fleet import load_facts
from tenfold.files.slurm.saved import SavedOutput, read_saved
from tenfold.live.slurm.attach.gather import SlurmOutput
from tenfold.model.errors import InputError
from tenfold.model.job.recorded import RecordedJob
from tenfold.study.assess.anonymous import anonymous
from tenfold.study.assess.assess import Assessed, assess, starts_of
from tenfold.study.assess.causes import Run, wait_causes
from tenfold.study.assess.changes import changes_of
from tenfold.study.assess.evidence import (
    Evidence,
    from_saved,
    from_slurm,
    from_trace,
    with_records,
)
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
    assert found.use.held.lost is None, "the trace does not say how jobs ended"
    assert "which jobs failed" in dict(found.unseen)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    with pytest.raises(InputError, match="no command of Slurm prints"):
        read_saved(tmp_path)


def test_accounting_alone_is_enough() -> None:
    alone = SavedOutput(accounting=[SAVED / "sacct.txt"])
    evidence = from_saved(alone, SAVED, None, load_facts(None), None)
    assert evidence.spec.gpus == 32
    assert "the nodes" in dict(evidence.unseen)


def test_a_wait_for_memory_is_a_wait_for_memory(evidence: Evidence) -> None:
    nodes = tuple(replace(node, memory_mib=1_024 * 500) for node in evidence.nodes)
    assert len(nodes) == 4
    names = [node.name for node in nodes]
    held = RecordedJob(id="1", submitted_s=0, started_s=0.0, ended_s=900.0, gpus=4, nodes=4,
                       node_names=tuple(names), memory_gib=2_000)  # fmt: skip
    waits = RecordedJob(id="2", submitted_s=100, started_s=900.0, ended_s=950.0, gpus=1,
                        node_names=(names[0],), memory_gib=100)  # fmt: skip
    runs = [Run(job, job.started_s or 0, job.ended_s or 0, job.node_names) for job in (held, waits)]
    (row,) = wait_causes(replace(evidence, nodes=nodes), runs).rows
    assert (row.code, row.jobs) == ("cpus", 1)
    unknown = tuple(replace(node, memory_mib=0) for node in nodes)
    (row,) = wait_causes(replace(evidence, nodes=unknown), runs).rows
    assert row.code == "limit"


def test_without_accounting_only_this_moment_is_known() -> None:
    saved = read_saved(SAVED)
    output = SlurmOutput(nodes=saved.nodes, config=saved.config, queue=saved.queue, now_s=2e9)
    output.unseen = [("jobs that ended", "slurmdbd")]
    found = assess(from_slurm(output, load_facts(None), None), hidden=False, done=_quiet).assessment
    assert not found.use.has_history
    assert found.outlook is None
    assert [what for what, _ in found.unseen].count("jobs that ended") == 1
    assert "only this moment" in headline(found)
    assert (fullness(found), waits_text(found), held_text(found)) == ("", "", "")
    assert "No history of jobs" in assess_page(found)


def test_accounting_that_does_not_count_gpus_is_named() -> None:
    saved = read_saved(SAVED)
    saved.config = saved.config.replace("gres/gpu", "fs/disk")
    evidence = from_saved(saved, SAVED, None, load_facts(None), None)
    assert "AccountingStorageTRES" in dict(evidence.unseen)["GPUs of jobs that ended"]
    assert not use_of(evidence).counts_gpus


def test_gpus_of_running_jobs_count_where_slurm_does_not_add_them_up(evidence: Evidence) -> None:
    before = use_of(evidence).now
    untold = tuple(replace(node, gpus_used=0) for node in evidence.nodes)
    after = use_of(replace(evidence, nodes=untold)).now
    assert before is not None
    assert after is not None
    assert after.allocated == before.allocated > 0


def test_jobs_that_came_all_at_once_are_no_halves_to_try_changes_on(evidence: Evidence) -> None:
    burst = [replace(job, submitted_s=evidence.from_s, eligible_s=None) for job in evidence.records]
    found = changes_of(with_records(evidence, burst), _quiet).changes
    assert not found.changes
    assert "too short a time to try changes on" in found.notes[0]


def _quiet(text: str) -> None:
    assert text
