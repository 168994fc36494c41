"""Arrays by the name that their members share, and jobs that come after others."""

from collections.abc import Callable

from litestar import Litestar
from litestar.testing import TestClient

from unit.server.fake_executor import FakeProcesses
from unit.server.waiting import job_when

Client = TestClient[Litestar]
JOBS = "/api/v1/jobs"
FOUR = {"command": ["true"], "gpus_per_node": 4}


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def an_array(client: Client, count: int, headers: dict[str, str] | None = None) -> str:
    """Hand in an array of which two members fit at once."""
    return client.post(JOBS, json={**FOUR, "array": count}, headers=headers).json()["id"]


def test_an_array_is_shown_in_a_summary(member: Client, processes: FakeProcesses):
    base = an_array(member, 4)
    job_when(member, f"{base}[1]", "running")
    told = member.get(f"{JOBS}/{base}").json()
    assert (told["state"], told["team"], told["attempts"]) == ("running", "red", [])
    assert told["array"]["count"] == 4
    assert told["array"]["states"] == {"pending": 2, "running": 2}
    assert told["reason"] == {"code": "array", "sentence": "4 tasks: 2 pending, 2 running"}
    assert "array" not in member.get(f"{JOBS}/{base}[0]").json()
    processes.end(f"{base}[0]", exit_code=3)
    job_when(member, f"{base}[0]", "failed")
    assert member.get(f"{JOBS}/{base}").json()["array"]["failed"] == [f"{base}[0]"]


def test_the_members_of_one_array_are_listed(member: Client):
    base, other = an_array(member, 3), an_array(member, 12)
    found = member.get(JOBS, params={"array": base}).json()["jobs"]
    assert [one["id"] for one in found] == [f"{base}[{one}]" for one in (2, 1, 0)]
    page = member.get(JOBS, params={"array": other, "limit": 10}).json()
    rest = member.get(JOBS, params={"array": other, "limit": 10, "before": page["next"]}).json()
    assert len(page["jobs"]) + len(rest["jobs"]) == 12
    assert member.get(JOBS, params={"array": "job-9"}).json()["jobs"] == []


def test_taking_back_an_array_takes_back_all_that_are_not_over(
    member: Client, processes: FakeProcesses
):
    base = an_array(member, 5)
    job_when(member, f"{base}[0]", "running")
    processes.end(f"{base}[0]")
    job_when(member, f"{base}[0]", "succeeded")
    answer = member.delete(f"{JOBS}/{base}")
    assert (answer.status_code, answer.json()["count"]) == (202, 4)
    for one in range(1, 5):
        job_when(member, f"{base}[{one}]", "cancelled")
    told = member.get(f"{JOBS}/{base}").json()
    assert told["array"]["states"] == {"succeeded": 1, "cancelled": 4}
    assert told["state"] == "cancelled"
    again = member.delete(f"{JOBS}/{base}")
    assert (again.status_code, again.json()["code"]) == (409, "job-not-active")


def test_another_teams_array_is_not_there(client: Client, token: Callable[..., str]):
    red, blue = bearer(token("member", "red")), bearer(token("member", "blue"))
    base = an_array(client, 2, blue)
    assert client.get(f"{JOBS}/{base}", headers=red).status_code == 404
    assert client.delete(f"{JOBS}/{base}", headers=red).status_code == 404
    assert client.get(JOBS, params={"array": base}, headers=red).json()["jobs"] == []
    assert client.get(f"{JOBS}/{base}", headers=blue).status_code == 200


def test_coming_after_another_teams_job_is_refused_as_if_it_were_not_there(
    client: Client, token: Callable[..., str]
):
    red, blue = bearer(token("member", "red")), bearer(token("member", "blue"))
    theirs = client.post(JOBS, json=FOUR, headers=blue).json()["id"]
    array = an_array(client, 2, blue)
    told: list[dict[str, object]] = []
    for name in (theirs, array, "nobody-7", "x y"):
        ask = {**FOUR, "after": [name]}
        refused = client.post(JOBS, json={"jobs": [FOUR, ask]}, headers=red)
        assert (refused.status_code, refused.json()["code"]) == (422, "no-such-job")
        assert refused.json()["field"] == "jobs[1].after[0]"
        told.append({**refused.json(), "detail": "", "errors": []})
        said = refused.json()["detail"].replace(name, "NAME")
        assert said.startswith("the submission is invalid: `after`: there is no job with id `NAME`")
    assert all(one == told[0] for one in told)
    allowed = client.post(JOBS, json={**FOUR, "after": [theirs]}, headers=blue)
    assert allowed.status_code == 201
    everything = bearer(token("operator", "ops"))
    assert client.post(JOBS, json={**FOUR, "after": [theirs]}, headers=everything).is_success


def test_coming_after_an_array_is_coming_after_all_its_members(
    member: Client, processes: FakeProcesses
):
    base = an_array(member, 2)
    last = member.post(JOBS, json={"command": ["true"], "after": [base]}).json()["id"]
    for one in (0, 1):
        assert job_when(member, last, "pending")["reason"]["code"] == "dependencies"
        job_when(member, f"{base}[{one}]", "running")
        processes.end(f"{base}[{one}]")
    job_when(member, last, "running")


