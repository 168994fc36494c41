"""Policy files: names, settings and what is wrong with them."""

from pathlib import Path

import pytest

from tenfold.compose.inputs import policy_of
from tenfold.files.policy.read import read_policy
from tenfold.model.errors import InputError, InvalidFile


def written(folder: Path, text: str, name: str = "policy.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_file_sets_order_placement_and_queues(tmp_path: Path):
    text = 'name = "las"\nplacement = "best-fit"\n[las]\nlimits_gpu_s = [10, 20, 30]\n'
    policy = read_policy(written(tmp_path, text))
    assert (policy.name, policy.placement) == ("las", "best-fit")
    assert policy.las_limits_gpu_s == (10, 20, 30)


def test_a_name_is_a_policy_and_a_placement_may_be_set_beside_it():
    assert policy_of("srtf", "fgd").placement == "fgd"


def test_a_slurm_conf_speaks_for_slurm(tmp_path: Path):
    conf = written(tmp_path, "PriorityType=priority/multifactor\nPriorityWeightAge=5\n", "s.conf")
    policy = policy_of(str(conf))
    assert policy.name == "slurm"
    assert policy.slurm is not None
    assert policy.slurm.weights.age == 5


def test_a_slurm_conf_is_found_beside_the_policy_file(tmp_path: Path):
    written(tmp_path, "SchedulerType=sched/builtin\n", "slurm.conf")
    path = written(tmp_path, 'name = "slurm"\n[slurm]\nconf = "slurm.conf"\n')
    assert read_policy(path).slurm is not None


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ('name = "lifo"\n', "wrong-value", 1),
        ('name = "las"\ncolour = "red"\n', "unknown-key", 2),
        ('name = "las"\n[las]\nlimits_gpu_s = [20, 10]\n', "limits-not-rising", 3),
        ('name = "tenfold"\n[tenfold]\nkeep_factor = 2\n', "wrong-value", 3),
        ('placement = "fgd"\n', "missing-key", None),
    ],
)
def test_each_fault_is_named_with_its_line(tmp_path: Path, text: str, code: str, line: int | None):
    with pytest.raises(InvalidFile) as caught:
        read_policy(written(tmp_path, text))
    [found] = caught.value.findings
    assert found.code == code
    assert line is None or found.line == line


def test_an_unknown_name_lists_those_that_are_known():
    with pytest.raises(InputError, match="unknown policy `lottery`") as caught:
        policy_of("lottery")
    assert "`tenfold`" in caught.value.hint
