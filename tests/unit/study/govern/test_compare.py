"""The same jobs without rules, partitioned, by weight and governed."""

import json
from functools import partial
from pathlib import Path

import pytest

from tenfold.cli.main import main
from tenfold.compose.inputs import SimFiles
from tenfold.compose.policy_fleet import NO_TEAMS_NOTE, policy_for_record
from tenfold.model.errors import InputError
from tenfold.model.ids import TeamId
from tenfold.model.job.job import WHOLE
from tenfold.model.policy.governance import GovernanceRules, TeamRules
from tenfold.model.policy.policy import Policy
from tenfold.study.govern.compare import (
    SHARING_MODES,
    GovernanceComparison,
    SharingTask,
    governance,
    lost_run,
    with_partitions,
    with_weights_only,
)
from tenfold.study.govern.entitlement import EntitlementModel, jain, water_fill
from tenfold.study.govern.figures import FleetFigures
from tenfold.study.parallel import process_map

FLEET = (
    '[[pool]]\nname = "h100"\naccelerator = "H100"\nnodes = 2\ngpus_per_node = 8\n'
    '[[team]]\nname = "busy"\nquota_gpus = { H100 = 8 }\n'
    '[[team]]\nname = "idle"\nquota_gpus = { H100 = 8 }\n'
)
JOBS = "job_id,team,submit_s,duration_s,gpus\n" + "".join(
    f"j{n},{'busy' if n % 8 else 'idle'},{n * 600},7200,{12 if n == 1 else 4}\n" for n in range(24)
)


@pytest.fixture
def files(tmp_path: Path) -> SimFiles:
    (tmp_path / "fleet.toml").write_text(FLEET)
    (tmp_path / "jobs.csv").write_text(JOBS)
    return SimFiles(fleet=tmp_path / "fleet.toml", jobs=tmp_path / "jobs.csv", policy="governed")


def asked(files: SimFiles, workers: int = 1) -> GovernanceComparison:
    return governance(files, partial(process_map, workers=workers), lambda _: None)


def result(answer: GovernanceComparison, name: str) -> FleetFigures:
    found = next(shared.whole for shared in answer.runs if shared.name == name)
    assert found is not None
    return found


def team(name: str, quota: int = 0, weight: float = 1.0, parent: str = "") -> TeamRules:
    return TeamRules(
        id=TeamId(name),
        weight=weight,
        parent=TeamId(parent) if parent else None,
        quota={"any": quota * WHOLE} if quota else {},
    )


def entitled(govern: GovernanceRules, gpus: int, **asks: int) -> dict[str, float]:
    shares = EntitlementModel(govern, asks, gpus).entitled_milli(
        {name: ask * WHOLE for name, ask in asks.items()}
    )
    return {name: round(share / WHOLE, 6) for name, share in shares.items()}


def test_who_borrows_waits_less_than_behind_a_wall(files: SimFiles):
    answer = asked(files)
    assert [shared.name for shared in answer.runs] == list(SHARING_MODES)
    assert all(shared.error is None for shared in answer.runs)
    walled, free = result(answer, "partitions"), result(answer, "governed")
    assert free.allocated_waiting > walled.allocated_waiting
    assert walled.beyond_quota_gpu_hours == 0 < free.beyond_quota_gpu_hours
    gain = answer.borrowing
    assert gain is not None
    assert gain.wait_s_mean < gain.wait_s_mean_before
    assert gain.delay_days_saved == pytest.approx(
        (gain.wait_s_mean_before - gain.wait_s_mean) * gain.jobs / 86_400
    )


def test_a_job_that_no_partition_holds_is_counted_apart(files: SimFiles):
    answer = asked(files)
    assert result(answer, "partitions").refused == 1
    gain = answer.borrowing
    assert gain is not None
    assert (gain.jobs, gain.jobs_only_now, gain.gpu_hours_only_now) == (23, 1, 24.0)


def test_waits_add_up_and_the_worst_team_is_the_one_that_waits_longest(files: SimFiles):
    answer = asked(files)
    for shared in answer.runs:
        whole = shared.whole
        assert whole is not None
        assert whole.delay_days == pytest.approx(whole.wait_s_mean * whole.finished / 86_400)
        assert whole.worst_wait_s_mean == max(one.wait_s_mean for one in shared.teams.values())
        assert whole.least_served == min(one.served for one in shared.teams.values())
        assert all(0 <= one.served <= 1 for one in shared.teams.values())
        assert whole.wait_s_p50 <= whole.wait_s_p90


def test_processes_give_what_one_process_gives(files: SimFiles):
    assert asked(files, workers=2) == asked(files)


def test_a_policy_without_teams_is_refused(files: SimFiles):
    with pytest.raises(InputError, match="has no teams"):
        asked(SimFiles(fleet=files.fleet, jobs=files.jobs, policy="fifo"))


def test_without_quotas_there_is_nothing_to_part_and_the_rest_goes_on(
    files: SimFiles, tmp_path: Path
):
    (tmp_path / "fleet.toml").write_text(FLEET.replace("quota_gpus = { H100 = 8 }\n", ""))
    answer = asked(files)
    failed = {shared.name: shared.error.code for shared in answer.runs if shared.error is not None}
    assert failed == {"partitions": "no-quotas"}
    assert answer.borrowing is None
    lost = lost_run(SharingTask(files=files, mode="fifo"), "its machine went away").run
    assert lost.error is not None
    assert lost.error.code == "cell-lost"


