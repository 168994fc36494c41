"""What a growth analysis refuses to read."""

from pathlib import Path

import pytest

from tenfold.model.errors import InputError
from tenfold.study.grow.inputs import GrowFiles, grow_inputs

EXAMPLES = Path(__file__).parents[4] / "examples"


def test_measurements_of_a_link_that_the_fleet_does_not_have_are_refused():
    measured = EXAMPLES / "bank-three-sites" / "measured.csv"
    with pytest.raises(InputError) as raised:
        grow_inputs(GrowFiles(fleet=EXAMPLES / "one-rack" / "fleet.toml", measured=measured))
    assert raised.value.code == "unknown-link"
    assert "frankfurt - dublin" in raised.value.message


def test_measurements_of_a_link_of_the_fleet_are_read():
    folder = EXAMPLES / "bank-three-sites"
    inputs = grow_inputs(GrowFiles(fleet=folder / "fleet.toml", measured=folder / "measured.csv"))
    assert len(inputs.measured) == 6
