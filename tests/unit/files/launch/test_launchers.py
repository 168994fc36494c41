"""torchrun, sbatch, Kubernetes and Ray Train: what they start, and safely quoted."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from tenfold.files.launch.formats import render_format
from tenfold.model.errors import InputError
from tenfold.model.facts.shape import ModelShape
from tenfold.model.job.launch import LaunchJob
from tenfold.model.plan import TrainPlan

PLAN = TrainPlan(
    model="llama-3-8b",
    shape=ModelShape(
        layers=32, hidden=4096, heads=32, kv_heads=8, head_dim=128, ffn=14336, vocab=128256
    ),
    seq=8192,
    micro_batch=1,
    global_batch=128,
    accelerator="h100",
    gpus=32,
    gpus_per_node=8,
    dp=32,
    shard="zero3",
)
ONE_NODE = replace(PLAN, gpus=4, dp=4)
NASTY = 'it\'s "$HOME" `id` $(touch pwned); rm -rf * \\ \n& | # end'
NASTY_JOB = LaunchJob(
    name="nasty",
    script=("my train.py", "--text", NASTY, "-x"),
    env={"TEXT": NASTY},
    image="registry/image:1",
)
# Stands in for any program that a script starts, and writes down what it was given.
RECORDER = """\
#!{python}
import json, os, sys
name = os.path.basename(sys.argv[0])
if name == "srun":
    words = [word for word in sys.argv[1:]]
    start = words.index("torchrun")
    os.execvp(words[start], words[start:])
if name == "scontrol":
    print("node7\\nnode8")
else:
    print(json.dumps({{"argv": sys.argv[1:], "text": os.environ.get("TEXT"), "cwd": os.getcwd()}}))
