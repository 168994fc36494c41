"""Which policy looks at which key of a job file: said at submission, and held against deciders."""

from collections.abc import Mapping
from typing import Any

import pytest
from litestar import Litestar
from litestar.testing import TestClient
from msgspec.structs import replace

from tenfold.compose.policies import placing_decider
from tenfold.decide.place.job_keys import KEY_EFFECTS, POLICIES_BY_KEY, ignored_keys
from tenfold.files.jobs.submission import submission_of
from tenfold.model.actions import StartJob
from tenfold.model.api.jobs import DryRun, Submitted
from tenfold.model.ids import JobId, TeamId
from tenfold.model.job.spec import JobSpec
from tenfold.model.job.submission import Submission, admitted
from tenfold.model.job.terms import Hours
from tenfold.model.policy.governance import GovernanceRules
from tenfold.model.policy.policy import ORACLES, POLICIES, Policy
from tenfold.model.policy.site_costs import DataPlace, SiteCosts
from tenfold.model.units import HOUR, Millis
from tenfold.server.app import make_app
from tenfold.server.auth.tokens import Role
from tenfold.server.runtime.runtime import Runtime, ServerDeps
from tenfold.testing.builders import fleet, in_domains, nodes
from unit.server.fake_executor import FakeExecutor, FakeProcesses

GANG = {"nodes": 2, "gpus_per_node": 8}
SET: dict[str, dict[str, Any]] = {
    "priority": {"priority": 5},
    "elastic": {"elastic": {"min": 1, "max": 4}, **GANG},
    "off_peak": {"off_peak": True},
    "kind": {"kind": "interactive"},
    "within": {"within": "rack", **GANG},
    "how": {"within": "rack", "how": "required", **GANG},
}


def asked(**keys: Any) -> Submission:
    made = submission_of({"command": ["x"], **keys}, TeamId("red"), "", [])
    assert made is not None
    return made


def policy(name: Any) -> Policy:
    hours = GovernanceRules(off_peak=(Hours(Millis(22 * HOUR), Millis(30 * HOUR)),))
    return Policy(name=name, govern=hours if name == "governed" else None)


def test_every_key_of_the_table_is_a_key_of_job_files_and_has_a_meaning():
    assert set(POLICIES_BY_KEY) <= set(JobSpec.__struct_fields__)
    assert list(POLICIES_BY_KEY) == list(KEY_EFFECTS) == list(SET)
    assert {name for names in POLICIES_BY_KEY.values() for name in names} <= set(POLICIES)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("key", SET)
def test_a_key_that_a_policy_passes_over_is_named_with_one_that_does_not(name: Any, key: Any):
    notes = [note for note in ignored_keys(policy(name), asked(**SET[key])) if f"`{key}`" in note]
    assert bool(notes) == (name not in POLICIES_BY_KEY[key])
    if notes:
        assert f"`{name}` ignores" in notes[0]
        assert f"`{POLICIES_BY_KEY[key][0]}`" in notes[0]


@pytest.mark.parametrize("name", POLICIES)
def test_defaults_and_keys_that_hold_everywhere_say_nothing(name: Any):
    plain = asked(
        preemptible=False,
        after=["a-1"],
        time_limit="1h",
        needs=["fast"],
        kind="experiment",
        checkpoint={"dir": "c"},
        priority=0,
    )
    assert ignored_keys(policy(name), plain) == ()
    assert ignored_keys(policy(name), asked()) == ()


def test_off_peak_without_hours_in_the_policy_is_said():
    (note,) = ignored_keys(Policy(name="governed"), asked(off_peak=True))
    assert "no off-peak hours" in note


def first_starts(name: Any, first: Mapping[str, Any], second: Mapping[str, Any]) -> list[StartJob]:
    """Return the starts that a policy orders when two jobs wait for four nodes in two racks."""
    jobs = [
        admitted(asked(name="a", **first), 1, Millis(0))[0].job,
        admitted(asked(name="b", **second), 2, Millis(0))[0].job,
    ]
    racks = [replace(node, cpus_milli=0) for node in in_domains(nodes(4), {"rack": 2})]
    found = fleet(racks, *(replace(job, duration_ms=Millis(HOUR)) for job in jobs))
    decided = placing_decider(policy(name)).decide(found, Millis(12 * HOUR), ())
    return [one for one in decided.actions if isinstance(one, StartJob)]


