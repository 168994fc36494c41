"""Work drawn from a mix: as much as asked for, by the rhythm and in the sizes of the mix."""

import csv
from collections import Counter
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenfold.cli.main import main
from tenfold.compose.fleet import load_facts
from tenfold.files.traces.jobs import read_jobs
from tenfold.files.traces.write import write_jobs
from tenfold.model.errors import InputError
from tenfold.model.fleet.node import Node
from tenfold.model.ids import NodeId, PoolId, SiteId
from tenfold.model.job.job import Job
from tenfold.model.job.workload import Lognormal, SizeClass, WorkloadMix, check_mix
from tenfold.model.units import DAY, HOUR, MINUTE, Millis
from tenfold.sim.workload.generate import Demand, TeamPart, ends_of, generate_jobs, gpu_hours
from tenfold.study.sim.workload import WorkloadRequest, generate_workload

EXAMPLES = Path(__file__).parents[4] / "examples"
MIXES = load_facts().workloads
NAMES = [mix.name for mix in MIXES]
HOURLY = SizeClass(gpus=1, part=1, durations=(Lognormal(median_s=3_600, sigma=1),))
PLAIN = WorkloadMix(
    name="plain", source="a test", date="2026", evidence="assumption", sizes=(HOURLY,)
)


def nodes(count: int, gpus: int = 8, accelerator: str = "H100") -> list[Node]:
    return [
        Node(
            id=NodeId(f"{accelerator}-{number}"),
            pool=PoolId(accelerator),
            site=SiteId("s"),
            accelerator=accelerator,
            gpus=gpus,
        )
        for number in range(count)
    ]


