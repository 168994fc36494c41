"""Plan files, driver files, trigger files, proposals and Terraform."""

import json
from pathlib import Path

import pytest

from growth_builders import catalogue, fleet, tier
from tenfold.files.capacity.drivers import read_drivers
from tenfold.files.capacity.plan_file import read_plan_file
from tenfold.files.capacity.proposals import Proposal, add_proposals, read_proposals
from tenfold.files.capacity.terraform import RentedInstances, can_write, terraform_json
from tenfold.files.capacity.triggers import read_triggers
from tenfold.model.errors import InputError, InvalidFile

SPEC = fleet(tiers=(tier(),)).spec
TRAINING = """
[[driver]]
name = "next"
group = "roadmap"
kind = "training"
model = "Llama 3.1 8B"
tokens = 1e12
amount = { base = 2 }
begins = 2027-03-01
"""


def faults(read, path: Path) -> list[tuple[str, int | None]]:
    with pytest.raises(InvalidFile) as caught:
        read(path)
    return [(one.code, one.line) for one in caught.value.findings]


def drivers(path: Path):
    return read_drivers([path], catalogue(), SPEC)


def plan(path: Path):
    return read_plan_file(path, catalogue(), SPEC)


def written(folder: Path, text: str) -> Path:
    path = folder / "file.toml"
    path.write_text(text)
    return path


def test_a_driver_has_three_levels_and_a_day(tmp_path: Path):
    (driver,) = drivers(written(tmp_path, TRAINING))
    assert driver.amount.values == (2, 2, 2)
    assert driver.begins == "2027-03-01"


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("tokens = 1e12", "", "missing-key"),
        ('group = "roadmap"', 'group = "finance"', "wrong-value"),
        ("{ base = 2 }", "{ base = 2, low = 3 }", "wrong-value"),
        ("{ base = 2 }", "{ base = 2, chances = [0.5, 0.5, 0.5] }", "wrong-value"),
        ("Llama 3.1 8B", "Llama 99", "unknown-model"),
        ("begins = 2027-03-01", 'begins = "spring"', "wrong-value"),
        ("tokens = 1e12", 'tokens = 1e12\ntier = "fast"', "unknown-key"),
    ],
)
def test_a_driver_that_cannot_be_converted_is_refused(tmp_path: Path, old, new, code):
    text = TRAINING.replace(old, new)
    assert code in [found for found, _ in faults(drivers, written(tmp_path, text))]


def test_a_dataset_names_a_tier_of_the_fleet(tmp_path: Path):
    text = TRAINING.replace("training", "dataset").replace("roadmap", "data")
    text = text.replace('model = "Llama 3.1 8B"\ntokens = 1e12', 'tier = "slow"')
    assert [code for code, _ in faults(drivers, written(tmp_path, text))] == ["unknown-tier"]


def test_two_files_may_not_state_one_driver(tmp_path: Path):
    one, other = tmp_path / "a.toml", tmp_path / "b.toml"
    one.write_text(TRAINING)
    other.write_text(TRAINING)
    with pytest.raises(InputError, match="is also in"):
        read_drivers([one, other], catalogue(), SPEC)


def test_errors_of_a_plan_file_have_their_lines(tmp_path: Path):
    text = (
        '[[rent]]\nname = "train"\naccelerator = "H100"\n\n'
        '[[buy]]\npool = "other"\n\n[[demand]]\nname = "a"\naccelerator = "X900"\n\n[extra]\n'
    )
    assert sorted(faults(plan, written(tmp_path, text))) == [
        ("duplicate-name", 2),
        ("missing-key", 1),
        ("unknown-accelerator", 10),
        ("unknown-key", 12),
        ("unknown-pool", 6),
    ]


def test_a_trigger_does_not_clear_above_its_threshold(tmp_path: Path):
    text = '[[trigger]]\nname = "a"\nkind = "queue"\nabove = 4\nclears_below = 5\n'
    assert faults(read_triggers, written(tmp_path, text)) == [("wrong-value", 5)]


def proposal(day: str) -> Proposal:
    return Proposal(
        id=f"p-{day}",
        rule="busy",
        kind="queue",
        day=day,
        sentence="why",
        value=5,
        above=4,
        evidence="",
    )


def test_a_proposal_is_stored_once(tmp_path: Path):
    path = tmp_path / "proposals.jsonl"
    assert len(add_proposals(path, [proposal("1"), proposal("2")])) == 2
    assert add_proposals(path, [proposal("1"), proposal("3")]) == [proposal("3")]
    assert [one.day for one in read_proposals(path)] == ["1", "2", "3"]


@pytest.mark.parametrize("line", [0, 1])
def test_a_proposal_that_was_changed_or_removed_shows(tmp_path: Path, line: int):
    path = tmp_path / "proposals.jsonl"
    add_proposals(path, [proposal("1"), proposal("2"), proposal("3")])
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:line], *lines[line + 1 :]]))
    with pytest.raises(InputError, match="does not follow"):
        read_proposals(path)
    path.write_text("\n".join(lines).replace('"above":4', '"above":9', 1))
    with pytest.raises(InputError, match="line 1"):
        read_proposals(path)


def test_terraform_has_instances_and_reservations_of_the_rented_part():
    aws = RentedInstances(
        name="cloud h100",
        provider="aws",
        region="eu-central-1",
        instance_type="p5.48xlarge",
        on_demand=2,
        spot=3,
        reserved=4,
    )
    document = json.loads(terraform_json([aws]))
    resources = document["resource"]
    assert resources["aws_instance"]["cloud_h100"]["count"] == 2
    assert resources["aws_instance"]["cloud_h100_spot"]["count"] == 3
    assert resources["aws_ec2_capacity_reservation"]["cloud_h100"]["instance_count"] == 4
    text = json.dumps(document)
    for name in document["variable"]:
        assert f"var.{name}" in text
    assert document["terraform"]["required_providers"] == {"aws": {"source": "hashicorp/aws"}}


def test_an_offer_without_an_instance_type_is_not_written():
    one = RentedInstances(
        name="a", provider="aws", region="x", instance_type="", on_demand=1, spot=0, reserved=0
    )
    assert not can_write(one)
