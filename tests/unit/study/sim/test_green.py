"""CO2 of a run against sums done by hand, and less of it with jobs that are held."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenfold.cli.main import app
from tenfold.compose.grid import GridFiles
from tenfold.compose.inputs import PreparedRun, SimFiles, prepare
from tenfold.compose.simulation import SimResult, simulate
from tenfold.files.records.replay_bundle import read_bundle
from tenfold.model.errors import InputError
from tenfold.model.events import JobSubmitted
from tenfold.model.facts.intensity import ShiftBy
from tenfold.model.ids import JobId
from tenfold.model.policy.policy import Policy
from tenfold.model.units import HOUR, SECOND
from tenfold.study.replay.bundle import simulate_recorded
from tenfold.study.replay.rerun import rerun
from tenfold.study.sim.green import Green, green

ROOT = Path(__file__).parents[4]
EXAMPLE = ROOT / "examples" / "green-batch"
FLEET = """
[[site]]
name = "here"
pue = 1.5

[[pool]]
name = "h100"
accelerator = "H100"
nodes = 2
gpus_per_node = 8
power_kw_per_node = 8
"""
JOBS = """job_id,submit_s,duration_s,gpus,limit_s,deadline_s
waits,0,3600,8,3600,36000
comes,0,7200,4,,
half,0,3600,0.5,,100
"""
CURVE = "hour,co2_g_per_kwh,usd_per_kwh\n0,400,0.2\n1,300,0.1\n2,100,0.3\n3,200,0.4\n"


@pytest.fixture(name="files")
def three_jobs(tmp_path: Path) -> SimFiles:
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "jobs.csv").write_text(JOBS)
    (tmp_path / "grid.csv").write_text(CURVE)
    grid = GridFiles(intensity=tmp_path / "grid.csv")
    return SimFiles(fleet=tmp_path / "fleet.toml", jobs=tmp_path / "jobs.csv", grid=grid)


def shifted(files: SimFiles, by: ShiftBy | None) -> tuple[PreparedRun, SimResult, Green]:
    assert files.grid is not None
    prepared = prepare(replace(files, grid=replace(files.grid, shift=by)))
    result = simulate(prepared.request)
    taken = green(prepared, result)
    assert taken is not None
    return prepared, result, taken


def test_every_allocated_gpu_counts_by_the_hour_with_its_share_of_the_node(files: SimFiles):
    _, _, taken = shifted(files, None)
    # 1.5 kW a GPU with cooling: 8 and 0.5 GPUs in hour 0, 4 GPUs in hours 0 and 1.
    assert taken.co2_kg == pytest.approx(1.5 * ((8 + 4 + 0.5) * 0.4 + 4 * 0.3))
    assert taken.usd_energy == pytest.approx(1.5 * (12.5 * 0.2 + 4 * 0.1))
    assert taken.kwh_gpus == pytest.approx(1.5 * 16.5)
    assert (taken.deadlines, taken.deadlines_missed, taken.jobs_shifted) == (2, 1, 0)


def test_a_held_job_comes_at_its_release_and_its_completion_counts_from_its_submission(
    files: SimFiles,
):
    _, result, taken = shifted(files, "co2")
    ends = {job.id: (job.submitted_ms, end) for job, _, _, _, end in result.meters.ends}
    assert ends[JobId("waits")] == (0, 3 * HOUR)
    assert ends[JobId("comes")] == (0, 2 * HOUR)
    assert taken.co2_kg == pytest.approx(1.5 * (4.5 * 0.4 + 4 * 0.3 + 8 * 0.1))
    assert (taken.jobs_shifted, taken.avg_shift_s, taken.deadlines_missed) == (1, 7200, 1)
    assert result.summary.avg_jct_s == pytest.approx((3 + 2 + 1) * HOUR / SECOND / 3)


def test_cheap_hours_are_not_the_clean_ones(files: SimFiles):
    _, result, _ = shifted(files, "price")
    ends = {job.id: end for job, _, _, _, end in result.meters.ends}
    assert ends[JobId("waits")] == 2 * HOUR


def test_what_is_counted_and_who_is_not_held_is_said(files: SimFiles):
    prepared, _, _ = shifted(files, "co2")
    assert any(
        "idle power and nodes without GPUs are not included" in one for one in prepared.notes
    )
    assert any("1 jobs with a deadline have no `limit_s`" in one for one in prepared.notes)
    assert any("has 4 hours, not whole days" in one for one in prepared.notes)


def test_a_record_of_held_jobs_runs_again_with_the_same_releases(files: SimFiles, tmp_path: Path):
    prepared, _, _ = shifted(files, "co2")
    simulate_recorded(prepared.request, bundle=tmp_path / "run.jsonl")
    again = rerun(read_bundle(tmp_path / "run.jsonl"), Policy(name="fifo"))
    came = [(one.at_ms, one.job.id) for one in again.again if isinstance(one, JobSubmitted)]
    assert came == [(0, "comes"), (0, "half"), (2 * HOUR, "waits")]


def test_prices_are_needed_to_shift_by_them(files: SimFiles):
    assert files.grid is not None
    files.grid.intensity.write_text("hour,co2_g_per_kwh\n0,1\n")
    with pytest.raises(InputError, match="no column `usd_per_kwh` to shift by"):
        shifted(files, "price")


@pytest.mark.parametrize("policy", ["tenfold", "fifo", "edf"])
@pytest.mark.parametrize("by", ["co2", "price"])
def test_held_work_emits_less_and_misses_no_deadline_more(policy: str, by: ShiftBy):
    files = SimFiles(
        fleet=EXAMPLE / "fleet.toml",
        jobs=EXAMPLE / "jobs.csv",
        policy=policy,
        grid=GridFiles(intensity=EXAMPLE / "intensity.csv"),
    )
    _, _, before = shifted(files, None)
    _, result, after = shifted(files, by)
    assert after.deadlines_missed <= before.deadlines_missed == 0
    assert after.deadlines == before.deadlines == 185
    assert after.co2_kg < 0.8 * before.co2_kg
    assert (after.usd_energy or 0) < 0.8 * (before.usd_energy or 0)
    assert after.kwh_gpus == pytest.approx(before.kwh_gpus)
    assert result.summary.finished == result.summary.jobs


def test_the_jobs_of_the_example_are_what_its_readme_makes(tmp_path: Path):
    lines = (EXAMPLE / "README.md").read_text().splitlines()
    [command] = [line for line in lines if line.startswith("tenfold sim generate ")]
    words = command.split()
    words[words.index("--out") + 1] = str(tmp_path / "generated.csv")
    script = [str(EXAMPLE / "add_deadlines.py"), str(tmp_path / "generated.csv")]
    for call in (["-m", *words], [*script, str(tmp_path / "jobs.csv")]):
        subprocess.run([sys.executable, *call], cwd=ROOT, check=True, capture_output=True)
    assert (tmp_path / "jobs.csv").read_bytes() == (EXAMPLE / "jobs.csv").read_bytes()


def command(capsys: pytest.CaptureFixture[str], files: SimFiles, *words: str) -> dict[str, object]:
    given = ["sim", "run", "--fleet", str(files.fleet), "--jobs", str(files.jobs), "--json"]
    app([*given, *words], result_action="return_value")
    return json.loads(capsys.readouterr().out)


def test_json_tells_of_the_grid_only_where_it_is_asked(
    files: SimFiles, capsys: pytest.CaptureFixture[str]
):
    assert files.grid is not None
    curve = str(files.grid.intensity)
    assert "co2_kg" not in command(capsys, files)
    plain = command(capsys, files, "--intensity", curve)
    held = command(capsys, files, "--intensity", curve, "--shift", "co2", "--shift-lasts-s", "60")
    assert (plain["jobs_shifted"], held["jobs_shifted"]) == (0, 1)
    assert held["deadlines"] == 2
    assert held["deadlines_missed"] == 1
    slack = command(capsys, files, "--intensity", curve, "--shift", "co2", "--shift-slack", "10")
    assert slack["jobs_shifted"] == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--shift", "co2"], "shift-without-curve"),
        (["--intensity", "x.csv", "--shift-slack", "2"], "slack-without-shift"),
        (["--intensity", "x.csv", "--fill"], "no-hours"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(
    files: SimFiles, words: list[str], code: str
):
    given = ["sim", "run", "--fleet", str(files.fleet), "--jobs", str(files.jobs), *words]
    with pytest.raises(InputError) as caught:
        app(given, result_action="return_value")
    assert caught.value.code == code
