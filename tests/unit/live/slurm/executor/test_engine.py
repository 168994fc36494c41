"""What the Slurm engine hands to Slurm, seen by commands that only note how they were called."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenfold.live.executor import Launch, Member
from tenfold.live.external.engine import Submission
from tenfold.live.local.attempt.folder import ExecutorDir
from tenfold.live.local.attempt.places import JobFolders
from tenfold.live.local.spawner.launches import launch_line
from tenfold.live.slurm.executor.engine import DEFAULTS, SlurmEngine, SlurmOptions
from tenfold.model.ids import JobId, NodeId, TeamId
from tenfold.model.job.run_spec import RunSpec
from tenfold.model.units import Millis


def launch(*members: Member, image: str = "") -> Launch:
    spec = RunSpec(name="x", command=("python", "train.py"), image=image, grace_ms=Millis(2_000))
    return Launch(
        job_id=JobId("train-1"), attempt=2, team=TeamId("t"), run_spec=spec, members=members
    )


def gang(gpus: int = 2) -> tuple[Member, ...]:
    return tuple(
        Member(node=NodeId(name), gpus=tuple(range(gpus)), cpus_milli=1_500, memory_mib=100)
        for name in ("a", "b")
    )


class Commands:
    """A folder of commands that note their arguments and input."""

    def __init__(self, folder: Path, **answers: str) -> None:
        self.folder = folder
        for name, answer in answers.items():
            path = folder / name
            path.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > $0.words\n{answer}\n')
            path.chmod(0o755)

    def engine(self, home: Path, options: SlurmOptions = DEFAULTS) -> SlurmEngine:
        path = f"{self.folder}:/usr/bin:/bin"
        secret = {"PATH": path, "TENFOLD_TOKEN": "secret"}
        return SlurmEngine(str(home), environment=secret, options=options)

    def words(self, name: str) -> list[str]:
        return (self.folder / f"{name}.words").read_text().splitlines()


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    (tmp_path / "bin").mkdir()
    return Commands(
        tmp_path / "bin",
        sbatch='cat > "$0.script"; env > "$0.env"; echo "42;cluster"',
        srun='echo "--container-image=[USER@]"',
        apptainer="true",
    )


def submitted(engine: SlurmEngine, ordered: Launch, folder: Path) -> str:
    line = launch_line(ordered, {"PATH": "/bin"}, "", 1)
    return engine.submit(Submission(launch=line, folder=str(folder), fence=3))


def test_sbatch_is_told_nodes_devices_and_whose_job_it_is(commands: Commands, tmp_path: Path):
    options = SlurmOptions(partition="gpu", account="lab", qos="high")
    engine = commands.engine(tmp_path / "home", options)
    assert submitted(engine, launch(*gang()), tmp_path / "a%1") == "42"
    home_id = (tmp_path / "home" / "slurm-id").read_text()
    assert commands.words("sbatch") == [
        "--parsable",
        "--no-requeue",
        "--job-name=train-1.2",
        f"--comment=tenfold:{home_id}:3:2:train-1",
        "--nodes=2",
        "--nodelist=a,b",
        "--ntasks-per-node=1",
        "--cpus-per-task=2",
        f"--output={tmp_path}/a%%1/job.out",
        "--open-mode=append",
        "--chdir=/",
        "--partition=gpu",
        "--account=lab",
        "--qos=high",
        "--gres=gpu:2",
        "--mem=100M",
    ]
    assert "TENFOLD_TOKEN" not in (commands.folder / "sbatch.env").read_text()
    script = (commands.folder / "sbatch.script").read_text()
    assert "a) rank=0 ;; b) rank=1 ;;" in script
    assert "--container-image" not in script


def test_an_image_runs_through_pyxis_where_srun_has_it(commands: Commands, tmp_path: Path):
    engine = commands.engine(tmp_path / "home")
    ordered = launch(*gang()[:1], image="docker://a/b:1")
    assert engine.why_refused(ordered) is None
    submitted(engine, ordered, tmp_path / "attempt")
    script = (commands.folder / "sbatch.script").read_text()
    team = tmp_path / "home" / "teams" / "t"
    mounts = f"{tmp_path}/attempt:{tmp_path}/attempt,{team}:{team}"
    assert f"--container-image=docker://a/b:1 --container-mounts={mounts}" in script


def test_an_image_runs_through_apptainer_without_pyxis(commands: Commands, tmp_path: Path):
    (commands.folder / "srun").write_text("#!/bin/sh\necho no images\n")
    engine = commands.engine(tmp_path / "home")
    ordered = launch(*gang()[:1], image="a.sif")
    line = launch_line(ordered, {"PATH": "/bin"}, "", 1)
    folders = JobFolders(ExecutorDir(str(tmp_path / "home")), line)
    script = engine.script(line, str(tmp_path / "attempt"), folders)
    team = tmp_path / "home" / "teams" / "t"
    words = f"apptainer exec --nv --bind {team} --pwd {team}/train-1 a.sif python train.py"
    assert f"set -- {words}\n" in script


def test_a_gang_of_members_of_different_sizes_is_refused(commands: Commands, tmp_path: Path):
    engine = commands.engine(tmp_path / "home")
    refused = engine.why_refused(launch(gang()[0], Member(node=NodeId("b"), gpus=(0,))))
    assert refused is not None
    assert refused.code == "uneven-gang"
    shared = engine.why_refused(launch(gang()[0], gang()[0]))
    assert shared is not None
    assert shared.code == "members-share-node"


def test_the_name_of_an_executor_stays(commands: Commands, tmp_path: Path):
    ids = set()
    for _ in range(2):
        commands.engine(tmp_path / "home")
        ids.add((tmp_path / "home" / "slurm-id").read_text())
    assert len(ids) == 1
    assert os.stat(tmp_path / "home").st_mode & 0o077 == 0


PARTITIONS = """\
echo "PartitionName=debug State=UP Default=NO MaxTime=00:30:00 DefaultTime=00:05:00 Nodes=a,b"
echo "PartitionName=gpu State=UP Default=YES MaxTime=7-00:00:00 DefaultTime=01:00:00 Nodes=a,b"
echo "PartitionName=free State=UP Default=NO MaxTime=UNLIMITED DefaultTime=01:00:00 Nodes=a,b"
echo "PartitionName=plain State=UP Default=NO MaxTime=2-00:00:00 DefaultTime=NONE Nodes=a,b"
"""


@pytest.mark.parametrize(
    ("partition", "limit_s", "asked"),
    [
        ("", 3_600, "--time=63"),
        ("debug", 3_600, "--time=30"),
        ("debug", None, "--time=30"),
        ("", None, "--time=10080"),
        ("free", None, "--time=UNLIMITED"),
        ("free", 90, "--time=4"),
        ("plain", None, ""),
    ],
)
def test_slurm_is_told_how_long_a_job_may_run(
    tmp_path: Path, partition: str, limit_s: int | None, asked: str
):
    """Or it would end the job after the default time of its partition, and could not backfill."""
    (tmp_path / "bin").mkdir()
    known = Commands(tmp_path / "bin", sbatch="cat > /dev/null; echo 42", scontrol=PARTITIONS)
    engine = known.engine(tmp_path / "home", SlurmOptions(partition=partition))
    limit_ms = None if limit_s is None else Millis(limit_s * 1_000)
    submitted(engine, replace(launch(*gang()), limit_ms=limit_ms), tmp_path / "attempt")
    found = [word for word in known.words("sbatch") if word.startswith("--time")]
    assert found == ([asked] if asked else [])
    submitted(engine, launch(*gang()), tmp_path / "attempt")
    assert engine.cost().startswith("3 Slurm commands"), "partitions are read once"
