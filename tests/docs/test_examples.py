"""Every example is a fleet without a fault; one alone is meant to be warned about."""

from pathlib import Path

import pytest

from tenfold.compose.fleet import check_fleet

EXAMPLES = Path(__file__).parents[2] / "examples"
FLEETS = sorted([*EXAMPLES.glob("*/fleet.toml"), *EXAMPLES.glob("*/fleet.yaml")])
WARNED = {
    "fabric-full",
    "host-memory-for-model",
    "host-memory-small",
    "quota-over-fleet",
    "rack-over-power",
    "single-point",
    "site-over-power",
    "uplinks-bind",
}


@pytest.mark.parametrize("file", FLEETS, ids=lambda file: file.parent.name)
def test_an_example_has_no_fault(file: Path):
    facts = file.parent / "facts"
    check = check_fleet(file, facts if facts.is_dir() else None)
    assert check.faults == ()
    expected = WARNED if file.parent.name == "oversubscribed" else set()
    assert {found.code for found in check.warnings} == expected


def test_the_examples_are_there():
    assert len(FLEETS) >= 9
    assert any(file.suffix == ".yaml" for file in FLEETS)