"""


def run_script(text: str, folder: Path, **environment: str) -> dict[str, Any]:
    """Run a rendered script with stand-ins for torchrun, srun and scontrol."""
    programs = folder / "programs"
    programs.mkdir()
    for name in ("torchrun", "srun", "scontrol"):
        (programs / name).write_text(RECORDER.format(python=sys.executable))
        (programs / name).chmod(0o755)
    (folder / "script.sh").write_text(text)
    result = subprocess.run(
        ["bash", "script.sh"],
        cwd=folder,
        env={"PATH": f"{programs}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert not (folder / "pwned").exists()
    return json.loads(result.stdout)


def test_torchrun_on_one_node_needs_no_rendezvous(tmp_path: Path):
    files = render_format(ONE_NODE, "torchrun", LaunchJob(steps=3))
    assert set(files) == {"torchrun.sh", "train_example.py", "train_plan.json"}
    seen = run_script(files["torchrun.sh"], tmp_path)
    assert seen["argv"] == [
        "--nnodes=1",
        "--nproc-per-node=4",
        "--standalone",
        "train_example.py",
        "--plan",
        "train_plan.json",
        "--steps",
        "3",
    ]
    plan = json.loads(files["train_plan.json"])
    assert (plan["dp"], plan["micro_batches"], plan["shape"]["ffn"]) == (4, 32, 14336)
    compile(files["train_example.py"], "train_example.py", "exec")
    assert max(len(line) for line in files["train_example.py"].splitlines()) <= 100
    assert len(files["train_example.py"].splitlines()) <= 310


def test_torchrun_over_nodes_meets_at_the_first(tmp_path: Path):
    script = render_format(PLAN, "torchrun", LaunchJob(name="big"))["torchrun.sh"]
    seen = run_script(script, tmp_path, MASTER_ADDR="node1")
    assert seen["argv"][:5] == [
        "--nnodes=4",
        "--nproc-per-node=8",
        "--rdzv-id=big",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=node1:29500",
    ]


def test_torchrun_over_nodes_says_when_the_first_is_not_named(tmp_path: Path):
    script = render_format(PLAN, "torchrun", LaunchJob())["torchrun.sh"]
    result = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode != 0
    assert "set MASTER_ADDR to the name of the first node" in result.stderr


def test_sbatch_states_the_nodes_and_meets_at_the_first(tmp_path: Path):
    job = LaunchJob(name="llama", time_limit_s=90_061, partition="gpu", team="vision")
    files = render_format(PLAN, "sbatch", job)
    assert set(files) == {"job.sbatch", "train_example.py", "train_plan.json"}
    text = files["job.sbatch"]
    lines = text.splitlines()
    assert lines[0].startswith("#!")
    assert lines[1:10] == [
        "#SBATCH --job-name=llama",
        "#SBATCH --nodes=4",
        "#SBATCH --ntasks-per-node=1",
        "#SBATCH --gpus-per-node=8",
        "#SBATCH --time=1-01:02:00",
        "#SBATCH --partition=gpu",
        "#SBATCH --account=vision",
        "#SBATCH --output=%x-%j.out",
        "#SBATCH --exclusive",
    ]
    seen = run_script(text, tmp_path, SLURM_JOB_NODELIST="node[7-8]", SLURM_JOB_ID="41")
    assert seen["argv"][:6] == [
        "--nnodes=4",
        "--nproc-per-node=8",
        "--rdzv-id=41",
        "--rdzv-backend=c10d",
        "--rdzv-endpoint=node7:20041",
        "train_example.py",
    ]


def test_a_plan_smaller_than_a_node_does_not_take_it_whole():
    text = render_format(ONE_NODE, "sbatch", LaunchJob())["job.sbatch"]
    assert "--gpus-per-node=4" in text
    assert "--exclusive" not in text


@pytest.mark.parametrize(
    ("format_name", "file"), [("torchrun", "torchrun.sh"), ("sbatch", "job.sbatch")]
)
def test_shells_pass_every_text_on_as_it_is(format_name: str, file: str, tmp_path: Path):
    folder = tmp_path / "it's a $(touch pwned) folder"
    folder.mkdir()
    text = render_format(ONE_NODE, format_name, replace(NASTY_JOB, work_dir=str(folder)))[file]
    seen = run_script(text, tmp_path, SLURM_JOB_NODELIST="n", SLURM_JOB_ID="1")
    assert seen["argv"][-4:] == ["my train.py", "--text", NASTY, "-x"]
    assert seen["text"] == NASTY
    assert seen["cwd"] == str(folder)
    assert not (folder / "pwned").exists()


def manifests(plan: TrainPlan, job: LaunchJob, file: str) -> dict[str, dict[str, Any]]:
    documents = yaml.safe_load_all(render_format(plan, "kubernetes", job)[file])
    return {document["kind"]: document for document in documents}


def container(job_spec: dict[str, Any]) -> dict[str, Any]:
    [only] = job_spec["template"]["spec"]["containers"]
    return only


def test_an_indexed_job_runs_one_pod_on_each_node():
    job = LaunchJob(name="llama", namespace="ml", queue="gold", team="vision", time_limit_s=60)
    found = manifests(PLAN, job, "job.yaml")
    assert list(found) == ["ConfigMap", "Service", "Job"]
    spec = found["Job"]["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 4, 4)
    assert spec["activeDeadlineSeconds"] == 60
    assert spec["template"]["spec"]["subdomain"] == "llama"
    assert found["Service"]["spec"]["clusterIP"] == "None"
    assert found["Job"]["metadata"]["namespace"] == "ml"
    assert found["Job"]["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "gold"
    assert found["Job"]["metadata"]["labels"]["tenfold/team"] == "vision"
    trainer = container(spec)
    assert trainer["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert trainer["command"] == [
        "torchrun",
        "--nnodes=4",
        "--nproc-per-node=8",
        "--node-rank=$(NODE_RANK)",
        "--master-addr=$(MASTER_ADDR)",
        "--master-port=29500",
        "/tenfold/train_example.py",
        "--plan",
        "/tenfold/train_plan.json",
        "--steps",
        "10",
    ]
    assert {"name": "MASTER_ADDR", "value": "llama-0.llama"} in trainer["env"]
    assert set(found["ConfigMap"]["data"]) == {"train_example.py", "train_plan.json"}
    files = render_format(PLAN, "torchrun", job)
    assert found["ConfigMap"]["data"]["train_example.py"] == files["train_example.py"]


def test_a_job_set_runs_the_same_pods():
    found = manifests(PLAN, LaunchJob(name="llama"), "jobset.yaml")
    assert list(found) == ["ConfigMap", "JobSet"]
    job_set = found["JobSet"]
    assert job_set["apiVersion"] == "jobset.x-k8s.io/v1alpha2"
    assert job_set["spec"]["network"]["enableDNSHostnames"] is True
    [workers] = job_set["spec"]["replicatedJobs"]
    spec = workers["template"]["spec"]
    plain = container(manifests(PLAN, LaunchJob(name="llama"), "job.yaml")["Job"]["spec"])
    trainer = container(spec)
    assert (spec["completions"], trainer["command"]) == (4, plain["command"])
    assert {"name": "MASTER_ADDR", "value": "llama-workers-0-0.llama"} in trainer["env"]


def test_kubernetes_leaves_texts_as_they_are():
    found = manifests(PLAN, NASTY_JOB, "job.yaml")
    assert "ConfigMap" not in found
    trainer = container(found["Job"]["spec"])
    escaped = NASTY.replace("$(", "$$(")
    assert trainer["command"][-4:] == ["my train.py", "--text", escaped, "-x"]
    assert {"name": "TEXT", "value": escaped} in trainer["env"]


def test_a_pod_with_another_program_needs_an_image():
    with pytest.raises(InputError) as caught:
        render_format(PLAN, "kubernetes", LaunchJob(trainer="megatron"))
    assert (caught.value.code, caught.value.field) == ("missing-image", "image")


@pytest.mark.parametrize("file", ["job.yaml", "jobset.yaml"])
def test_kubernetes_accepts_the_manifests(file: str):
    """Strictly, against the published schemas; a JobSet's pods as the Job they become."""
    validator = pytest.importorskip("kubernetes_validate")
    job = LaunchJob(name="llama", namespace="ml", queue="gold", team="vision", time_limit_s=60)
    for kind, document in manifests(PLAN, job, file).items():
        checked = document
        if kind == "JobSet":
            [workers] = document["spec"]["replicatedJobs"]
            checked = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}}
            checked |= workers["template"]
        validator.validate(checked, "1.31", strict=True)


