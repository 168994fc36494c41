"""A sites file: each site of a fleet has one engine, and no key does nothing."""

from pathlib import Path

import pytest

from tenfold.compose.fleet import load_facts
from tenfold.files.fleet.read import load_fleet
from tenfold.files.sites import LOST_AFTER_S, read_sites
from tenfold.model.errors import InvalidFile
from tenfold.model.fleet.spec import FleetSpec

FLEET = """\
[[site]]
name = "north"
[[site]]
name = "south"
[[pool]]
name = "n"
site = "north"
shape = "DGX-H100"
nodes = 1
[[pool]]
name = "s"
site = "south"
shape = "DGX-H100"
nodes = 1
"""
NORTH = '[[site]]\nname = "north"\nengine = "local"\n'


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> FleetSpec:
    path = tmp_path_factory.mktemp("fleet") / "fleet.toml"
    path.write_text(FLEET)
    return load_fleet(path, load_facts())


def read(folder: Path, fleet: FleetSpec, text: str):
    path = folder / "sites.toml"
    path.write_text(text)
    return read_sites(path, fleet)


def wrong(folder: Path, fleet: FleetSpec, text: str) -> list[tuple[str, int | None]]:
    with pytest.raises(InvalidFile) as caught:
        read(folder, fleet, text)
    return [(one.code, one.line) for one in caught.value.findings]


def test_each_site_names_its_engine(fleet: FleetSpec, tmp_path: Path):
    slurm = '[[site]]\nname = "south"\nengine = "slurm"\nconf = "slurm.conf"\nqos = "high"\n'
    (tmp_path / "slurm.conf").touch()
    north, south = read(tmp_path, fleet, NORTH + slurm)
    assert (north.engine, north.lost_after_s) == ("local", LOST_AFTER_S)
    assert (south.engine, south.conf, south.qos) == ("slurm", str(tmp_path / "slurm.conf"), "high")


def test_a_site_with_nodes_and_without_an_engine_is_an_error(fleet: FleetSpec, tmp_path: Path):
    assert wrong(tmp_path, fleet, NORTH) == [("site-without-engine", 1)]


def test_a_site_that_the_fleet_does_not_have_is_an_error(fleet: FleetSpec, tmp_path: Path):
    text = NORTH + '[[site]]\nname = "sowth"\nengine = "local"\n'
    assert wrong(tmp_path, fleet, text) == [("wrong-site", 5), ("site-without-engine", 1)]


def test_a_site_that_is_there_twice_is_an_error(fleet: FleetSpec, tmp_path: Path):
    text = NORTH + NORTH + '[[site]]\nname = "south"\nengine = "local"\n'
    assert wrong(tmp_path, fleet, text) == [("wrong-site", 5)]


def test_a_key_of_another_engine_is_an_error(fleet: FleetSpec, tmp_path: Path):
    text = NORTH + '[[site]]\nname = "south"\nengine = "local"\npartition = "gpu"\n'
    assert wrong(tmp_path, fleet, text) == [("key-of-another-engine", 7)]


def test_a_file_that_is_not_there_is_an_error(fleet: FleetSpec, tmp_path: Path):
    text = NORTH + '[[site]]\nname = "south"\nengine = "slurm"\nconf = "nowhere.conf"\n'
    assert wrong(tmp_path, fleet, text) == [("no-such-file", 7)]


def test_an_engine_needs_to_be_found(fleet: FleetSpec, tmp_path: Path):
    text = NORTH + '[[site]]\nname = "south"\nengine = "ray"\n'
    assert wrong(tmp_path, fleet, text) == [("missing-key", 4)]


def test_an_unknown_key_or_table_is_an_error(fleet: FleetSpec, tmp_path: Path):
    south = '[[site]]\nname = "south"\nengine = "local"\nlost = 3\n'
    found = wrong(tmp_path, fleet, "x = 1\n" + NORTH + south)
    assert ("unknown-key", 1) in found
    assert ("unknown-key", 8) in found