@pytest.mark.parametrize("name", [name for name in POLICIES if name not in ORACLES])
def test_who_looks_at_priority_starts_the_higher_first(name: Any):
    whole = {"nodes": 4, "gpus_per_node": 8, "cpus_per_node": 0, "time_limit": "1h"}
    (one,) = first_starts(name, whole, {**whole, "priority": 9})
    assert (one.job_id == JobId("b-2")) == (name in POLICIES_BY_KEY["priority"])


@pytest.mark.parametrize("name", POLICIES)
def test_who_looks_at_off_peak_lets_a_job_wait_by_day(name: Any):
    starts = first_starts(name, {"off_peak": True, "gpus_per_node": 8, "cpus_per_node": 0}, {})
    assert (JobId("a-1") in [one.job_id for one in starts]) != (name in POLICIES_BY_KEY["off_peak"])


@pytest.mark.parametrize("name", POLICIES)
def test_who_looks_at_elastic_starts_a_job_smaller(name: Any):
    taken = {"nodes": 3, "gpus_per_node": 8, "cpus_per_node": 0}
    starts = first_starts(name, taken, {"elastic": {"min": 1, "max": 2}, **GANG})
    assert (len(starts) == 2) == (name in POLICIES_BY_KEY["elastic"])


@pytest.mark.parametrize("name", POLICIES)
def test_who_looks_at_within_keeps_a_gang_in_one_rack(name: Any):
    one_of_each = {"within": "rack", "how": "required", "cpus_per_node": 0}
    three = {"nodes": 3, "gpus_per_node": 8, **one_of_each}
    starts = first_starts(name, three, {})
    assert (JobId("a-1") in [one.job_id for one in starts]) != (name in POLICIES_BY_KEY["within"])


def test_data_that_the_fleet_does_not_have_is_named():
    costs = SiteCosts(usd_micros_per_gpu_hour={}, data={"corpus": DataPlace(1, ("north",))})
    job = asked(data=["corpus", "other"])
    assert ignored_keys(Policy(sites=costs), job) == (
        "`data` has no effect for `other`: this fleet has no [[data]] of that name, or one site",
    )
    assert len(ignored_keys(Policy(), job)) == 2
    assert ignored_keys(Policy(name="slurm", sites=costs), job) == (
        "policy `slurm` ignores `data`: it does not compare sites",
    )


def test_a_submission_and_a_dry_run_tell_it(tmp_path):
    processes = FakeProcesses(tmp_path)
    runtime = Runtime(
        ServerDeps(
            journal=str(tmp_path / "journal.db"),
            executor=lambda: FakeExecutor(processes),
            logs=processes,
        )
    )
    runtime.start(nodes(1))
    app: Litestar = make_app(runtime.control)
    secret, _ = runtime.control.tokens.create(name="m", team="red", role=Role.member)
    with TestClient(app) as client:
        client.headers["Authorization"] = f"Bearer {secret}"
        body = {"command": ["x"], "priority": 3}
        said = "policy `tenfold` ignores `priority`; `governed` and `slurm` use it"
        assert client.post("/api/v1/jobs", json=body).json()["notes"] == [said]
        batch = {"jobs": [body, {"command": ["x"]}, {**body, "array": 2}]}
        made = client.post("/api/v1/jobs", json=batch).json()["jobs"]
        assert [one.get("notes") for one in made] == [[said], None, [said]]
        assert client.post("/api/v1/jobs/dry-run", json=body).json()["notes"] == [said]
    runtime.stop()


def test_clients_of_an_older_control_plane_read_no_notes():
    assert Submitted(id="a", name="a", team="red", state="pending").notes == ()
    assert "notes" in DryRun.__struct_fields__
