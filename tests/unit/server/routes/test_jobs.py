"""Jobs over HTTP, from handing in to the end, with a real journal and loop."""

from collections.abc import Callable

from litestar import Litestar
from litestar.testing import TestClient

from unit.server.fake_executor import FakeProcesses
from unit.server.waiting import job_when

Client = TestClient[Litestar]
API = "/api/v1"


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def test_a_job_is_answered_when_it_is_durable_and_told_until_its_end(
    member: Client, processes: FakeProcesses
):
    answer = member.post(f"{API}/jobs", json={"command": ["true"], "name": "first"})
    assert answer.status_code == 201
    assert answer.json() == {"id": "first-1", "name": "first", "team": "red", "state": "pending"}
    running = job_when(member, "first-1", "running")
    assert [len(one["nodes"]) for one in running["attempts"]] == [1]
    processes.end("first-1")
    over = job_when(member, "first-1", "succeeded")
    listed = ["id", "name", "team", "state", "attempts", "reason", "eta"]
    listed += ["user", "gpus", "submitted_at", "elapsed_s"]
    assert list(over) == [*listed, "gpu_hours", "requested"]
    assert list(member.get(f"{API}/jobs").json()["jobs"][0]) == listed
    (attempt,) = over["attempts"]
    assert list(attempt) == ["number", "started_at", "ended_at", "nodes", "exit_code", "reason"]
    assert attempt["exit_code"] == 0
    assert attempt["started_at"].endswith("Z")
    assert over["reason"] == {"code": "completed", "sentence": "completed"}


def test_a_batch_is_taken_whole_and_answered_in_order(member: Client):
    rows = [{"command": ["true"], "name": name} for name in ("a", "b")]
    answer = member.post(f"{API}/jobs", json={"jobs": [*rows, {"command": ["true"], "array": 3}]})
    assert answer.status_code == 201
    jobs = answer.json()["jobs"]
    assert [one["id"] for one in jobs] == ["a-1", "b-2", "job-3"]
    assert jobs[2]["count"] == 3
    assert jobs[2]["members"] == ["job-3[0]", "job-3[1]", "job-3[2]"]
    assert member.get(f"{API}/jobs/job-3[1]").json()["name"] == "job"


def test_a_batch_with_one_fault_is_not_taken_at_all(member: Client):
    rows = [{"command": ["true"]}, {"command": [], "gpus_per_node": "four"}]
    answer = member.post(f"{API}/jobs", json={"jobs": rows})
    assert answer.status_code == 422
    assert {one["field"] for one in answer.json()["errors"]} == {
        "jobs[1].command",
        "jobs[1].gpus_per_node",
    }
    assert member.get(f"{API}/jobs").json() == {"jobs": [], "next": None}


def test_a_job_that_waits_says_what_for(member: Client):
    ask = {"command": ["true"], "gpus_per_node": 4, "time_limit": "1h"}
    for _ in range(3):
        assert member.post(f"{API}/jobs", json=ask).status_code == 201
    job_when(member, "job-1", "running")
    job_when(member, "job-2", "running")
    told = member.get(f"{API}/jobs/job-3").json()
    assert told["state"] == "pending"
    assert told["reason"]["code"] == "too-few-free"
    assert told["eta"] is None
    forecast = member.get(f"{API}/jobs/job-3", params={"eta": "1"}).json()["eta"]
    assert forecast["p90_at"] is None or forecast["p50_at"] <= forecast["p90_at"]
    assert "uncalibrated" in forecast["basis"]
    why = member.get(f"{API}/jobs/job-3/why", params={"eta": "1"}).json()
    assert why["eta"]["basis"] == forecast["basis"]
    assert "history" not in why


def test_why_gives_the_history_of_a_job_that_is_not_pending(member: Client):
    ask = {"command": ["true"], "gpus_per_node": 4}
    for _ in range(3):
        assert member.post(f"{API}/jobs", json=ask).status_code == 201
    for name in ("job-1", "job-2"):
        job_when(member, name, "running")
    member.delete(f"{API}/jobs/job-1")
    job_when(member, "job-3", "running")
    told = member.get(f"{API}/jobs/job-3/why").json()
    assert told["why"] is None
    events = [(one["event"], one["reason"]["code"]) for one in told["history"]]
    assert events[:2] == [("submitted", "submitted"), ("waited", "too-few-free")]
    assert [event for event, _ in events[2:]] == ["start-ordered", "started"]
    assert "`job-1`" in told["history"][2]["reason"]["sentence"]
    cancelled = member.get(f"{API}/jobs/job-1/why").json()["history"]
    assert cancelled[-1]["event"] in ("ended", "cancelled")


def test_why_names_who_holds_the_gpus_and_hides_the_jobs_of_others(
    client: Client, token: Callable[..., str]
):
    red, blue = bearer(token("member", "red")), bearer(token("member", "blue"))
    ask = {"command": ["true"], "gpus_per_node": 4, "name": "secret"}
    for _ in range(2):
        made = client.post(f"{API}/jobs", json=ask, headers=blue).json()["id"]
        job_when(client, made, "running", headers=blue)
    waits = client.post(f"{API}/jobs", json={**ask, "name": "mine"}, headers=red).json()["id"]
    told = client.get(f"{API}/jobs/{waits}/why", headers=red)
    assert told.status_code == 200
    assert told.json()["why"]["state"] == "waits"
    assert told.json()["why"]["holders"]["teams"] == []
    assert told.json()["why"]["holders"]["others_gpus_milli"] == 8000
    assert "secret-" not in told.text
    seen = client.get(f"{API}/jobs/{waits}/why", headers=bearer(token("operator", "ops")))
    assert "secret-1" in seen.text