def test_coming_after_a_job_that_did_not_succeed_is_refused(member: Client):
    gone = member.post(JOBS, json=FOUR).json()["id"]
    job_when(member, gone, "running")
    member.delete(f"{JOBS}/{gone}")
    job_when(member, gone, "cancelled")
    refused = member.post(JOBS, json={**FOUR, "after": [gone]})
    assert (refused.status_code, refused.json()["code"]) == (422, "dependency-failed")
    assert refused.json()["field"] == "after[0]"
    assert "was cancelled" in refused.json()["detail"]


def test_a_rerun_of_a_failed_member_repairs_the_array_for_later_jobs(
    member: Client, processes: FakeProcesses
):
    sent = {**FOUR, "array": "3,7", "name": "sweep"}
    base = member.post(JOBS, json=sent).json()["id"]
    for index, code in ((3, 1), (7, 0)):
        job_when(member, f"{base}[{index}]", "running")
        processes.end(f"{base}[{index}]", exit_code=code)
    job_when(member, f"{base}[3]", "failed")
    job_when(member, f"{base}[7]", "succeeded")
    later = {"command": ["true"], "after": [base]}
    refused = member.post(JOBS, json=later)
    assert refused.status_code == 422
    assert f"tenfold job rerun '{base}[3]'" in refused.json()["errors"][0]["hint"]
    again = member.post(f"{JOBS}/{base}[3]/rerun").json()["id"]
    told = member.get(f"{JOBS}/{again}").json()["requested"]
    assert told["rerun_of"] == f"{base}[3]"
    made = member.post(JOBS, json=later)
    assert made.status_code == 201
    assert made.json()["notes"] == [
        f"`{base}[3]` did not succeed and was rerun: its rerun `{again}` counts"
    ]
    after = member.get(f"{JOBS}/{made.json()['id']}").json()["requested"]["after"]
    assert after == [again, f"{base}[7]"]


def test_a_rerun_names_the_dependencies_that_it_leaves_out(member: Client):
    first, second = (member.post(JOBS, json=FOUR).json()["id"] for _ in range(2))
    sent = {"command": ["true"], "after": [first], "after_any": [second]}
    late = member.post(JOBS, json=sent).json()["id"]
    notes = member.post(f"{JOBS}/{late}/rerun").json()["notes"]
    assert notes == [f"without its dependencies on `{first}` (afterok) and `{second}` (afterany)"]
    alone = member.post(JOBS, json={"command": ["true"], "after": [first]}).json()["id"]
    again = member.post(f"{JOBS}/{alone}/rerun").json()
    assert again["notes"] == [f"without its dependency on `{first}` (afterok)"]
    assert "notes" not in member.post(f"{JOBS}/{again['id']}/rerun").json()


def test_a_number_alone_names_a_job_and_that_of_a_first_member_its_array(member: Client):
    one = member.post(JOBS, json=FOUR).json()["id"]
    base = member.post(JOBS, json={**FOUR, "array": "5-6%1"}).json()
    assert (base["indexes"], base["members"]) == ("5-6", [f"{base['id']}[{n}]" for n in (5, 6)])
    number = one.rpartition("-")[2]
    assert member.get(f"{JOBS}/{number}").json()["id"] == one
    assert member.get(f"{JOBS}/{base['id'].rpartition('-')[2]}").json()["id"] == base["id"]
    assert member.get(f"{JOBS}/99999").status_code == 404
    made = member.post(JOBS, json={"command": ["true"], "after_any": [number]})
    told = member.get(f"{JOBS}/{made.json()['id']}").json()["requested"]
    assert told["after_any"] == [one]


def test_a_singleton_waits_for_earlier_jobs_of_its_name(member: Client, processes: FakeProcesses):
    first = member.post(JOBS, json={**FOUR, "name": "only"}).json()["id"]
    second = member.post(JOBS, json={**FOUR, "name": "only", "singleton": True}).json()["id"]
    job_when(member, first, "running")
    assert job_when(member, second, "pending")["reason"]["code"] == "dependencies"
    processes.end(first, exit_code=1)
    job_when(member, second, "running")


def test_jobs_are_listed_from_a_moment_on(member: Client):
    made = member.post(JOBS, json=FOUR).json()["id"]
    job_when(member, made, "running")
    past = member.get(JOBS, params={"since": "2020-01-01T00:00:00Z"}).json()["jobs"]
    assert [one["id"] for one in past] == [made]
    assert member.get(JOBS, params={"since": "2100-01-01T00:00:00"}).json()["jobs"] == []
    bad = member.get(JOBS, params={"since": "lately"})
    assert (bad.status_code, bad.json()["field"]) == (400, "since")


def test_a_job_is_submitted_again_as_recorded_without_what_it_came_after(
    member: Client, processes: FakeProcesses
):
    base = an_array(member, 3)
    sent = {**FOUR, "name": "late", "env": {"SEED": "7"}, "time_limit": 600, "after": [base]}
    late = member.post(JOBS, json=sent).json()["id"]
    answer = member.post(f"{JOBS}/{late}/rerun")
    assert answer.status_code == 201
    told = member.get(f"{JOBS}/{answer.json()['id']}").json()["requested"]
    assert (told["command"], told["env"], told["time_limit_s"]) == (["true"], ["SEED"], 600)
    assert told["after"] == []
    one = member.post(f"{JOBS}/{base}[2]/rerun").json()
    assert "count" not in one
    assert member.get(f"{JOBS}/{one['id']}").json()["requested"]["env"] == ["TENFOLD_ARRAY_INDEX"]
    assert member.post(f"{JOBS}/{base}/rerun").json()["count"] == 3
    assert member.post(f"{JOBS}/nothing-9/rerun").status_code == 404