def test_a_wall_stands_around_every_quota_and_around_teams_at_the_top():
    govern = GovernanceRules(
        teams=(team("dept", 8), team("own", 4, parent="dept"), team("rest", parent="dept"))
    )
    walls = {one.id: one.borrow for one in with_partitions(govern).teams}
    assert walls == {"dept": {"any": 0}, "own": {"any": 0}, "rest": {}}
    bare = with_weights_only(govern).teams
    assert [one.weight for one in bare] == [1.0] * 3
    assert all(not one.quota and not one.borrow for one in bare)


def test_what_one_cannot_use_goes_to_the_others():
    assert water_fill(10, [2, 100, 100], [1, 1, 3]) == pytest.approx([2, 2, 6])
    assert water_fill(10, [1, 2], [1, 1]) == pytest.approx([1, 2])
    assert water_fill(10, [5, 5], [0, 1]) == pytest.approx([0, 5])


def test_everybody_deserves_what_he_asks_for_while_there_is_enough():
    assert entitled(GovernanceRules(teams=(team("a", 1),)), 10, a=6, b=4) == {"a": 6, "b": 4}


def test_quotas_come_first_and_the_rest_is_dealt_by_weight():
    govern = GovernanceRules(teams=(team("a", 6, weight=1), team("b", 2, weight=3)))
    assert entitled(govern, 12, a=100, b=100) == {"a": 7, "b": 5}
    assert entitled(govern, 12, a=3, b=100) == {"a": 3, "b": 9}


def test_a_parent_deals_its_part_among_its_own():
    govern = GovernanceRules(
        teams=(team("lab", 8), team("x", parent="lab"), team("y", parent="lab"), team("z", 8))
    )
    assert entitled(govern, 16, x=100, y=2, z=100) == {"x": 6, "y": 2, "z": 8}
    assert entitled(govern, 16, x=100, lab=100, z=100) == {"x": 0, "lab": 8, "z": 8}


def test_jains_index_is_one_where_all_are_alike():
    assert jain([0.4, 0.4, 0.4]) == pytest.approx(1)
    assert jain([1, 0, 0, 0]) == pytest.approx(0.25)
    assert jain([]) == 1


def test_the_command_shows_ways_teams_and_borrowing(
    files: SimFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    page = tmp_path / "page.html"
    words = ["sim", "govern", "--fleet", str(files.fleet), "--jobs", str(files.jobs)]
    assert main([*words, "--workers", "1", "--html", str(page)]) == 0
    out = capsys.readouterr().out
    for part in (
        *SHARING_MODES,
        "busy",
        "Entitlement received",
        "Effect of borrowing",
        "1 job",
    ):
        assert part in out
    assert "Quota policy compared with other policies" in page.read_text()
    assert main([*words, "--workers", "1", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert list(answer) == ["policy", "ways", "borrowing", "notes"]
    assert main([*words, "--policy", "fifo"]) == 2
    assert "has no teams" in capsys.readouterr().err


def test_without_quotas_no_gpu_hours_are_above_a_quota(
    files: SimFiles, capsys: pytest.CaptureFixture[str]
):
    words = ["sim", "govern", "--fleet", str(files.fleet), "--jobs", str(files.jobs)]
    assert main([*words, "--workers", "1"]) == 0
    held = [line for line in capsys.readouterr().out.splitlines() if "above quota" in line]
    assert "-" not in held[0].split()
    files.fleet.write_text(FLEET.replace("quota_gpus = { H100 = 8 }", ""))
    assert main([*words, "--workers", "1"]) == 1
    held = [line for line in capsys.readouterr().out.splitlines() if "above quota" in line]
    assert held[0].split()[-4:] == ["-"] * 4


def test_a_record_is_governed_by_the_teams_of_a_fleet_or_of_its_own_policy(files: SimFiles):
    governed = Policy(name="governed")
    joined, notes = policy_for_record(governed, Policy(), files.fleet)
    assert joined.govern is not None
    assert ([one.id for one in joined.govern.teams], notes) == (["busy", "idle"], [])
    again, notes = policy_for_record(governed, joined)
    assert again.govern is not None
    assert (again.govern.teams, notes) == (joined.govern.teams, [])
    alone, notes = policy_for_record(governed, Policy())
    assert alone.govern is not None
    assert (alone.govern.teams, notes) == ((), [NO_TEAMS_NOTE])
    assert policy_for_record(Policy(name="las"), joined) == (Policy(name="las"), [])


def test_a_shadow_and_a_replay_know_the_teams_of_the_fleet(
    files: SimFiles, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ["sim", "run", "--fleet", str(files.fleet), "--jobs", str(files.jobs)]
    bundle = str(tmp_path / "run.jsonl")
    assert main([*words, "--policy", "fifo", "--shadow", "governed", "--bundle", bundle]) == 0
    capsys.readouterr()
    fleet = ["--fleet", str(files.fleet)]
    assert main(["replay", bundle, "--policy", "governed", *fleet, "--json"]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["policy_again"] == "governed"
    assert NO_TEAMS_NOTE not in said.err
    assert main(["replay", bundle, "--policy", "governed", "--json"]) == 0
    assert NO_TEAMS_NOTE in capsys.readouterr().err