def test_pages_of_a_listing_follow_each_other(member: Client):
    member.post(f"{API}/jobs", json={"jobs": [{"command": ["true"]}] * 5})
    first = member.get(f"{API}/jobs", params={"limit": 2}).json()
    second = member.get(f"{API}/jobs", params={"limit": 2, "before": first["next"]}).json()
    third = member.get(f"{API}/jobs", params={"limit": 2, "before": second["next"]}).json()
    names = [one["id"] for page in (first, second, third) for one in page["jobs"]]
    assert names == ["job-5", "job-4", "job-3", "job-2", "job-1"]
    assert third["next"] is None


def test_a_job_that_waits_or_runs_can_be_taken_back_once(member: Client):
    made = member.post(f"{API}/jobs", json={"command": ["true"]}).json()["id"]
    job_when(member, made, "running")
    answer = member.delete(f"{API}/jobs/{made}")
    assert answer.status_code == 202
    assert job_when(member, made, "cancelled")["reason"]["code"] == "cancelled"
    again = member.delete(f"{API}/jobs/{made}")
    assert again.status_code == 409
    assert again.json()["code"] == "job-not-active"


def test_another_teams_job_is_not_there(client: Client, token: Callable[..., str]):
    red, blue = bearer(token("member", "red")), bearer(token("member", "blue"))
    made = client.post(f"{API}/jobs", json={"command": ["true"]}, headers=blue).json()["id"]
    for path in (made, f"{made}/why", f"{made}/logs"):
        assert client.get(f"{API}/jobs/{path}", headers=red).status_code == 404
        assert client.get(f"{API}/jobs/{path}", headers=blue).status_code == 200
    assert client.delete(f"{API}/jobs/{made}", headers=red).status_code == 404
    for asked in ({}, {"team": "blue"}):
        assert client.get(f"{API}/jobs", params=asked, headers=red).json()["jobs"] == []
    everything = client.get(f"{API}/jobs", headers=bearer(token("operator", "ops"))).json()
    assert [one["id"] for one in everything["jobs"]] == [made]


def test_a_member_hands_in_for_its_own_team_alone(client: Client, token: Callable[..., str]):
    ask = {"command": ["true"], "team": "blue"}
    refused = client.post(f"{API}/jobs", json=ask, headers=bearer(token("member", "red")))
    assert refused.status_code == 403
    assert refused.json()["code"] == "other-team"
    taken = client.post(f"{API}/jobs", json=ask, headers=bearer(token("operator", "ops")))
    assert taken.json()["team"] == "blue"


def test_logs_are_given_from_their_end_and_followed_until_the_attempt_is_over(
    member: Client, processes: FakeProcesses
):
    made = member.post(f"{API}/jobs", json={"command": ["true"]}).json()["id"]
    assert member.get(f"{API}/jobs/{made}/logs").status_code == 200
    job_when(member, made, "running")
    processes.write(made, "one\ntwo\n")
    assert member.get(f"{API}/jobs/{made}/logs", params={"tail": 4}).text == "two\n"
    processes.write(made, "three\n")
    processes.end(made)
    followed = member.get(f"{API}/jobs/{made}/logs", params={"follow": "true"})
    assert followed.text == "one\ntwo\nthree\n"


def test_a_page_counts_all_jobs_that_match_if_asked_and_none_of_another_team(
    member: Client, token: Callable[..., str]
):
    member.post(f"{API}/jobs", json={"command": ["true"], "array": 5})
    blue = bearer(token(team="blue"))
    member.post(f"{API}/jobs", json={"command": ["true"]}, headers=blue)

    def total(headers: dict[str, str] | None = None, **asked: str | int) -> object:
        page = member.get(f"{API}/jobs", params={"count": "true", **asked}, headers=headers)
        assert page.json()["at"].endswith("Z")
        return page.json()["total"]

    assert total(limit=2) == 5
    assert total(limit=2, before=3) == total() == 5
    assert total(array="job-1", limit=1) == 5
    assert total(user="member-of-red", limit=1) == 5
    assert total(user="member-of-blue") == 0
    assert total(team="blue") == 0
    assert total(blue, limit=1) == 1
    assert total(bearer(token("operator")), limit=1) == 6
    assert "total" not in member.get(f"{API}/jobs").json()


def test_a_job_is_shown_with_what_it_requested_and_used(member: Client, processes: FakeProcesses):
    asked = {"command": ["train", "--big"], "nodes": 2, "gpus_per_node": 4, "time_limit": "1h"}
    member.post(f"{API}/jobs", json={**asked, "name": "big", "env": {"KEY": "secret"}})
    running = job_when(member, "big-1", "running")
    requested = running["requested"]
    assert requested["command"] == ["train", "--big"]
    keys = ("gpus_per_node", "cpus", "memory_gib", "time_limit_s", "grace_s")
    assert [requested[key] for key in keys] == [4, 2, 0, 3_600, 30]
    assert (running["gpus"], running["user"]) == (8.0, "member-of-red")
    assert "secret" not in str(running)
    processes.end("big-1")
    over = job_when(member, "big-1", "succeeded")
    assert over["gpu_hours"] >= 0
    assert over["elapsed_s"] >= 0
