"""Jobs that remove, replace or fill the folder that their supervisor writes to.

Without users for teams, the folder belongs to the user that jobs run as. The result of such a job
is that of its command all the same, its slots become free, and it can be cancelled.
"""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from hostile.plane import API, Plane
from patience import until

FOLDER = 'F=$(dirname "$TENFOLD_HEARTBEAT"); P=$(dirname "$F"); H=${P%/attempts/*}; '
ATTACKS = {
    "removed": 'rm -rf "$F"',
    "removed with all attempts of the job": 'rm -rf "$P"',
    "removed with its marker": 'rm -rf "$P" "$H/open/$TENFOLD_JOB.$TENFOLD_ATTEMPT"',
    "replaced by a file": 'rm -rf "$F"; touch "$F"',
    "replaced by a link": 'rm -rf "$F"; mkdir -p else; ln -s "$PWD/else" "$F"',
    "replaced by a link to nothing": 'rm -rf "$F"; ln -s /nowhere "$F"',
    "replaced by a link to itself": 'rm -rf "$F"; ln -s "$F" "$F"',
    "its parent replaced by a file": 'rm -rf "$P"; touch "$P"',
    "moved away": 'mv "$F" moved',
    "a folder where the end is written": 'mkdir -p "$F/end.json/a" "$F/.end.json/a"',
    "a pipe where the end is written": 'mkfifo "$F/.end.json" "$F/end.json"',
    "a link where the end is written": 'ln -s /dev/full "$F/.end.json"',
    "a forged end, and a record that is not locked": (
        'mv "$F" moved; mkdir "$F"; echo {} > "$F/record"; '
        'echo \'{"how": "exited", "exit_code": 0, "at_ms": 1, "started_ms": 1, "signal": null, '
        '"member": null, "reason": null, "log_bytes_dropped": 0}\' > "$F/end.json"'
    ),
    "pipes as logs": 'rm -f "$F"/*.log; mkfifo "$F/0.log" "$F/0.log@x"; echo output',
    "folders of the next attempts": 'mkdir -p "$P/2" "$P/3/end.json" "$P/4"; touch "$P/5"',
}


@pytest.fixture(scope="module")
def shared() -> Generator[Plane, None, None]:
    """A control plane whose jobs run as its own user, with one node."""
    made = Plane("--virtual-nodes", "1", "--team-users", "off")
    made.start()
    yield made
    made.close()


def submit(plane: Plane, script: str) -> str:
    ask = {"command": ["sh", "-c", FOLDER + script], "name": "own", "gpus_per_node": 8}
    with plane.wire("member", "red") as red:
        made = red.post(f"{API}/jobs", ask)
    assert made.status == 201, made
    return made.json()["id"]


def shown(plane: Plane, job: str) -> dict[str, Any]:
    with plane.wire("member", "red") as red:
        answer = red.get(f"{API}/jobs/{job}")
    assert answer.status == 200, answer
    return answer.json()


def ended(plane: Plane, job: str) -> dict[str, Any]:
    until(
        lambda: shown(plane, job)["state"] in ("succeeded", "failed", "cancelled"),
        explain=lambda: f"{job} has not ended: {shown(plane, job)}",
    )
    return shown(plane, job)


@pytest.mark.parametrize("code", [0, 3])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_the_result_is_that_of_the_command_and_the_slots_become_free(
    shared: Plane, attack: str, code: int
):
    last = ended(shared, submit(shared, f"{attack}; exit {code}"))
    assert last["state"] == ("failed" if code else "succeeded"), last
    assert last["attempts"][-1]["exit_code"] == code, last
    assert len(last["attempts"]) == 1, last
    assert ended(shared, submit(shared, "true"))["state"] == "succeeded"
    with shared.wire("member", "red") as red:
        assert red.get(f"{API}/jobs/{last['id']}/logs").status in (200, 410)
    assert shared.is_ready()


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_such_a_job_can_be_cancelled(shared: Plane, tmp_path: Path, attack: str):
    job = submit(shared, f"{attack}; touch {tmp_path}/done; sleep 600")
    until((tmp_path / "done").exists, explain=lambda: str(shown(shared, job)))
    with shared.wire("member", "red") as red:
        assert red.delete(f"{API}/jobs/{job}").status == 202
    assert ended(shared, job)["state"] == "cancelled"
    assert ended(shared, submit(shared, "true"))["state"] == "succeeded"


@pytest.mark.parametrize("name", [name for name in ATTACKS if "forged" not in name])
def test_a_job_that_also_kills_its_supervisor_is_lost_and_starts_again(
    shared: Plane, tmp_path: Path, name: str
):
    """A forged end is believed where the supervisor is dead: it was the job's own to decide."""
    attack = ATTACKS[name]
    once = f"test -e {tmp_path}/done && exit 0; touch {tmp_path}/done"
    last = ended(shared, submit(shared, f"{once}; {attack}; kill -9 $PPID; sleep 600"))
    assert [one["reason"] for one in last["attempts"]] == ["supervisor-lost", "completed"], last
    assert last["state"] == "succeeded", last