def week(load: float = 0.9, **more: object) -> Demand:
    return Demand(span_ms=Millis(7 * DAY), load=load, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("load", [0.3, 1.2])
def test_the_load_asked_for_is_met(name: str, load: float):
    jobs = generate_jobs(MIXES.get(name), nodes(32), week(load))
    made = gpu_hours(jobs) / (32 * 8 * 7 * 24)
    assert made == pytest.approx(load, rel=0.01)


@pytest.mark.parametrize("name", NAMES)
def test_jobs_are_numbered_in_the_order_in_which_they_come(name: str):
    jobs = generate_jobs(MIXES.get(name), nodes(32), week(0.2))
    assert [job.seq for job in jobs] == list(range(len(jobs)))
    assert [job.submitted_ms for job in jobs] == sorted(job.submitted_ms for job in jobs)
    assert len({job.id for job in jobs}) == len(jobs)
    assert all(job.duration_ms and job.duration_ms <= 7 * DAY for job in jobs)


def test_the_same_seed_gives_the_same_jobs_and_another_gives_others():
    mix, fleet = MIXES.get("philly"), nodes(16)
    assert generate_jobs(mix, fleet, week(), 3) == generate_jobs(mix, fleet, week(), 3)
    assert generate_jobs(mix, fleet, week(), 3) != generate_jobs(mix, fleet, week(), 4)


def test_more_load_is_more_jobs_and_not_longer_ones():
    little, much = (generate_jobs(PLAIN, nodes(64), week(load)) for load in (0.2, 0.8))
    assert len(much) > 3 * len(little)
    means = [sum(job.duration_ms or 0 for job in jobs) / len(jobs) for jobs in (little, much)]
    assert means[0] == pytest.approx(means[1], rel=0.1)


def test_sizes_have_the_shares_of_the_mix_although_some_come_in_batches():
    batched = replace(HOURLY, part=3, alone=0.5, batch_median=10, batch_mean=14)
    mix = replace(PLAIN, sizes=(batched, replace(HOURLY, gpus=2, part=1)))
    jobs = generate_jobs(mix, nodes(128), week())
    share = sum(job.shape.gpus == 1 for job in jobs) / len(jobs)
    assert share == pytest.approx(0.75, abs=0.03)


def test_jobs_of_a_batch_come_together_and_are_alike():
    batched = replace(HOURLY, alone=0.0, batch_median=6, batch_mean=8)
    mix = replace(PLAIN, sizes=(batched,), alike=1.0, users_per_team=50)
    jobs = generate_jobs(mix, nodes(8), week())
    batches = Counter((job.submitted_ms, job.duration_ms, job.user) for job in jobs)
    # The last batch may be cut where the load is met.
    assert sum(size < 2 for size in batches.values()) <= 1


def test_people_submit_by_day_and_on_workdays():
    jobs = generate_jobs(MIXES.get("interactive"), nodes(64), week(0.5))
    by_day = sum(8 <= job.submitted_ms // HOUR % 24 < 19 for job in jobs)
    workdays = sum(job.submitted_ms // DAY < 5 for job in jobs)
    assert by_day > 0.8 * len(jobs)
    assert workdays > 0.85 * len(jobs)


def test_a_job_of_more_than_half_the_fleet_is_left_out_unless_asked_for():
    fleet = nodes(16)
    assert max(job.shape.gpus for job in generate_jobs(MIXES.get("acme"), fleet, week())) == 64
    whole = generate_jobs(MIXES.get("acme"), fleet, week(max_gpus=128))
    assert max(job.shape.gpus for job in whole) == 128


def test_a_team_asks_for_no_more_than_its_accelerators_have():
    fleet = [*nodes(16), *nodes(2, 4, "L40S")]
    teams = (TeamPart(name="a", accelerators=("L40S",)), TeamPart(name="b", part=2))
    jobs = generate_jobs(MIXES.get("research"), fleet, week(teams=teams))
    sizes = {job.shape.gpus for job in jobs if job.team == "a"}
    assert sizes == {1, 4}
    assert all(job.shape.accelerators == ("L40S",) for job in jobs if job.team == "a")


def test_as_many_fail_as_the_mix_says():
    mix = MIXES.get("philly")
    jobs = generate_jobs(mix, nodes(64), week())
    ends = Counter(ends_of(mix, jobs).values())
    assert ends["failed"] / len(jobs) == pytest.approx(mix.failed, abs=0.02)
    assert ends["cancelled"] / len(jobs) == pytest.approx(mix.cancelled, abs=0.02)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hours": (1.0,) * 23}, "24 `hours`"),
        ({"days": (0.0,) * 7}, "`days` that are negative or all zero"),
        ({"sizes": ()}, "no `sizes`"),
        ({"sizes": (HOURLY, HOURLY)}, "twice"),
        ({"teams": {"a": 0.0}}, "no `teams`"),
        ({"alike": 1.5}, "`alike` 1.5"),
        ({"failed": 0.7, "cancelled": 0.7}, "add up to more than 1"),
        ({"day_cv": -1.0}, "negative"),
        ({"users_per_team": 0}, "`users_per_team`"),
        ({"sizes": (replace(HOURLY, gpus=1.5),)}, "only a single GPU can be fractional"),
        ({"sizes": (replace(HOURLY, durations=()),)}, "without `durations`"),
        ({"sizes": (replace(HOURLY, durations=(Lognormal(median_s=0, sigma=1),)),)}, "median"),
        ({"sizes": (replace(HOURLY, batch_median=1.0),)}, "`batch_median`"),
    ],
)
def test_a_mix_that_cannot_be_says_why(changes: dict[str, object], said: str):
    with pytest.raises(InputError, match=said) as caught:
        check_mix(replace(PLAIN, **changes))
    assert caught.value.code == "impossible-workload"


def test_a_fleet_too_small_for_every_size_is_told():
    mix = replace(PLAIN, sizes=(replace(HOURLY, gpus=64),))
    with pytest.raises(InputError, match="need 64 GPUs, but the fleet allows only 8") as caught:
        generate_jobs(mix, nodes(2), week())
    assert caught.value.code == "no-size-fits"


def test_work_without_end_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tenfold.sim.workload.generate._JOBS_MAX", 50)
    with pytest.raises(InputError, match="needs more than 50 jobs"):
        generate_jobs(PLAIN, nodes(64), week())


def request(**changes: object) -> WorkloadRequest:
    fleet = EXAMPLES / "sixteen-gpus-three-teams" / "fleet.toml"
    plain = WorkloadRequest(fleet=fleet, mixes=["startup"], loads=[0.9], days=3)
    return replace(plain, **changes)


def test_the_teams_of_the_fleet_submit_by_weight():
    work = generate_workload(request(days=100))
    users = Counter((job.team, job.submitted_ms) for job in work.trace.jobs)
    counts = Counter(team for team, _ in users)
    assert list(dict.fromkeys(sorted(counts))) == ["interns", "language", "vision"]
    assert counts["vision"] > 1.5 * counts["interns"]


def test_several_mixes_have_a_load_each_or_share_one():
    each = generate_workload(request(mixes=["interactive", "batch"], loads=[0.2, 0.6]))
    parts = {
        qos: gpu_hours([job for job in each.trace.jobs if job.qos == qos])
        for qos in ("interactive", "batch")
    }
    assert parts["batch"] == pytest.approx(3 * parts["interactive"], rel=0.1)
    assert generate_workload(request(mixes=["interactive", "batch"])).load == pytest.approx(
        0.9, rel=0.05
    )
    with pytest.raises(InputError, match="2 `--mix` but 3 `--load` values"):
        generate_workload(request(mixes=["interactive", "batch"], loads=[0.1, 0.2, 0.3]))


def test_a_fleet_without_gpus_gets_no_work(tmp_path: Path):
    fleet = tmp_path / "fleet.toml"
    fleet.write_text('[[pool]]\nname = "cpu"\nshape = "CPU-server"\nnodes = 4\n')
    with pytest.raises(InputError, match="has no GPUs"):
        generate_workload(request(fleet=fleet))


def test_less_than_one_job_is_no_work():
    with pytest.raises(InputError, match="less than one job"):
        generate_workload(request(days=1e-6))


def test_the_command_writes_a_table_that_can_be_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    fleet, out = str(request().fleet), str(tmp_path / "jobs.csv")
    words = ["--fleet", fleet, "--mix", "startup", "--days", "2", "--load", "0.5", "--out", out]
    assert main(["sim", "generate", *words]) == 0
    assert "50% of 16 GPUs" in capsys.readouterr().out
    rows = list(csv.DictReader(Path(out).read_text().splitlines()))
    assert {row["team"] for row in rows} <= {"vision", "language", "interns"}
    assert main(["sim", "generate", *words]) == 2
    assert "already exists" in capsys.readouterr().err
    assert main(["sim", "run", "--fleet", fleet, "--jobs", out]) == 0


def test_an_unknown_mix_says_which_are_near(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    words = ["--fleet", str(request().fleet), "--mix", "phily", "--out", str(tmp_path / "jobs.csv")]
    assert main(["sim", "generate", *words]) == 2
    assert "did you mean `philly`" in capsys.readouterr().err


def test_a_mix_of_ones_own_stands_in_ones_own_facts(tmp_path: Path):
    (tmp_path / "mine.toml").write_text(
        '[[workload]]\nname = "mine"\nsource = "our queue"\ndate = "2026"\nevidence = "measured"\n'
        "sizes = [{ gpus = 2, part = 1, durations = [{ median_s = 600, sigma = 0.5 }] }]\n"
    )
    work = generate_workload(request(mixes=["mine"], facts=tmp_path))
    assert all(job.shape.gpus == 2 for job in work.trace.jobs)
    minutes = sorted((job.duration_ms or 0) / MINUTE for job in work.trace.jobs)
    assert minutes[len(minutes) // 2] == pytest.approx(10, rel=0.15)


def test_jobs_have_nothing_that_a_table_cannot_hold(tmp_path: Path):
    work = generate_workload(request(mixes=["interactive", "batch"]))
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"jobs.{suffix}"
        write_jobs(path, work.trace)
        read: list[Job] = read_jobs(path).jobs
        assert read == work.trace.jobs
