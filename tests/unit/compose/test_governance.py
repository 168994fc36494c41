"""Rules joined with a fleet: teams, prices, types and residency."""

from pathlib import Path

import pytest

from tenfold.compose.fleet import load_facts
from tenfold.compose.governance import check_policy, govern_notes, governance_of
from tenfold.compose.inputs import SimFiles, prepare
from tenfold.files.fleet.read import load_fleet
from tenfold.model.fleet.constraints import PlacementConstraints
from tenfold.model.fleet.spec import FleetSpec
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.job import Job, shape_of
from tenfold.model.policy.governance import USD, GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.model.units import Millis
from tenfold.physics.layout import lay_out

EXAMPLES = Path(__file__).parents[3] / "examples"
FLEET = """
[[pool]]
name = "a"
accelerator = "H100"
nodes = 2
gpus_per_node = 8
residency = ["eu"]
price = { kind = "on-demand", usd_per_gpu_hour = 2 }

[[pool]]
name = "b"
accelerator = "H100"
nodes = 1
gpus_per_node = 8
price = { kind = "on-demand", usd_per_gpu_hour = 5 }

[[team]]
name = "lab"
weight = 3
quota_gpus = { H100 = 16 }
residency = ["eu"]

[[team]]
name = "vision"
parent = "lab"
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(FLEET)
    return path


@pytest.fixture
def spec(fleet: Path) -> FleetSpec:
    return load_fleet(fleet, load_facts())


def job(team: str, where: PlacementConstraints | None = None) -> Job:
    shape = shape_of(2, where=where)
    return Job(id=JobId(team), shape=shape, submitted_ms=Millis(0), team=TeamId(team))


def checked(folder: Path, fleet: Path, text: str) -> list[str]:
    path = folder / "policy.toml"
    path.write_text('name = "governed"\n' + text)
    check = check_policy(path, fleet)
    assert check.faults == ()
    return [found.code for found in check.warnings]


def test_a_policy_without_teams_has_those_of_the_fleet(spec: FleetSpec):
    lab, vision = governance_of(Policy(name="governed"), spec, load_facts()).teams
    assert (lab.quota, lab.weight, lab.residency) == ({"H100-80G-SXM": 16_000}, 3, ("eu",))
    assert (vision.parent, vision.quota) == ("lab", {})


def test_a_policy_with_teams_has_its_own_alone(spec: FleetSpec):
    stated = GovernanceRules(
        teams=(TeamRules(id=TeamId("x"), quota={"h100": 1, "H100-SXM": 2, USD: 3}),)
    )
    [team] = governance_of(Policy(govern=stated), spec, load_facts()).teams
    assert team.quota == {"H100-80G-SXM": 3, USD: 3}


def test_prices_are_the_mean_of_the_pools_unless_the_policy_states_them(spec: FleetSpec):
    facts = load_facts()
    govern = governance_of(Policy(), spec, facts)
    assert govern.usd_micros_per_gpu_hour == {"H100-80G-SXM": 3_000_000}
    stated = GovernanceRules(usd_micros_per_gpu_hour={"H100": 7})
    govern = governance_of(Policy(govern=stated), spec, facts)
    assert govern.usd_micros_per_gpu_hour == {"H100-80G-SXM": 7}


def test_a_simulation_under_governed_takes_teams_and_residency_from_the_fleet(
    tmp_path: Path, fleet: Path
):
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("job_id,team,submit_s,duration_s,gpus\na,vision,0,60,2\nb,guests,1,60,2\n")
    prepared = prepare(SimFiles(fleet=fleet, jobs=jobs, policy="governed"))
    govern = prepared.request.policy.govern
    assert govern is not None
    assert [team.id for team in govern.teams] == ["lab", "vision"]
    assert [team.residency for team in govern.teams] == [("eu",), ()]
    assert any("`guests`" in note for note in prepared.notes)
    plain = prepare(SimFiles(fleet=fleet, jobs=jobs, policy="fair"))
    assert plain.request.policy.govern is None
    assert all(one.shape.where is None for one in plain.request.jobs)


def test_jobs_of_teams_that_nobody_named_are_noted(spec: FleetSpec):
    govern = governance_of(Policy(), spec, load_facts())
    notes = govern_notes(govern, lay_out(spec), [job("lab"), job("guests")])
    assert notes == ["jobs of team `guests` have no quota in the policy"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", []),
        ('[[teams]]\nid = "lab"\n', ["team-left-out"]),
        ("quota = { H100 = 24 }\n", []),
        ("quota = { H100 = 25 }\n", ["quota-over-fleet"]),
        ("quota = { any = 25 }\n", ["quota-over-fleet"]),
        ("quota = { usd_per_hour = 72 }\n", []),
        ("quota = { usd_per_hour = 73 }\n", ["quota-over-fleet"]),
        ("quota = { B200 = 1 }\n", ["type-not-in-fleet"]),
        ("borrow = { H1000 = 1 }\n", ["type-not-in-fleet"]),
        ('residency = ["eu"]\n', []),
        ('residency = ["us"]\n', ["residency-nowhere"]),
        (
            "quota = { usd_per_hour = 1 }\n[prices]\nusd_per_gpu_hour = { H100 = 0 }\n",
            ["quota-without-price"],
        ),
    ],
)
def test_what_the_fleet_lacks_is_a_warning(
    tmp_path: Path, fleet: Path, text: str, codes: list[str]
):
    teams = '[[teams]]\nid = "vision"\n[[teams]]\nid = "lab"\n'
    plain = not text or text.startswith("[[teams]]")
    assert checked(tmp_path, fleet, text if plain else teams + text) == codes


def test_racks_and_pools_stand_for_their_nodes(tmp_path: Path, fleet: Path):
    kept = '[[windows]]\nid = "fix"\nstart_h = 0\nhours = 2\nnodes = ["a"]\n'
    demo = '[[windows]]\nid = "demo"\nstart_h = 1\nhours = 2\nteam = "lab"\nnodes = ["{}"]\n'
    assert checked(tmp_path, fleet, kept + demo.format("a-2")) == ["windows-overlap"]
    assert checked(tmp_path, fleet, kept + demo.format("b")) == []
    assert checked(tmp_path, fleet, kept + demo.format("c-[1-3]")) == ["window-nowhere"]


@pytest.mark.parametrize(
    ("policy", "example"),
    [
        ("three-teams.toml", "sixteen-gpus-three-teams"),
        ("fifteen-teams.toml", "hundred-twenty-eight-gpus-fifteen-teams"),
    ],
)
def test_the_examples_fit_their_fleets(policy: str, example: str):
    check = check_policy(EXAMPLES / "policies" / policy, EXAMPLES / example / "fleet.toml")
    assert (check.faults, check.warnings) == ((), ())