def test_the_ray_driver_asks_for_a_worker_per_accelerator(tmp_path: Path):
    """Run the driver against a stand-in for Ray that trains in this process."""
    (tmp_path / "ray" / "train").mkdir(parents=True)
    (tmp_path / "ray" / "__init__.py").write_text(
        "def init(runtime_env): print(runtime_env['env_vars'], runtime_env['working_dir'])\n"
    )
    (tmp_path / "ray" / "train" / "__init__.py").write_text(
        "def ScalingConfig(**asked): return asked\nRunConfig = ScalingConfig\n"
    )
    (tmp_path / "ray" / "train" / "torch.py").write_text(
        "class TorchTrainer:\n"
        "    def __init__(self, train, train_loop_config, scaling_config, run_config):\n"
        "        self.start = lambda: train(train_loop_config)\n"
        "        print(scaling_config, run_config)\n"
        "    def fit(self): self.start()\n"
    )
    (tmp_path / "mine.py").write_text("import sys\nprint(sys.argv)\n")
    job = LaunchJob(name="llama", script=("mine.py", NASTY), env={"TEXT": NASTY})
    (tmp_path / "ray_train.py").write_text(render_format(PLAN, "ray-train", job)["ray_train.py"])
    result = subprocess.run(
        [sys.executable, "ray_train.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    started, asked, program = result.stdout.splitlines()
    assert started == f"{ {'TEXT': NASTY} } {tmp_path}"
    assert asked == str(
        {"num_workers": 32, "use_gpu": True, "placement_strategy": "PACK"}
    ) + " " + str({"name": "llama"})
    assert program == str(["mine.py", NASTY])
