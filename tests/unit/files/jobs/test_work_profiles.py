"""Files of profiles, what is wrong in them, and profiles that the planner derives."""

import re
from pathlib import Path

import pytest

from tenfold.files.jobs.work_profiles import ProfileRow, read_work_profiles
from tenfold.model.errors import InputError, InvalidFile
from tenfold.model.job.traffic import Traffic, WorkProfile
from tenfold.model.units import GIB
from tenfold.study.plan.traffic import train_traffic
from tenfold.study.plan.train import TrainQuestion, plan_training
from training_builders import CATALOGUE, row

ROOT = Path(__file__).parents[4]
GOOD = """\
[profile.llm]
network_gbps_per_gpu = 400
network_share = 0.2
read_gb_per_s_per_gpu = 0.5
tier = "hot"
checkpoint_gib = 900
checkpoint_every_s = 1800
power_w_per_gpu = 1200
scaling = { 64 = 0.93, 8 = 1.0 }

[profile.quiet]
"""


@pytest.fixture
def write(tmp_path: Path):
    def to(text: str, suffix: str = ".toml") -> Path:
        path = tmp_path / f"profiles{suffix}"
        path.write_text(text)
        return path

    return to


def faults(path: Path, **more: object) -> list[tuple[int | None, str, str]]:
    with pytest.raises(InvalidFile) as caught:
        read_work_profiles(path, **more)  # pyright: ignore
    return [(found.line, found.code, found.field) for found in caught.value.findings]


def test_human_units_become_bytes_and_milliseconds(write):
    profiles = read_work_profiles(write(GOOD), tiers=["hot"])
    assert list(profiles) == ["llm", "quiet"]
    assert profiles["llm"] == WorkProfile(
        traffic=Traffic(
            network_bytes_per_s_per_gpu=50e9,
            network_share=0.2,
            read_bytes_per_s_per_gpu=0.5e9,
            tier="hot",
            checkpoint_bytes=900 * GIB,  # pyright: ignore
            checkpoint_every_ms=1_800_000,  # pyright: ignore
            power_w_per_gpu=1_200.0,
        ),
        scaling=((8, 1.0), (64, 0.93)),
    )
    assert profiles["quiet"] == WorkProfile()


def test_yaml_means_the_same(write):
    yaml = """\
profile:
  llm:
    network_gbps_per_gpu: 400
    network_share: 0.2
    read_gb_per_s_per_gpu: 0.5
    tier: hot
    checkpoint_gib: 900
    checkpoint_every_s: 1800
    power_w_per_gpu: 1200
    scaling: {8: 1.0, 64: 0.93}
  quiet: {}
"""
    assert read_work_profiles(write(yaml, ".yaml")) == read_work_profiles(write(GOOD))


def test_the_profile_in_the_documentation_is_one(write):
    page = (ROOT / "docs" / "explanation" / "contention.md").read_text()
    [block] = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    [name] = read_work_profiles(write(block))
    assert name == "llm-70b"
    for key in ProfileRow.__struct_fields__:
        assert f"`{key}`" in page, key


def test_every_fault_is_told_with_its_line(write):
    text = """\
[profile.a]
network_gbps_per_gpu = "400 Gbit/s"
network_share = 1.5

[profile.b]
network_share = 0.2
read_gbps = 4
checkpoint_gib = 10

[profile.c]
tier = "warm"
scaling = { many = 0.9 }

[job]
"""
    assert faults(write(text), tiers=["hot"]) == [
        (2, "wrong-value", "profile.a.network_gbps_per_gpu"),
        (3, "wrong-value", "profile.a.network_share"),
        (6, "missing-key", "profile.b.network_share"),
        (7, "unknown-key", "profile.b.read_gbps"),
        (8, "missing-key", "profile.b.checkpoint_gib"),
        (8, "missing-key", "profile.b.checkpoint_gib"),
        (11, "unknown-tier", "profile.c.tier"),
        (12, "wrong-value", "profile.c.scaling.many"),
        (14, "unknown-key", "job"),
    ]


@pytest.mark.parametrize("text", ["profile = 3\n", "[[profile]]\nname = 'a'\n"])
def test_profiles_are_a_table_by_name(write, text: str):
    assert faults(write(text)) == [(1, "wrong-value", "profile")]


def test_a_profile_that_is_no_table_is_told(write):
    assert faults(write("[profile]\nllm = 4\n")) == [(2, "wrong-value", "profile.llm")]


def test_tiers_are_only_checked_where_the_fleet_is_known(write):
    assert read_work_profiles(write(GOOD))["llm"].traffic.tier == "hot"


def test_a_job_inside_one_node_sends_nothing_over_the_fabric():
    traffic = train_traffic(row(gpus=8), CATALOGUE)
    assert (traffic.network_share, traffic.network_bytes_per_s_per_gpu) == (0.0, 0.0)


def test_the_planner_says_how_much_of_a_step_is_exposed_communication():
    few = train_traffic(row(gpus=16, nic_gbps_per_gpu=100), CATALOGUE)
    fast = train_traffic(row(gpus=16, nic_gbps_per_gpu=800), CATALOGUE)
    many = train_traffic(row(gpus=256, nic_gbps_per_gpu=100), CATALOGUE)
    assert 0 < fast.network_share < few.network_share < many.network_share < 1
    assert 0 < few.network_bytes_per_s_per_gpu <= 100e9 / 8


def test_tensor_parallelism_in_the_node_is_not_counted():
    """Of two layouts of 16 GPUs with one data-parallel group a node, tp alone stays inside."""
    within = train_traffic(row(gpus=8, tp=8), CATALOGUE)
    beyond = train_traffic(row(gpus=16, tp=16), CATALOGUE)
    assert within.network_share == 0
    assert beyond.network_share > 0.1


def test_reading_and_saving_need_a_tier():
    bare = train_traffic(row(), CATALOGUE, checkpoint_every_s=600)
    assert (bare.read_bytes_per_s_per_gpu, bare.checkpoint_bytes, bare.checkpoint_every_ms) == (
        0.0,
        0,
        0,
    )
    full = train_traffic(row(), CATALOGUE, tier="hot", checkpoint_every_s=600)
    # A 7B model of 6.7e9 parameters at 14 bytes each.
    assert full.checkpoint_bytes == pytest.approx(6.74e9 * 14, rel=0.01)
    assert full.checkpoint_every_ms == 600_000
    assert full.read_bytes_per_s_per_gpu > 1_000


def test_a_row_that_cannot_be_is_refused():
    with pytest.raises(InputError, match="is not a multiple of"):
        train_traffic(row(gpus=7, tp=2), CATALOGUE)


def test_a_plan_of_the_planner_has_its_traffic(tmp_path: Path):
    fleet = tmp_path / "fleet.toml"
    fleet.write_text(
        '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 8\ngpus_per_node = 8\n'
    )
    planned = plan_training(TrainQuestion(model="Llama 2 7B", fleet=fleet, gpus=64))
    best = planned.answer.plans[0]  # pyright: ignore
    traffic = train_traffic(
        best.plan, CATALOGUE, tier="hot", checkpoint_every_s=best.checkpoint_interval_s
    )
    assert 0 < traffic.network_share < 0.5
    assert traffic.checkpoint_every_ms > 0
